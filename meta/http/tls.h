// TlsSession: one end of a TLS connection without the connection. The peer's bytes go in, bytes for
// the peer come out; who carries them is somebody else's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "journal/base/status.h"
#include "meta/http/tls_options.h"

struct ssl_ctx_st;
struct ssl_st;

namespace holdfast {

// What the sessions of one client or server have in common. TLS 1.2 and later, no resumption.
// Threads: any.
class TlsContext {
 public:
  // Errors: kInvalidArgument  a file cannot be read or does not hold what it should, or a
  //                           certificate and its key do not belong together; names the setting
  static StatusOr<std::unique_ptr<TlsContext>> ForClient(const TlsClientOptions& options);
  static StatusOr<std::unique_ptr<TlsContext>> ForServer(const TlsServerOptions& options);

 private:
  friend class TlsSession;
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };

  TlsContext();

  std::unique_ptr<ssl_ctx_st, Free> context_;
};

// Threads: one. What fails once has failed for good; what there is to send then tells the peer.
class TlsSession {
 public:
  // Of a client of `host`, a name or an address.
  TlsSession(const TlsContext& context, const std::string& host);
  // Of a server.
  explicit TlsSession(const TlsContext& context);

  // What has come from the peer.
  void Receive(std::string_view bytes);
  // What is to be sent to it; empty if nothing is.
  std::string TakeOutput();

  // Goes on with the handshake. False: it needs more of the peer.
  // Errors: kUnavailable  it has failed, and says why
  StatusOr<bool> Handshake();
  // 0: it needs more of the peer.
  // Errors: kOutOfRange   the peer has ended as it should
  //         kUnavailable  something is wrong with what came
  StatusOr<size_t> Read(std::span<char> into);
  // Needs: the handshake is done. Errors: kUnavailable
  Status Write(std::string_view bytes);
  // Tells the peer that no more will be written.
  void End();

  // Something of the peer's is here that was not read.
  bool HasUnread() const;
  // The peer does not take this end for who it says it is, and has read nothing that it wrote.
  bool refused() const { return refused_; }
  // What came is a request in plain HTTP.
  bool peer_speaks_http() const { return peer_speaks_http_; }

 private:
  struct Free {
    void operator()(ssl_st* session) const;
  };

  // Why the last operation failed, from the queue of the library.
  Status Failure();
  std::string CertificateFailure() const;

  const bool is_client_;
  const std::string host_;
  std::unique_ptr<ssl_st, Free> session_;
  bool has_read_ = false;
  bool refused_ = false, peer_speaks_http_ = false;
};

}  // namespace holdfast
