#include <memory>

#include "holdfast/engine.h"
#include "journal/base/bytes.h"
#include "journal/base/check.h"
#include "journal/base/checksum.h"
#include "meta/gateway_server.h"
#include "meta/http/server.h"
#include "meta/http/transport.h"
#include "meta/mvcc_meta.h"
#include "tools/command.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "meta-server";
constexpr absl::Duration kStopCheck = absl::Milliseconds(50);
constexpr absl::Duration kStopGrace = absl::Seconds(10);

// The same at every start, so that clients know it again.
GatewayIdentity IdentityOf(std::string_view name) {
  return {.cluster_id = Checksum(AsBytes(name), 1), .member_id = Checksum(AsBytes(name), 2)};
}

Status Serve(const MetaServerCommand& options, LogSink& log, Console& console) {
  ASSIGN_OR_RETURN(const HttpEndpoint listen, ParseEndpoint(options.listen));
  GatewayOptions gateway_options;
  gateway_options.identity = IdentityOf(options.name);
  gateway_options.name = options.name;
  gateway_options.http.address = listen.host;
  gateway_options.http.port = listen.port;
  if (!options.cert.empty()) {
    gateway_options.http.tls =
        TlsServerOptions{.cert = {.path = options.cert, .setting = "--cert"},
                         .key = {.path = options.key, .setting = "--key"},
                         .client_ca = {.path = options.client_ca, .setting = "--client-ca"}};
    // A file that cannot serve is told before anything is made.
    RETURN_IF_ERROR(HttpServer::CheckFiles(*gateway_options.http.tls));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   Engine::Open(OptionsForWriting(options.directory, options.writer, log)));
  // An engine's own Meta always is one.
  auto* const meta = dynamic_cast<MvccMeta*>(&engine->meta());
  CHECK(meta != nullptr);
  ASSIGN_OR_RETURN(const std::unique_ptr<GatewayServer> gateway,
                   GatewayServer::Start(*meta, gateway_options));
  console.out << "listening on " << EndpointText({.host = listen.host, .port = gateway->port()})
              << (options.cert.empty() ? "\n" : " over TLS\n");
  console.out.flush();
  while (!console.stop_requested()) Pause(kStopCheck);
  gateway->Stop(kStopGrace);
  RETURN_IF_ERROR(engine->Close());
  console.out << "stopped\n";
  return absl::OkStatus();
}

}  // namespace

int RunMetaServer(const MetaServerCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  const Status served = Serve(options, log, console);
  return served.ok() ? kExitOk : Fail(console, kCommand, served);
}

}  // namespace holdfast
