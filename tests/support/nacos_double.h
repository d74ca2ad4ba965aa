// NacosDouble: a double of a Nacos server in a process of its own, on a free port of the loopback.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "meta/http/transport.h"
#include "tests/support/environment.h"
#include "tests/support/raw_socket.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"

namespace holdfast {

class NacosDouble {
 public:
  // `more`: further options of tests/meta/nacos_double.py.
  explicit NacosDouble(std::vector<std::string> more = {}) : more_(std::move(more)) { Start(); }

  HttpEndpoint endpoint() const { return {.host = "127.0.0.1", .port = port_}; }
  ServerProcess& process() { return *process_; }

  // With the same configs, at the same address. Tokens that it gave out are of no use any more.
  void Start() {
    const std::string script = TextFromEnvironment("HOLDFAST_NACOS_DOUBLE");
    EXPECT_NE(script, "") << "HOLDFAST_NACOS_DOUBLE names no script";
    std::vector<std::string> arguments = {"/usr/bin/python3", script,
                                          "--port",           std::to_string(port_),
                                          "--data",           directory_.path() + "/configs.json",
                                          "--hold-min-ms",    "0"};
    arguments.insert(arguments.end(), more_.begin(), more_.end());
    process_.reset();
    process_ = std::make_unique<ServerProcess>(std::move(arguments), "ready");
    EXPECT_TRUE(process_->ready()) << process_->greeting();
  }
  void Kill() { process_->Kill(); }

 private:
  const std::vector<std::string> more_;
  TempDir directory_;
  const uint16_t port_ = FreePort();
  std::unique_ptr<ServerProcess> process_;
};

}  // namespace holdfast
