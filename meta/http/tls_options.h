// TlsClientOptions and TlsServerOptions: the files that say who is who on a connection over TLS.
#pragma once

#include <string>

namespace holdfast {

struct TlsFile {
  std::string path;     // PEM, without a passphrase; read once, when the client or server is made
  std::string setting;  // what a message calls it
};

// A server's certificate is always checked: its CA, its time, and the name or address that was
// asked for, which stands among its alternative names.
struct TlsClientOptions {
  TlsFile ca{.path = {}, .setting = "ca"};      // empty path: the CAs of the system
  TlsFile cert{.path = {}, .setting = "cert"};  // empty: shows none; its CA's may follow it there
  TlsFile key{.path = {}, .setting = "key"};    // of cert
};

struct TlsServerOptions {
  TlsFile cert{.path = {}, .setting = "cert"};  // its CA's may follow it there
  TlsFile key{.path = {}, .setting = "key"};
  // Clients show a certificate of one of these CAs. Empty: they show none.
  TlsFile client_ca{.path = {}, .setting = "client_ca"};
};

}  // namespace holdfast
