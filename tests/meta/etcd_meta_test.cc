// EtcdMeta on the packaged etcd: the conformance suite, and what becomes of calls when the server
// is killed, paused, or its answers are lost.
#include "meta/etcd_meta.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <thread>

#include "tests/meta/conformance.h"
#include "tests/meta/watch_log.h"
#include "tests/support/faulty_transport.h"
#include "tests/support/real_etcd.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Waits in earnest: a real server has no other clock.
void LetTimePass(absl::Duration by) {
  Mutex mu;
  CondVar never;
  const absl::Duration until = RealClock().Now() + by;
  MutexLock lock(mu);
  while (RealClock().Now() < until) never.WaitFor(mu, RealClock().Until(until));
}

class EtcdFixture final : public MetaFixture {
 public:
  EtcdFixture() : transport_(NewHttpTransport({}).value()) {
    EXPECT_TRUE(etcd_.ready()) << "needs the package etcd-server";
    Make();
  }
  MetaStore& store() override { return *meta_; }
  void PassTime(absl::Duration by) override { LetTimePass(by); }
  absl::Duration lease_min() const override { return absl::Seconds(2); }
  bool ForgetHistory() override {
    const uint64_t revision = meta_->List("", {.limit = 1})->revision;
    const auto answer =
        transport_->Send(etcd_.endpoint(),
                         {.method = "POST",
                          .target = "/v3/kv/compaction",
                          .headers = {},
                          .body = fmt::format(R"({{"revision":"{}","physical":true}})", revision)},
                         absl::Seconds(10));
    EXPECT_EQ(answer->status, 200) << answer->body;
    return true;
  }
  bool Restart() override {
    meta_.reset();
    etcd_.Kill();
    etcd_.Start();
    Make();
    return true;
  }

 private:
  void Make() {
    EtcdOptions options;
    options.endpoints = {etcd_.endpoint()};
    meta_ = *EtcdMeta::Create(*transport_, RealClock(), options);
  }

  RealEtcd etcd_;
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<EtcdMeta> meta_;
};

INSTANTIATE_TEST_SUITE_P(Etcd, MetaConformanceTest,
                         testing::Values(MetaBackend{
                             "Etcd", [] { return std::make_unique<EtcdFixture>(); }}),
                         BackendName);

class EtcdMetaTest : public testing::Test {
 protected:
  EtcdMetaTest() : transport_(NewHttpTransport({}).value()), network_(transport_.get()) {
    EXPECT_TRUE(etcd_.ready()) << "needs the package etcd-server";
    options_.endpoints = {etcd_.endpoint()};
    meta_ = *EtcdMeta::Create(network_, RealClock(), options_);
  }
  // From now on the answers to writes get lost, after they were carried out.
  void LoseAnswersToWrites() {
    network_.after = [](const HttpRequest& request, FaultyTransport::Result result) {
      if (request.target == "/v3/kv/txn") return FaultyTransport::Result(FaultyTransport::Lost());
      return result;
    };
  }

  RealEtcd etcd_;
  std::unique_ptr<HttpTransport> transport_;
  FaultyTransport network_;
  EtcdOptions options_;
  std::unique_ptr<EtcdMeta> meta_;
};

// Proves: S3
TEST_F(EtcdMetaTest, AWriteWhoseAnswerIsLostIsFoundByItsRequestIdAndNotSentAgain) {
  LoseAnswersToWrites();
  ASSERT_OK_AND_ASSIGN(const uint64_t put, meta_->Put("k", "1", {.request_id = "a"}));
  ASSERT_OK_AND_ASSIGN(const uint64_t set,
                       meta_->CompareAndSet("k", put, "2", {.request_id = "b"}));
  ASSERT_OK(meta_->PutIfAbsent("other", "", {.request_id = "c"}));
  ASSERT_OK_AND_ASSIGN(const MetaEntry entry, meta_->Get("k", {}));
  EXPECT_EQ(entry.value, "2");
  EXPECT_EQ(entry.revision, set);
  EXPECT_EQ(entry.version, 2u);
  EXPECT_EQ(network_.CountSent("/v3/kv/txn"), 3u);
}

// Proves: S3
TEST_F(EtcdMetaTest, AWriteThatCannotBeFoundStaysUnknown) {
  ASSERT_OK(meta_->Put("k", "0", {.request_id = "before"}));
  LoseAnswersToWrites();
  EXPECT_FAILS(meta_->Put("k", "1", {}), kUnavailable, kUnknownOutcome);
  EXPECT_EQ(meta_->Get("k", {})->value, "1");
  EXPECT_FAILS(meta_->Delete("k", {}), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(meta_->Get("k", {}), kNotFound, kNone);
  // Refused by its condition, but nobody heard that.
  EXPECT_FAILS(meta_->CompareAndSet("k", 1, "2", {.request_id = "x"}), kUnavailable,
               kUnknownOutcome);
  EXPECT_EQ(network_.CountSent("/v3/kv/txn"), 4u);
}

// Proves: S2
TEST_F(EtcdMetaTest, AnOutageIsToldAndAbsentIsNotUnreachable) {
  ASSERT_OK(meta_->Put("k", "1", {}));
  EXPECT_EQ(MetaResultOf(meta_->Get("absent", {}).status()), MetaResult::kNotFound);
  etcd_.Kill();
  EXPECT_EQ(MetaResultOf(meta_->Get("absent", {}).status()), MetaResult::kUnavailable);
  EXPECT_EQ(MetaResultOf(meta_->List("", {}).status()), MetaResult::kUnavailable);
  EXPECT_EQ(MetaResultOf(meta_->Delete("k", {}).status()), MetaResult::kUnavailable);
  EXPECT_EQ(MetaResultOf(meta_->GrantLease(absl::Seconds(5), {}).status()),
            MetaResult::kUnavailable);
  etcd_.Start();
  EXPECT_EQ(meta_->Get("k", {})->value, "1");
}

// Proves: S2, S3
TEST_F(EtcdMetaTest, AServerThatIsPausedLeavesWritesUnknownAndReadsUnavailable) {
  ASSERT_OK(meta_->Put("k", "1", {}));
  etcd_.process().Signal(SIGSTOP);
  const absl::Duration timeout = absl::Milliseconds(200);
  EXPECT_EQ(MetaResultOf(meta_->Put("k", "2", {.request_id = "r", .timeout = timeout}).status()),
            MetaResult::kUnknown);
  EXPECT_EQ(MetaResultOf(meta_->Get("k", {.timeout = timeout}).status()), MetaResult::kUnavailable);
  etcd_.process().Signal(SIGCONT);
  // It was on its way all the time, and may be carried out even now: that is why it was unknown.
  ASSERT_OK(meta_->Put("after", "", {}));
  ASSERT_OK_AND_ASSIGN(const MetaEntry entry, meta_->Get("k", {}));
  EXPECT_TRUE(entry.request_id == "r" || entry.value == "1");
}

TEST_F(EtcdMetaTest, AnotherEndpointTakesOver) {
  EtcdOptions options;
  options.endpoints = {{.host = "127.0.0.1", .port = RawListener().port()}, etcd_.endpoint()};
  ASSERT_OK_AND_ASSIGN(const auto meta, EtcdMeta::Create(network_, RealClock(), options));
  EXPECT_OK(meta->Put("k", "1", {}));
  EXPECT_EQ(meta->Get("k", {})->value, "1");
}

// Proves: S1
TEST_F(EtcdMetaTest, AWatchGoesOnWhereItStoodAfterTheServerWasKilled) {
  WatchLog log(*meta_, "w/", 1);
  for (int i = 0; i < 10; ++i) ASSERT_OK(meta_->Put("w/" + std::to_string(i), "", {}));
  log.AwaitEvents(10);
  etcd_.Kill();
  etcd_.Start();
  for (int i = 10; i < 20; ++i) ASSERT_OK(meta_->Put("w/" + std::to_string(i), "", {}));
  const std::vector<MetaEvent> events = log.AwaitEvents(20);
  ASSERT_EQ(events.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(events[i].entry.key, "w/" + std::to_string(i));
  EXPECT_FALSE(log.resynced());
}

TEST_F(EtcdMetaTest, ManyWatchesShareOneStreamAndComeAndGo) {
  WatchLog a(*meta_, "a/", 1), b(*meta_, "b/", 1), all(*meta_, "", 1);
  ASSERT_OK(meta_->Put("a/1", "", {}));
  ASSERT_OK(meta_->Put("b/1", "", {}));
  EXPECT_EQ(all.AwaitEvents(2).size(), 2u);
  EXPECT_EQ(a.AwaitEvents(1).size(), 1u);
  EXPECT_EQ(b.AwaitEvents(1).size(), 1u);
  a.Close();
  WatchLog late(*meta_, "a/", 1);
  ASSERT_OK(meta_->Put("a/2", "", {}));
  EXPECT_EQ(late.AwaitEvents(2).size(), 2u);
  EXPECT_EQ(all.AwaitEvents(3).size(), 3u);
  EXPECT_EQ(a.events().size(), 1u);
}

TEST_F(EtcdMetaTest, AWatchIsNotStaleWhileTheServerAnswersAndGrowsStaleWhenItDoesNot) {
  options_.watch_idle_max = absl::Milliseconds(50);
  ASSERT_OK_AND_ASSIGN(const auto meta, EtcdMeta::Create(network_, RealClock(), options_));
  WatchLog log(*meta, "s/", 1);
  // However long it takes: without an event, only the word of the server makes it fall.
  absl::Duration before = log.watch().Staleness();
  while (log.watch().Staleness() >= before) before = log.watch().Staleness();
  etcd_.process().Signal(SIGSTOP);
  const absl::Duration stale = absl::Seconds(1);
  while (log.watch().Staleness() < stale) std::this_thread::yield();
  etcd_.process().Signal(SIGCONT);
  while (log.watch().Staleness() >= stale) std::this_thread::yield();
}

TEST_F(EtcdMetaTest, UsersAndTokens) {
  const auto admin = [&](const std::string& path, const std::string& body) {
    const auto answer = transport_->Send(
        etcd_.endpoint(),
        {.method = "POST", .target = "/v3/auth/" + path, .headers = {}, .body = body},
        absl::Seconds(10));
    ASSERT_OK(answer);
    EXPECT_EQ(answer->status, 200) << path << ": " << answer->body;
  };
  options_.user = "root";
  options_.password = "pw";
  ASSERT_OK_AND_ASSIGN(const auto meta, EtcdMeta::Create(network_, RealClock(), options_));
  EXPECT_OK(meta->Put("k", "without", {}));  // It says that it wants no users.
  admin("user/add", R"({"name":"root","password":"pw"})");
  admin("role/add", R"({"name":"root"})");
  admin("user/grant", R"({"user":"root","role":"root"})");
  admin("enable", "{}");
  EXPECT_OK(meta->Put("k", "with", {}));
  EXPECT_EQ(meta->Get("k", {})->value, "with");
  EXPECT_FAILS(meta_->Put("k", "nobody", {}), kUnauthenticated, kNone);
  WatchLog log(*meta, "k", 1);
  EXPECT_EQ(log.AwaitEvents(2).size(), 2u);
  WatchLog refused(*meta_, "k", 1);
  EXPECT_FALSE(refused.AwaitResync().reason.ok());
}

TEST(EtcdMetaCreateTest, OptionsThatCannotWorkAreRefused) {
  FaultyTransport network(nullptr);
  EXPECT_FAILS(EtcdMeta::Create(network, RealClock(), {}), kInvalidArgument, kNone);
  EtcdOptions options;
  options.endpoints = {{"a", 1}};
  options.prefix = "v3";
  EXPECT_FAILS(EtcdMeta::Create(network, RealClock(), options), kInvalidArgument, kNone);
}

}  // namespace
}  // namespace holdfast
