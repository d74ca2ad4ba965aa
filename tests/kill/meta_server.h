// MetaServer: `holdfast meta-server` in a process of its own.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meta/etcd_meta.h"
#include "tests/kill/tool_process.h"
#include "tests/support/raw_socket.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace holdfast {

// One server on one directory, and a client of it.
class MetaServer {
 public:
  static constexpr std::string_view kListening = "listening on ";

  MetaServer() : transport_(NewHttpTransport({}).value()) { Start(); }

  EtcdMeta& store() { return *store_; }
  HttpTransport& transport() { return *transport_; }
  const HttpEndpoint& endpoint() const { return endpoint_; }
  ServerProcess& process() { return *process_; }

  // On the same data, at the same address as before.
  void Start() {
    process_.reset();
    process_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{ToolPath(), "meta-server", "--data", directory_.Sub("meta"),
                                 "--listen", EndpointText(endpoint_)},
        "\n");
    const std::string& greeting = process_->greeting();
    ASSERT_TRUE(greeting.starts_with(kListening)) << greeting;
    endpoint_ =
        ParseEndpoint(greeting.substr(kListening.size(), greeting.find('\n') - kListening.size()))
            .value();
    EtcdOptions options;
    options.endpoints = {endpoint_};
    store_ = *EtcdMeta::Create(*transport_, RealClock(), options);
  }
  void Kill() { process_->Kill(); }
  int Terminate() {
    store_.reset();
    return process_->Terminate();
  }
  std::string Post(const std::string& path, const std::string& body) {
    const auto answer = transport_->Send(
        endpoint_, {.method = "POST", .target = "/v3/" + path, .headers = {}, .body = body},
        absl::Seconds(20));
    EXPECT_OK(answer);
    return answer.ok() ? answer->body : "";
  }

 private:
  TempDir directory_;
  HttpEndpoint endpoint_{.host = "127.0.0.1", .port = FreePort()};
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<ServerProcess> process_;
  std::unique_ptr<EtcdMeta> store_;
};

}  // namespace holdfast
