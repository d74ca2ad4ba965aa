#include "meta/http/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "journal/base/bytes.h"
#include "journal/base/check.h"
#include "meta/http/transport.h"

namespace holdfast {
namespace {

std::string ReasonOf(unsigned long error) {
  if (ERR_SYSTEM_ERROR(error)) return std::strerror(ERR_GET_REASON(error));
  const char* const reason = ERR_reason_error_string(error);
  return reason != nullptr ? reason : "unknown";
}

// Why a file is refused: the first thing that went wrong, which the library puts first.
Status FileFailure(const TlsFile& file, std::string_view what) {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (ERR_SYSTEM_ERROR(error)) {
    return Invalid("{}: {}: it cannot be read: {}", file.setting, file.path, ReasonOf(error));
  }
  return Invalid("{}: {}: {} ({})", file.setting, file.path, what, ReasonOf(error));
}

Status LoadCas(SSL_CTX* context, const TlsFile& file) {
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(context, file.path.c_str()) == 1) return absl::OkStatus();
  return FileFailure(file, "it holds no certificate in PEM");
}

Status LoadIdentity(SSL_CTX* context, const TlsFile& cert, const TlsFile& key) {
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, cert.path.c_str()) != 1) {
    return FileFailure(cert, "it holds no certificate in PEM that can be used");
  }
  ERR_clear_error();
  if (SSL_CTX_use_PrivateKey_file(context, key.path.c_str(), SSL_FILETYPE_PEM) == 1) {
    return absl::OkStatus();
  }
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_LIB(error) == ERR_LIB_X509) {
    ERR_clear_error();
    return Invalid("{}: {}: it is not the key of {} {}", key.setting, key.path, cert.setting,
                   cert.path);
  }
  return FileFailure(key, "it holds no private key in PEM without a passphrase");
}

Status CheckPair(const TlsFile& cert, const TlsFile& key) {
  if (cert.path.empty() == key.path.empty()) return absl::OkStatus();
  const TlsFile& missing = cert.path.empty() ? cert : key;
  const TlsFile& given = cert.path.empty() ? key : cert;
  return Invalid("{}: missing; it goes with {}", missing.setting, given.setting);
}

// Nobody is asked for the passphrase of a key.
int NoPassphrase(char*, int, int, void*) { return -1; }

bool IsAboutTheCertificate(int alert) {
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_HANDSHAKE_FAILURE:  // TLS 1.2, where the certificate is missing.
    case TLS13_AD_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

}  // namespace

// ---- the context

void TlsContext::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

TlsContext::TlsContext() : context_(SSL_CTX_new(TLS_method())) {
  CHECK(context_ != nullptr);
  SSL_CTX* const context = context_.get();
  CHECK(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // A connection that is idle holds no buffers.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(context, NoPassphrase);
}

StatusOr<std::unique_ptr<TlsContext>> TlsContext::ForClient(const TlsClientOptions& options) {
  RETURN_IF_ERROR(CheckPair(options.cert, options.key));
  std::unique_ptr<TlsContext> made(new TlsContext);
  SSL_CTX* const context = made->context_.get();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (!options.ca.path.empty()) {
    RETURN_IF_ERROR(LoadCas(context, options.ca));
  } else if (SSL_CTX_set_default_verify_paths(context) != 1) {
    return Invalid("{}: empty, and the system's CAs cannot be read", options.ca.setting);
  }
  if (!options.cert.path.empty()) {
    RETURN_IF_ERROR(LoadIdentity(context, options.cert, options.key));
  }
  return made;
}

StatusOr<std::unique_ptr<TlsContext>> TlsContext::ForServer(const TlsServerOptions& options) {
  RETURN_IF_ERROR(CheckPair(options.cert, options.key));
  if (options.cert.path.empty()) return Invalid("{}: missing", options.cert.setting);
  std::unique_ptr<TlsContext> made(new TlsContext);
  SSL_CTX* const context = made->context_.get();
  RETURN_IF_ERROR(LoadIdentity(context, options.cert, options.key));
  if (options.client_ca.path.empty()) return made;
  RETURN_IF_ERROR(LoadCas(context, options.client_ca));
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // So that a client that has several certificates knows which to show.
  SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(options.client_ca.path.c_str()));
  return made;
}

// ---- one session

void TlsSession::Free::operator()(ssl_st* session) const { SSL_free(session); }

TlsSession::TlsSession(const TlsContext& context, const std::string& host)
    : is_client_(true), host_(host), session_(SSL_new(context.context_.get())) {
  CHECK(session_ != nullptr);
  SSL* const session = session_.get();
  SSL_set_bio(session, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(session);
  // The subject is free text; only the alternative names are names.
  SSL_set_hostflags(session,
                    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (IsNumericAddress(host_)) {
    CHECK(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host_.c_str()) == 1);
  } else {
    CHECK(SSL_set1_host(session, host_.c_str()) == 1);
    CHECK(SSL_set_tlsext_host_name(session, host_.c_str()) == 1);
  }
}

TlsSession::TlsSession(const TlsContext& context)
    : is_client_(false), session_(SSL_new(context.context_.get())) {
  CHECK(session_ != nullptr);
  SSL_set_bio(session_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_accept_state(session_.get());
}

void TlsSession::Receive(std::string_view bytes) {
  const int taken =
      BIO_write(SSL_get_rbio(session_.get()), bytes.data(), Narrow<int>(bytes.size()));
  CHECK(taken == Narrow<int>(bytes.size()));  // It grows.
}

std::string TlsSession::TakeOutput() {
  BIO* const output = SSL_get_wbio(session_.get());
  std::string bytes(BIO_ctrl_pending(output), '\0');
  if (bytes.empty()) return bytes;
  const int taken = BIO_read(output, bytes.data(), Narrow<int>(bytes.size()));
  CHECK(taken == Narrow<int>(bytes.size()));
  return bytes;
}

StatusOr<bool> TlsSession::Handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(session_.get());
  if (done == 1) return true;
  if (SSL_get_error(session_.get(), done) == SSL_ERROR_WANT_READ) return false;
  return Failure();
}

StatusOr<size_t> TlsSession::Read(std::span<char> into) {
  ERR_clear_error();
  size_t bytes = 0;
  const int done = SSL_read_ex(session_.get(), into.data(), into.size(), &bytes);
  if (done == 1) {
    has_read_ = true;
    return bytes;
  }
  switch (SSL_get_error(session_.get(), done)) {
    case SSL_ERROR_WANT_READ:
      return size_t{0};
    case SSL_ERROR_ZERO_RETURN:
      return MakeStatus(StatusCode::kOutOfRange, Detail::kNone, "TLS: the peer has ended");
    default:
      return Failure();
  }
}

Status TlsSession::Write(std::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  ERR_clear_error();
  size_t written = 0;
  if (SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &written) != 1) return Failure();
  CHECK(written == bytes.size());  // The output grows.
  return absl::OkStatus();
}

void TlsSession::End() {
  ERR_clear_error();
  SSL_shutdown(session_.get());  // Of a session that has failed there is nothing to end.
  ERR_clear_error();
}

bool TlsSession::HasUnread() const {
  return BIO_ctrl_pending(SSL_get_rbio(session_.get())) != 0 ||
         SSL_has_pending(session_.get()) == 1;
}

Status TlsSession::Failure() {
  const unsigned long error = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(error);
  const std::string text = ReasonOf(error);
  ERR_clear_error();
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return Unavailable(Detail::kNone, "TLS: {}", text);
  const std::string_view peer = is_client_ ? "server" : "client";
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return Unavailable(Detail::kNone, "TLS: {}", CertificateFailure());
  }
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
    peer_speaks_http_ = reason == SSL_R_HTTP_REQUEST;
    return Unavailable(Detail::kNone, "TLS: the {} does not speak TLS", peer);
  }
  if (reason < SSL_AD_REASON_OFFSET) return Unavailable(Detail::kNone, "TLS: {}", text);
  if (!IsAboutTheCertificate(reason - SSL_AD_REASON_OFFSET)) {
    return Unavailable(Detail::kNone, "TLS: the {} says: {}", peer, text);
  }
  refused_ = !has_read_;
  const bool shown = SSL_get_certificate(session_.get()) != nullptr;
  return Unavailable(Detail::kNone, "TLS: the {} refuses {}: {}", peer,
                     shown ? "this certificate" : "to go on without a certificate", text);
}

std::string TlsSession::CertificateFailure() const {
  const long result = SSL_get_verify_result(session_.get());
  const std::string whose = is_client_ ? "the server's certificate" : "the client's certificate";
  const char* const text = X509_verify_cert_error_string(result);
  switch (result) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("{} is not for {} ({})", whose, host_, text);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return whose + " has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return whose + " is not valid yet";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return fmt::format("{} is of a CA that is not known here ({})", whose, text);
    default:
      return fmt::format("{} is refused ({})", whose, text);
  }
}

}  // namespace holdfast
