// NacosMeta on a double of Nacos, over both of its interfaces: the conformance suite as far as it
// goes, races, and what becomes of calls when answers are lost or the server goes.
#include "meta/nacos_meta.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/meta/conformance.h"
#include "tests/meta/meta_history.h"
#include "tests/support/faulty_transport.h"
#include "tests/support/foreign_client.h"
#include "tests/support/nacos_double.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"

namespace holdfast {
namespace {

using Result = FaultyTransport::Result;

NacosOptions OptionsFor(NacosApi api, const HttpEndpoint& endpoint) {
  NacosOptions options;
  options.endpoints = {endpoint};
  options.place.api = api;
  options.look_interval = absl::Milliseconds(50);
  return options;
}
std::string NameOf(NacosApi api) { return api == NacosApi::kV1 ? "V1" : "V3"; }

class NacosFixture final : public MetaFixture {
 public:
  explicit NacosFixture(NacosApi api) : api_(api), transport_(NewHttpTransport({}).value()) {
    Make();
  }
  MetaStore& store() override { return *meta_; }
  void PassTime(absl::Duration) override {}  // of leases only, which there are none of
  absl::Duration lease_min() const override { return absl::ZeroDuration(); }
  bool ForgetHistory() override { return true; }  // It keeps none.
  bool Restart() override {
    meta_.reset();
    nacos_.Kill();
    nacos_.Start();
    Make();
    return true;
  }
  bool Can(MetaAbility) const override { return false; }

 private:
  void Make() {
    meta_ =
        *NacosMeta::Create(*transport_, RealClock(), OptionsFor(api_, nacos_.endpoint()), ++boots_);
  }

  const NacosApi api_;
  uint64_t boots_ = 0;
  NacosDouble nacos_;
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<NacosMeta> meta_;
};

MetaBackend Backend(NacosApi api) {
  return {"Nacos" + NameOf(api), [api] { return std::make_unique<NacosFixture>(api); }};
}
INSTANTIATE_TEST_SUITE_P(Nacos, MetaConformanceTest,
                         testing::Values(Backend(NacosApi::kV1), Backend(NacosApi::kV3)),
                         BackendName);

class NacosMetaTest : public testing::TestWithParam<NacosApi> {
 protected:
  NacosMetaTest() : transport_(NewHttpTransport({}).value()), network_(transport_.get()) {}
  std::unique_ptr<NacosMeta> Make(uint64_t nonce) { return Make(network_, nonce); }
  std::unique_ptr<NacosMeta> Make(HttpTransport& network, uint64_t nonce) {
    return *NacosMeta::Create(network, RealClock(), OptionsFor(GetParam(), nacos_.endpoint()),
                              nonce);
  }
  static bool IsPublish(const HttpRequest& request) {
    return FindHeader(request.headers, "casMd5") != nullptr;
  }
  size_t Published() {
    size_t count = 0;
    for (const FaultyTransport::Sent& sent : network_.sent()) count += IsPublish(sent.request);
    return count;
  }
  // From now on the answers to writes get lost, after they were carried out.
  void LoseAnswersToWrites() {
    network_.after = [](const HttpRequest& request, Result result) {
      return IsPublish(request) ? Result(FaultyTransport::Lost()) : result;
    };
  }

  NacosDouble nacos_;
  std::unique_ptr<HttpTransport> transport_;
  FaultyTransport network_;
};
INSTANTIATE_TEST_SUITE_P(Nacos, NacosMetaTest, testing::Values(NacosApi::kV1, NacosApi::kV3),
                         [](const auto& info) { return NameOf(info.param); });

// Proves: S3
TEST_P(NacosMetaTest, AWriteWhoseAnswerIsLostIsFoundAndNotSentAgain) {
  const auto meta = Make(1);
  ASSERT_OK(meta->Put("first", "", {}));
  const size_t before = Published();
  LoseAnswersToWrites();
  ASSERT_OK_AND_ASSIGN(const uint64_t put, meta->Put("k", "1", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t set, meta->CompareAndSet("k", put, "2", {}));
  EXPECT_EQ(meta->Get("k", {})->revision, set);
  EXPECT_EQ(meta->Get("k", {})->version, 2u);
  ASSERT_OK(meta->Delete("k", {}));
  ASSERT_OK(meta->PutIfAbsent("k", "3", {.request_id = "c"}));
  EXPECT_EQ(meta->Get("k", {})->request_id, "c");
  EXPECT_EQ(Published() - before, 4u);
}

// Proves: S2, S3
TEST_P(NacosMetaTest, AWriteThatCannotBeFoundStaysUnknown) {
  const auto meta = Make(1);
  ASSERT_OK(meta->Put("k", "0", {}));
  // It does not arrive, and may yet for all that anybody knows.
  network_.before = [](const HttpEndpoint&, const HttpRequest& request) {
    return IsPublish(request) ? std::optional<Result>(FaultyTransport::Lost()) : std::nullopt;
  };
  EXPECT_FAILS(meta->Put("k", "1", {.request_id = "r"}), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(meta->Delete("k", {}), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(meta->PutIfAbsent("new", "1", {}), kUnavailable, kUnknownOutcome);
  EXPECT_EQ(meta->Get("k", {})->value, "0");
}

// Proves: S3
TEST_P(NacosMetaTest, AWriteThatWasOvertakenIsKnownNotToHaveHappened) {
  const auto meta = Make(1), other = Make(*transport_, 2);
  ASSERT_OK_AND_ASSIGN(const uint64_t at, meta->Put("k", "0", {}));
  // Another write takes its place just before, and its refusal is lost.
  std::atomic<bool> overtaken{false};
  network_.before = [&](const HttpEndpoint&, const HttpRequest& request) -> std::optional<Result> {
    if (IsPublish(request) && !overtaken.exchange(true)) {
      EXPECT_OK(other->Put("k", "other", {}));
      return FaultyTransport::Lost();
    }
    return std::nullopt;
  };
  EXPECT_FAILS(meta->CompareAndSet("k", at, "1", {}), kAborted, kConflict);
  EXPECT_EQ(meta->Get("k", {})->value, "other");
  overtaken = false;
  EXPECT_OK(meta->Put("k", "2", {}));  // Unconditional, so it is simply written over that.
  EXPECT_EQ(meta->Get("k", {})->value, "2");
}

// Proves: S1, S5
TEST_P(NacosMetaTest, OfRacingProcessesExactlyOneCreatesAndNoIncrementIsLost) {
  constexpr int kProcesses = 3, kEach = 8;
  std::vector<std::unique_ptr<NacosMeta>> processes;
  for (int i = 0; i < kProcesses; ++i) processes.push_back(Make(i + 1));
  std::atomic<int> created{0};
  std::atomic<bool> went_back{false};
  std::vector<std::thread> threads;
  for (const auto& meta : processes) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        if (meta->PutIfAbsent("create/" + std::to_string(i), "", {}).ok()) ++created;
      }
      (void)meta->PutIfAbsent("n", "0", {});  // one of them does
      uint64_t newest = 0;
      for (int done = 0; done < kEach;) {
        const auto entry = meta->Get("n", {});
        ASSERT_OK(entry);
        if (entry->revision < newest) went_back = true;
        newest = entry->revision;
        const auto set = meta->CompareAndSet("n", entry->revision,
                                             std::to_string(std::stoi(entry->value) + 1), {});
        if (set.ok()) ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, kEach);
  EXPECT_EQ(processes.front()->Get("n", {})->value, std::to_string(kProcesses * kEach));
  EXPECT_FALSE(went_back);
}

// Proves: S1, S4
TEST_P(NacosMetaTest, TheRevisionsOfAKeyGoOnOverDeletionsProcessesAndRestarts) {
  uint64_t last = 0;
  for (uint64_t nonce = 1; nonce <= 3; ++nonce) {
    const auto meta = Make(nonce);
    EXPECT_FAILS(meta->CompareAndSet("k", last, "late", {}), kAborted, kConflict);
    ASSERT_OK_AND_ASSIGN(const uint64_t put, meta->PutIfAbsent("k", "", {}));
    EXPECT_GT(put, last);
    EXPECT_EQ(meta->Get("k", {})->version, 1u);
    EXPECT_EQ(meta->Get("k", {})->create_revision, put);
    ASSERT_OK_AND_ASSIGN(last, meta->DeleteAt("k", put, {}));
    EXPECT_GT(last, put);
    nacos_.Kill();
    nacos_.Start();
  }
}

// Proves: S1, S3
TEST_P(NacosMetaTest, ConcurrentClientsSeeOneOrderOfEachKey) {
  for (const uint64_t seed : Seeds(12)) {
    std::vector<std::unique_ptr<FaultyTransport>> networks;
    std::vector<std::unique_ptr<NacosMeta>> clients;
    std::vector<MetaStore*> stores;
    Mutex mu;
    SeededRng rng(seed);
    for (uint64_t i = 0; i < 3; ++i) {
      networks.push_back(std::make_unique<FaultyTransport>(transport_.get()));
      networks.back()->after = [&](const HttpRequest&, Result result) {
        MutexLock lock(mu);
        return rng.OneIn(8) ? Result(FaultyTransport::Lost()) : std::move(result);
      };
      clients.push_back(Make(*networks.back(), seed * 10 + i));
      stores.push_back(clients.back().get());
    }
    const auto observer = Make(*transport_, seed * 10 + 9);
    const bool kill = seed % 4 == 0;
    RunMetaHistory(stores, *observer,
                   {.seed = seed,
                    .timeout = absl::Seconds(2),
                    .disturb =
                        [&](size_t operation) {
                          if (!kill || operation != 5) return;
                          nacos_.Kill();
                          nacos_.Start();
                        },
                    .watches = false});
    if (HasFailure()) return;
  }
}

// Proves: S2, S3
TEST_P(NacosMetaTest, WhatACutNetworkOrAStoppedServerLeavesIsToldAsItIs) {
  TcpProxy proxy(nacos_.endpoint().port);
  NacosOptions options = OptionsFor(GetParam(), {.host = "127.0.0.1", .port = proxy.port()});
  ASSERT_OK_AND_ASSIGN(const auto meta, NacosMeta::Create(*transport_, RealClock(), options, 1));
  ASSERT_OK(meta->Put("k", "1", {}));
  const absl::Duration timeout = absl::Milliseconds(300);
  const auto result = [](const auto& answer) { return MetaResultOf(answer.status()); };
  proxy.Set(TcpProxy::Mode::kCut);
  EXPECT_EQ(result(meta->Get("absent", {.timeout = timeout})), MetaResult::kUnavailable);
  EXPECT_EQ(result(meta->List("", {.timeout = timeout})), MetaResult::kUnavailable);
  EXPECT_EQ(result(meta->Put("k", "2", {.timeout = timeout})), MetaResult::kUnavailable);
  proxy.Set(TcpProxy::Mode::kPass);
  EXPECT_EQ(meta->Get("k", {})->value, "1");
  nacos_.process().Signal(SIGSTOP);
  EXPECT_EQ(result(meta->Get("k", {.timeout = timeout})), MetaResult::kUnavailable);
  nacos_.process().Signal(SIGCONT);
  EXPECT_EQ(result(meta->Get("absent", {})), MetaResult::kNotFound);
  nacos_.Kill();
  EXPECT_EQ(result(meta->Put("k", "3", {.timeout = timeout})), MetaResult::kUnavailable);
  nacos_.Start();
  EXPECT_EQ(meta->Get("k", {})->value, "1");
}

TEST_P(NacosMetaTest, ATransactionOverOneKeyIsDecidedByAllOfItsConditions) {
  const auto meta = Make(1);
  using Must = MetaCondition::Must;
  const MetaChange put{.key = "k", .value = "1"},
      remove{.kind = MetaChange::Kind::kDelete, .key = "k"};
  EXPECT_FAILS(meta->Transact({.conditions = {{.key = "k", .must = Must::kExist}}}, {}), kAborted,
               kConflict);
  ASSERT_OK_AND_ASSIGN(
      const uint64_t made,
      meta->Transact({.conditions = {{.key = "k", .must = Must::kBeAbsent}}, .changes = {put}},
                     {}));
  EXPECT_FAILS(meta->Transact({.conditions = {{.key = "k", .must = Must::kExist},
                                              {.key = "k", .revision = made + 1}},
                               .changes = {put}},
                              {}),
               kAborted, kConflict);
  ASSERT_OK(
      meta->Transact({.conditions = {{.key = "k", .revision = made}}, .changes = {remove}}, {}));
  EXPECT_FAILS(meta->Get("k", {}), kNotFound, kNone);
  EXPECT_OK(meta->Transact({.changes = {remove}}, {}));
  EXPECT_OK(meta->Transact({.conditions = {{.key = "k", .must = Must::kBeAbsent}}}, {}));
  EXPECT_OK(meta->Transact({}, {}));
}

TEST_P(NacosMetaTest, ANameThatIsTooLongIsRefused) {
  const auto meta = Make(1);
  EXPECT_OK(meta->Put(std::string(254, 'k'), "", {}));
  EXPECT_FAILS(meta->Put(std::string(255, 'k'), "", {}), kResourceExhausted, kLimit);
  EXPECT_FAILS(meta->Get(std::string(100, '%'), {}), kResourceExhausted, kLimit);
}

TEST_P(NacosMetaTest, UsersAndTokens) {
  NacosDouble strict({"--user", "app:p&w"});
  NacosOptions options = OptionsFor(GetParam(), strict.endpoint());
  ASSERT_OK_AND_ASSIGN(const auto nobody, NacosMeta::Create(network_, RealClock(), options, 1));
  EXPECT_FAILS(nobody->Put("k", "", {}), kPermissionDenied, kNone);
  EXPECT_FAILS(nobody->Get("k", {}), kPermissionDenied, kNone);
  options.user = "app";
  options.password = "wrong";
  ASSERT_OK_AND_ASSIGN(const auto wrong, NacosMeta::Create(network_, RealClock(), options, 2));
  EXPECT_FAILS(wrong->Put("k", "", {}), kPermissionDenied, kNone);
  options.password = "p&w";
  ASSERT_OK_AND_ASSIGN(const auto right, NacosMeta::Create(network_, RealClock(), options, 3));
  EXPECT_OK(right->Put("k", "1", {}));
  strict.Kill();
  strict.Start();
  EXPECT_OK(right->Put("k", "2", {}));  // by another token
  EXPECT_EQ(right->Get("k", {})->value, "2");
}

TEST_P(NacosMetaTest, NamespacesAndGroupsAreApart) {
  NacosOptions options = OptionsFor(GetParam(), nacos_.endpoint());
  ASSERT_OK_AND_ASSIGN(const auto meta, NacosMeta::Create(network_, RealClock(), options, 1));
  options.place.group = "other";
  ASSERT_OK_AND_ASSIGN(const auto group, NacosMeta::Create(network_, RealClock(), options, 2));
  options.place.space = "s-1";
  ASSERT_OK_AND_ASSIGN(const auto space, NacosMeta::Create(network_, RealClock(), options, 3));
  for (const auto* each : {&meta, &group, &space}) ASSERT_OK((*each)->PutIfAbsent("k", "", {}));
  for (const auto* each : {&meta, &group, &space}) {
    EXPECT_EQ((*each)->List("", {})->entries.size(), 1u);
  }
}

// Proves: S6
TEST_P(NacosMetaTest, AServerThatDoesNotCompareIsNotWrittenTo) {
  NacosDouble old({"--ignore-cas"});
  ASSERT_OK_AND_ASSIGN(
      const auto meta,
      NacosMeta::Create(network_, RealClock(), OptionsFor(GetParam(), old.endpoint()), 1));
  EXPECT_FAILS(meta->Put("k", "", {}), kFailedPrecondition, kNone);
  EXPECT_FAILS(meta->Get("k", {}), kNotFound, kNone);
}

TEST(NacosMetaCreateTest, OptionsThatCannotWorkAreRefused) {
  FaultyTransport network(nullptr);
  const auto refused = [&](const std::function<void(NacosOptions&)>& change) {
    NacosOptions options;
    options.endpoints = {{"a", 1}};
    change(options);
    return FailsWith(NacosMeta::Create(network, RealClock(), options, 1),
                     StatusCode::kInvalidArgument, Detail::kNone);
  };
  EXPECT_TRUE(refused([](NacosOptions& options) { options.endpoints.clear(); }));
  EXPECT_TRUE(refused([](NacosOptions& options) { options.place.context = "nacos"; }));
  EXPECT_TRUE(refused([](NacosOptions& options) { options.place.group = ""; }));
  EXPECT_TRUE(refused([](NacosOptions& options) { options.place.group = "a b"; }));
  EXPECT_TRUE(refused([](NacosOptions& options) { options.place.space = "a/b"; }));
  EXPECT_TRUE(refused([](NacosOptions& options) { options.page_entries = 0; }));
}

// What the tests above run on is a server to the public client too.
constexpr char kSession[] =
    "absent: null\n"
    "publish: true\n"
    "get: one = 1 & ümlaut + 100 %\n"
    "told: one = 1 & ümlaut + 100 %\n"
    "told: two\n"
    "remove: true\n"
    "absent: null\n"
    "end: done\n";

TEST(NacosDoubleTest, TheNpmClientTakesItForAServer) {
  NacosDouble nacos;
  EXPECT_EQ(RunForeignClient("/bin/sh", "HOLDFAST_NACOS_SESSION", nacos.endpoint()), kSession);
  NacosDouble strict({"--user", "app:pw"});
  EXPECT_EQ(RunForeignClient("/bin/sh", "HOLDFAST_NACOS_SESSION", strict.endpoint(), "app pw"),
            kSession);
}

}  // namespace
}  // namespace holdfast
