// TestCa: a certificate authority of a test, and the certificates that it issues, as files.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

#include "journal/base/check.h"
#include "tests/support/temp_dir.h"

namespace holdfast {

class TestCa {
 public:
  struct Request {
    std::string names = "DNS:localhost,IP:127.0.0.1";
    long valid_from = -3600, valid_to = 3600;  // seconds from now
  };
  struct Pair {
    std::string cert, key;  // paths
  };

  explicit TestCa(const std::string& name) : name_(name), key_(EVP_EC_gen("P-256")) {
    cert_ = Make(*key_, name_, {}, nullptr);
    path_ = Save("ca.pem", [&](FILE* file) { return PEM_write_X509(file, cert_.get()); });
  }

  // Its own certificate.
  const std::string& path() const { return path_; }
  // One that serves for servers and for clients.
  Pair Issue(const Request& request) {
    const Key key(EVP_EC_gen("P-256"));
    const Cert cert = Make(*key, "leaf", request, cert_.get());
    const std::string base = std::to_string(serial_);
    return {Save(base + ".pem", [&](FILE* file) { return PEM_write_X509(file, cert.get()); }),
            Save(base + ".key", [&](FILE* file) {
              return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
            })};
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* cert) const { X509_free(cert); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Cert = std::unique_ptr<X509, Free>;

  // Null issuer: of itself, a CA.
  Cert Make(EVP_PKEY& key, const std::string& name, const Request& request, X509* issuer) {
    Cert cert(X509_new());
    X509_set_version(cert.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(cert.get()), request.valid_from);
    X509_gmtime_adj(X509_getm_notAfter(cert.get()), request.valid_to);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509* const by = issuer != nullptr ? issuer : cert.get();
    X509_set_issuer_name(cert.get(), X509_get_subject_name(by));
    X509_set_pubkey(cert.get(), &key);
    Extend(*cert, *by, NID_basic_constraints, issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
    if (issuer != nullptr && !request.names.empty()) {
      Extend(*cert, *by, NID_subject_alt_name, request.names);
    }
    CHECK(X509_sign(cert.get(), key_.get(), EVP_sha256()) != 0);
    return cert;
  }
  static void Extend(X509& cert, X509& issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, &issuer, &cert, nullptr, nullptr, 0);
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    CHECK(extension != nullptr);
    X509_add_ext(&cert, extension, -1);
    X509_EXTENSION_free(extension);
  }
  template <typename WritePem>
  std::string Save(const std::string& name, WritePem write) {
    const std::string path = directory_.Sub(name);
    FILE* const file = std::fopen(path.c_str(), "w");
    CHECK(file != nullptr);
    CHECK(write(file) == 1);
    CHECK(std::fclose(file) == 0);
    return path;
  }

  TempDir directory_;
  const std::string name_;
  const Key key_;
  long serial_ = 0;
  Cert cert_;
  std::string path_;
};

}  // namespace holdfast
