// `holdfast meta-server` as a process of its own: the conformance suite, and kills in the middle of
// writing, after which nothing that was confirmed is missing and no revision is used again.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "meta/etcd_meta.h"
#include "tests/kill/meta_server.h"
#include "tests/kill/tool_process.h"
#include "tests/meta/conformance.h"
#include "tests/meta/watch_log.h"
#include "tests/support/foreign_client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace holdfast {
namespace {

class MetaServerFixture final : public MetaFixture {
 public:
  MetaStore& store() override { return server_.store(); }
  void PassTime(absl::Duration by) override {
    Mutex mu;
    CondVar never;
    const absl::Duration until = RealClock().Now() + by;
    MutexLock lock(mu);
    while (RealClock().Now() < until) never.WaitFor(mu, RealClock().Until(until));
  }
  absl::Duration lease_min() const override { return absl::Seconds(2); }
  bool ForgetHistory() override {
    const uint64_t revision = store().List("", {.limit = 1})->revision;
    server_.Post("kv/compaction", fmt::format(R"({{"revision":"{}"}})", revision));
    return true;
  }
  bool Restart() override {
    server_.Kill();
    server_.Start();
    return true;
  }

 private:
  MetaServer server_;
};

INSTANTIATE_TEST_SUITE_P(MetaServer, MetaConformanceTest,
                         testing::Values(MetaBackend{
                             "MetaServer", [] { return std::make_unique<MetaServerFixture>(); }}),
                         BackendName);

struct Confirmed {
  std::string key, value;
  uint64_t revision = 0;
};

// Writes until the server is gone; returns what it confirmed, in order.
std::vector<Confirmed> WriteUntilGone(MetaStore& store, const std::string& prefix,
                                      std::atomic<uint64_t>& confirmed_count) {
  std::vector<Confirmed> confirmed;
  for (int i = 0;; ++i) {
    Confirmed write{.key = prefix + std::to_string(i), .value = std::to_string(i)};
    const auto revision =
        store.Put(write.key, write.value, {.request_id = {}, .timeout = absl::Seconds(30)});
    if (!revision.ok()) return confirmed;
    write.revision = *revision;
    confirmed.push_back(std::move(write));
    ++confirmed_count;
  }
}

// Proves: S1, G11
TEST(MetaServerKillTest, NothingConfirmedIsLostAndNoRevisionIsUsedTwice) {
  MetaServer server;
  std::map<uint64_t, std::string> key_of_revision;
  uint64_t newest = 0;
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    std::atomic<uint64_t> confirmed_count = 0;
    std::vector<std::vector<Confirmed>> confirmed(4);
    std::vector<std::thread> writers;
    for (size_t i = 0; i < confirmed.size(); ++i) {
      writers.emplace_back([&, i] {
        confirmed[i] =
            WriteUntilGone(server.store(), fmt::format("{}/{}/", round, i), confirmed_count);
      });
    }
    while (confirmed_count < uint64_t{200} * (round + 1)) std::this_thread::yield();
    server.Kill();
    for (std::thread& writer : writers) writer.join();
    server.Start();
    const uint64_t newest_before = newest;
    for (const auto& writes : confirmed) {
      for (const Confirmed& write : writes) {
        EXPECT_GT(write.revision, newest_before) << write.key;
        EXPECT_TRUE(key_of_revision.emplace(write.revision, write.key).second) << write.key;
        newest = std::max(newest, write.revision);
        ASSERT_OK_AND_ASSIGN(const MetaEntry entry, server.store().Get(write.key, {}));
        EXPECT_EQ(entry.value, write.value);
        EXPECT_EQ(entry.revision, write.revision);
      }
    }
    ASSERT_OK_AND_ASSIGN(const MetaList list, server.store().List("", {}));
    EXPECT_GE(list.revision, newest);
    newest = list.revision;
  }
}

TEST(MetaServerKillTest, LeasesHaveTheirFullTimeAgainAfterAKill) {
  MetaServer server;
  ASSERT_OK_AND_ASSIGN(const MetaLease lease, server.store().GrantLease(absl::Seconds(3), {}));
  ASSERT_OK(server.store().Put("k", "", {.lease = lease.id}));
  server.Kill();
  server.Start();
  EXPECT_OK(server.store().Get("k", {}));
  EXPECT_OK(server.store().KeepAlive(lease.id, {}));
}

// The clients know it again, and a watch goes on or is told to list.
TEST(MetaServerKillTest, AWatchGoesOnOrIsToldToListAgain) {
  MetaServer server;
  EtcdOptions options;
  options.endpoints = {server.endpoint()};
  ASSERT_OK_AND_ASSIGN(const auto store,
                       EtcdMeta::Create(server.transport(), RealClock(), options));
  WatchLog log(*store, "w/", 1);
  ASSERT_OK(store->Put("w/1", "", {}));
  log.AwaitEvents(1);
  server.Kill();
  server.Start();
  // The same client, which remembers who answered it and at which revision.
  ASSERT_OK(store->Put("w/2", "", {}));
  log.AwaitEvents(2);
  ASSERT_OK_AND_ASSIGN(const MetaList list, store->List("w/", {}));
  EXPECT_EQ(list.entries.size(), 2u);
  EXPECT_TRUE(log.resynced() || log.events().size() == 2);
}

// 22 tests that ask the server, and five that do not need one.
TEST(MetaServerKillTest, TheTestsOfAForeignClientPass) {
  MetaServer server;
  const std::string told = RunPythonClient("HOLDFAST_ETCD3GW_SUITE", server.endpoint());
  EXPECT_TRUE(told.ends_with("\n27 ran\n")) << told;
}

TEST(MetaServerKillTest, ATermSignalStopsItCleanly) {
  MetaServer server;
  ASSERT_OK(server.store().Put("k", "v", {}));
  const int end = server.Terminate();
  EXPECT_TRUE(WIFEXITED(end) && WEXITSTATUS(end) == 0) << end;
  server.Start();
  EXPECT_EQ(server.store().Get("k", {})->value, "v");
}

TEST(MetaServerKillTest, WhatCannotBeServedIsToldAndChangesNothing) {
  TempDir directory;
  const std::string data = directory.Sub("meta");
  struct Wrong {
    std::vector<std::string> arguments;
    const char* told;
  };
  const std::vector<Wrong> wrong = {
      {{}, "--data is required"},
      {{"--data", data, "--listen", "nowhere"}, "--listen: endpoint: no port"},
      {{"--data", data, "--listen", "127.0.0.1:99999"}, "--listen: endpoint: not a port"},
      {{"--data", data, "--listen", "localhost:0"}, "localhost is no numeric address"},
      {{"--data", ""}, "--data: it is empty"},
      {{"--data", data, "--name", ""}, "--name: it is empty"},
      {{"--data", data, "--cert", "/c"}, "--cert and --key go together"},
      {{"--data", data, "--client-ca", "/c"}, "--client-ca: it goes with --cert and --key"},
      {{"--data", data, "--cert", "/c", "--key", "/k"}, "--cert: /c: it cannot be read: No such"},
      {{"--data", data, "--bogus"}, "--bogus"},
      {{"--data", data, "extra"}, "extra"},
  };
  for (const auto& [arguments, told] : wrong) {
    std::vector<std::string> all = {"meta-server"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ToolOutput output = RunToolProcess(all);
    EXPECT_EQ(output.end.exit_code, 3) << output.text;
    EXPECT_NE(output.text.find(told), std::string::npos) << output.text;
  }
  EXPECT_FALSE(std::filesystem::exists(data));
  MetaServer server;
  const ToolOutput taken =
      RunToolProcess({"meta-server", "--data", data, "--listen", EndpointText(server.endpoint())});
  EXPECT_EQ(taken.end.exit_code, 3);
  EXPECT_NE(taken.text.find("cannot listen on 127.0.0.1"), std::string::npos) << taken.text;
}

}  // namespace
}  // namespace holdfast
