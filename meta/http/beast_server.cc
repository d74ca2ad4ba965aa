#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "journal/base/check.h"
#include "meta/http/beast_connection.h"
#include "meta/http/routes.h"
#include "meta/http/server.h"

namespace holdfast {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr size_t kHeadBytesLimit = size_t{32} << 10;    // Beast counts a field's bytes in 16 bits.
constexpr std::chrono::milliseconds kAcceptRetry(100);  // The process has no descriptor left.
constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

class BeastServer final : public HttpServer {
 public:
  BeastServer(const HttpServerOptions& options, std::unique_ptr<TlsContext> tls,
              std::vector<HttpRoute> routes)
      : gate_(std::make_shared<Gate>(loop_)),
        core_{.options = options,
              .tls = std::move(tls),
              .routes = Routes(std::move(routes)),
              .gate = gate_,
              .connection_closed = [this] { FinishWhenEmpty(); }},
        acceptor_(loop_),
        retry_(loop_),
        grace_(loop_) {}
  ~BeastServer() override { Stop(absl::ZeroDuration()); }

  Status Listen() {
    ErrorCode error;
    const auto address = asio::ip::make_address(core_.options.address, error);
    if (error) return Invalid("HTTP server: {} is no numeric address", core_.options.address);
    const Tcp::endpoint endpoint(address, core_.options.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(Tcp::acceptor::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (error) {
      return Unavailable(Detail::kIo, "HTTP server: cannot listen on {} port {}: {}",
                         core_.options.address, core_.options.port, error.message());
    }
    return absl::OkStatus();
  }

  void Serve() override {
    CHECK(!thread_.joinable());
    Accept();
    thread_ = std::thread([this] { loop_.run(); });
  }

  uint16_t port() const override { return port_; }

  HttpServerStats Stats() const override {
    return {.connections = core_.open,
            .streams = core_.streams,
            .requests = core_.requests,
            .refused = core_.refused,
            .slow_readers = core_.slow_readers};
  }

  void Stop(absl::Duration grace) override {
    if (!thread_.joinable()) return;
    gate_->Post([this, grace] { BeginStop(grace); });
    thread_.join();
    gate_->Shut();
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](ErrorCode error, Tcp::socket socket) {
      if (core_.stopping) return;
      if (error) {
        retry_.expires_after(kAcceptRetry);
        return retry_.async_wait([this](ErrorCode) {
          if (!core_.stopping) Accept();
        });
      }
      Greet(std::move(socket));
      Accept();
    });
  }

  void Greet(Tcp::socket socket) {
    ErrorCode ignored;  // Without it answers are only later.
    socket.set_option(Tcp::no_delay(true), ignored);
    if (core_.open >= core_.options.connections_max) {
      ++core_.refused;
      socket.non_blocking(true, ignored);
      // In the middle of a handshake nobody would understand it.
      if (core_.tls == nullptr) {
        socket.write_some(asio::buffer(kTooMany.data(), kTooMany.size()), ignored);
      }
      return;
    }
    ++core_.open;
    const auto connection = std::make_shared<Connection>(core_, std::move(socket));
    core_.connections.insert(connection);
    connection->Start();
  }

  void BeginStop(absl::Duration grace) {
    core_.stopping = true;
    ErrorCode ignored;  // It accepts nothing more, closed or not.
    acceptor_.close(ignored);
    retry_.cancel();
    const auto open = core_.connections;
    for (const auto& connection : open) connection->Finish();
    if (core_.connections.empty()) return;
    grace_.expires_after(absl::ToChronoNanoseconds(grace));
    grace_.async_wait([this](ErrorCode error) {
      if (error) return;
      const auto left = core_.connections;
      for (const auto& connection : left) connection->Close();
    });
  }

  void FinishWhenEmpty() {
    if (core_.stopping && core_.connections.empty()) grace_.cancel();
  }

  asio::io_context loop_{1};
  const std::shared_ptr<Gate> gate_;  // last owner: the last reply
  ServerCore core_;
  Tcp::acceptor acceptor_;
  asio::steady_timer retry_, grace_;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace

Status HttpServer::CheckFiles(const TlsServerOptions& tls) {
  return TlsContext::ForServer(tls).status();
}

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpServerOptions& options,
                                                         std::vector<HttpRoute> routes) {
  if (options.head_bytes_max > kHeadBytesLimit) {
    return Invalid("HTTP server: head_bytes_max {} is over {}", options.head_bytes_max,
                   kHeadBytesLimit);
  }
  std::unique_ptr<TlsContext> tls;
  if (options.tls.has_value()) {
    ASSIGN_OR_RETURN(tls, TlsContext::ForServer(*options.tls));
  }
  auto server = std::make_unique<BeastServer>(options, std::move(tls), std::move(routes));
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace holdfast
