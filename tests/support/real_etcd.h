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

namespace holdfast {

inline constexpr char kEtcdProgram[] = "/usr/bin/etcd";

class RealEtcd {
 public:
  explicit RealEtcd(std::vector<std::string> more = {}) : more_(std::move(more)) { Start(); }

  bool ready() const { return process_->ready(); }
  HttpEndpoint endpoint() const { return {.host = "127.0.0.1", .port = port_}; }
  ServerProcess& process() { return *process_; }

  // With the same data, at the same address.
  void Start() {
    const std::string client = "http://127.0.0.1:" + std::to_string(port_);
    const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
    std::vector<std::string> arguments = {
        kEtcdProgram, "--name", "n", "--data-dir", directory_.path() + "/etcd",
        "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls",
        peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "n=" + peer,
        // It elects itself at once instead of within a second.
        "--heartbeat-interval", "20", "--election-timeout", "200"};
    arguments.insert(arguments.end(), more_.begin(), more_.end());
    process_.reset();
    process_ =
        std::make_unique<ServerProcess>(std::move(arguments), "serving insecure client requests");
  }
  void Kill() { process_->Kill(); }

 private:
  static uint16_t FreePort() { return RawListener().port(); }

  const std::vector<std::string> more_;
  TempDir directory_;
  const uint16_t port_ = FreePort(), peer_port_ = FreePort();
  std::unique_ptr<ServerProcess> process_;
};

}  // namespace holdfast
