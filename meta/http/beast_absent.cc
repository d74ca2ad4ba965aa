// In place of the Beast files in a build without Boost.
#include "meta/http/server.h"
#include "meta/http/transport.h"

namespace holdfast {

StatusOr<std::unique_ptr<HttpTransport>> NewHttpTransport(const HttpClientOptions&) {
  return WrongState(Detail::kNone, "this build has no HTTP: configure it with -Dhttp=enabled");
}

Status HttpServer::CheckFiles(const TlsServerOptions&) {
  return WrongState(Detail::kNone, "this build has no HTTP: configure it with -Dhttp=enabled");
}

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpServerOptions&,
                                                         std::vector<HttpRoute>) {
  return WrongState(Detail::kNone, "this build has no HTTP: configure it with -Dhttp=enabled");
}

}  // namespace holdfast
