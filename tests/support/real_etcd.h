// RealEtcd: one node of the packaged etcd on free ports of the loopback.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "meta/http/transport.h"
#include "tests/support/raw_socket.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_ca.h"

namespace holdfast {

inline constexpr char kEtcdProgram[] = "/usr/bin/etcd";

class RealEtcd {
 public:
  explicit RealEtcd(std::vector<std::string> more = {}) : RealEtcd(std::move(more), false) {}
  // Serves its clients over TLS, and only those with a certificate of that CA.
  RealEtcd(const TestCa::Pair& server, const std::string& client_ca)
      : RealEtcd({"--cert-file", server.cert, "--key-file", server.key, "--client-cert-auth",
                  "--trusted-ca-file", client_ca},
                 true) {}

  bool ready() const { return process_->ready(); }
  HttpEndpoint endpoint() const { return {.host = "127.0.0.1", .port = port_, .tls = tls_}; }
  ServerProcess& process() { return *process_; }

  // With the same data, at the same address.
  void Start() {
    const std::string client = EndpointUrl(endpoint());
    const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
    std::vector<std::string> arguments = {
        kEtcdProgram, "--name", "n", "--data-dir", directory_.path() + "/etcd",
        "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls",
        peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "n=" + peer,
        // It elects itself at once instead of within a second.
        "--heartbeat-interval", "20", "--election-timeout", "200"};
    arguments.insert(arguments.end(), more_.begin(), more_.end());
    process_.reset();
    process_ = std::make_unique<ServerProcess>(
        std::move(arguments),
        tls_ ? "serving client requests" : "serving insecure client requests");
  }
  void Kill() { process_->Kill(); }

 private:
  RealEtcd(std::vector<std::string> more, bool tls) : more_(std::move(more)), tls_(tls) { Start(); }

  const std::vector<std::string> more_;
  const bool tls_;
  TempDir directory_;
  const uint16_t port_ = FreePort(), peer_port_ = FreePort(port_);
  std::unique_ptr<ServerProcess> process_;
};

}  // namespace holdfast
