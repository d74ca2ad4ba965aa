#include <gtest/gtest.h>

#include "holdfast/cluster.h"
#include "meta/gateway_server.h"
#include "meta/http/transport.h"
#include "meta/membership.h"
#include "meta/memory_meta.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/tool_run.h"

namespace holdfast {
namespace {

class ClusterCommandTest : public testing::Test {
 protected:
  ClusterCommandTest() {
    GatewayOptions options;
    options.http.address = "127.0.0.1";
    gateway_ = GatewayServer::Start(meta_, options).value();
    url_ = "http://" + EndpointText({.host = "127.0.0.1", .port = gateway_->port()});
  }
  ~ClusterCommandTest() override { gateway_->Stop(absl::ZeroDuration()); }

  MemoryMeta meta_{RealClock(), 1};
  std::unique_ptr<GatewayServer> gateway_;
  std::string url_;
};

TEST_F(ClusterCommandTest, ShowsWhoLivesAndWhoseWhatIs) {
  const auto join = [&](const std::string& name, uint64_t nonce) {
    return *Membership::Join(
        meta_, nonce, RealClock(),
        {.instance = name, .address = name + ":80", .lease_ttl = absl::Hours(1), .thread = false});
  };
  const auto one = join("one", 1);
  auto two = join("two", 2);
  ASSERT_OK_AND_ASSIGN(const uint64_t token, one->Acquire({"orders", 1, 0}));
  ASSERT_OK(two->Acquire({"orders", 1, 1}));
  ASSERT_OK(two->Acquire({"orders", 1, 2}));
  ASSERT_OK(two->Release({"orders", 1, 1}));
  two.reset();
  const ToolRun text = RunTool({"cluster", "--meta", url_});
  EXPECT_EQ(text.exit_code, kExitOk) << text.err;
  const std::vector<std::string> lines = text.lines();
  ASSERT_EQ(lines.size(), 4u) << text.out;
  EXPECT_TRUE(lines[0].starts_with("instance=one address=one:80 joined=")) << lines[0];
  EXPECT_EQ(lines[1], "topic=orders incarnation=1 partition=0 owner=one token=" +
                          std::to_string(token) + " state=owned");
  EXPECT_TRUE(lines[2].ends_with(" state=released")) << lines[2];
  EXPECT_TRUE(lines[3].ends_with(" state=abandoned")) << lines[3];
  const ToolRun json = RunTool({"cluster", "--meta", url_, "--json"});
  EXPECT_EQ(json.lines().at(1),
            R"({"topic":"orders","incarnation":1,"partition":0,"owner":"one","token":)" +
                std::to_string(token) + R"(,"state":"owned"})");
  EXPECT_EQ(meta_.List("/em/", {})->entries.size(), 4u) << "it writes nothing";
}

TEST_F(ClusterCommandTest, WhatCannotBeAskedIsTold) {
  EXPECT_EQ(RunTool({"cluster"}).exit_code, kExitUsageOrIo);
  const ToolRun wrong = RunTool({"cluster", "--meta", "127.0.0.1:1"});
  EXPECT_EQ(wrong.exit_code, kExitUsageOrIo);
  EXPECT_NE(wrong.err.find("meta_endpoints"), std::string::npos) << wrong.err;
  gateway_->Stop(absl::ZeroDuration());
  const ToolRun gone = RunTool({"cluster", "--meta", url_});
  EXPECT_EQ(gone.exit_code, kExitUsageOrIo);
  EXPECT_EQ(gone.out, "");
}

}  // namespace
}  // namespace holdfast
