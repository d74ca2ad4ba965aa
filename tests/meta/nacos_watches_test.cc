// Watches of Nacos on its double: by long poll in v1, by listing again in v3.
#include "meta/nacos_watches.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "meta/cached_meta.h"
#include "meta/nacos_meta.h"
#include "tests/meta/watch_log.h"
#include "tests/support/faulty_transport.h"
#include "tests/support/nacos_double.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class NacosWatchesTest : public testing::TestWithParam<NacosApi> {
 protected:
  NacosWatchesTest() : transport_(NewHttpTransport({}).value()), network_(transport_.get()) {
    options_.endpoints = {nacos_.endpoint()};
    options_.place.api = GetParam();
    options_.look_interval = absl::Milliseconds(50);
  }
  std::unique_ptr<NacosMeta> Make(uint64_t nonce) {
    return *NacosMeta::Create(network_, RealClock(), options_, nonce);
  }
  static uint64_t BehindAList(NacosMeta& meta, std::string_view prefix) {
    const auto list = meta.List(prefix, {});
    EXPECT_OK(list);
    return list.ok() ? list->revision + 1 : 1;
  }

  NacosDouble nacos_;
  std::unique_ptr<HttpTransport> transport_;
  FaultyTransport network_;
  NacosOptions options_;
};
INSTANTIATE_TEST_SUITE_P(Nacos, NacosWatchesTest, testing::Values(NacosApi::kV1, NacosApi::kV3),
                         [](const auto& info) {
                           return std::string(info.param == NacosApi::kV1 ? "V1" : "V3");
                         });

// Proves: S1
TEST_P(NacosWatchesTest, WhatAnotherProcessDoesIsShownAndTheNewestOfAKeyIsTheLast) {
  const auto meta = Make(1), other = Make(2);
  ASSERT_OK(other->Put("w/old", "0", {}));
  ASSERT_OK(other->Put("w/gone", "0", {}));
  WatchLog log(*meta, "w/", BehindAList(*meta, "w/"));
  ASSERT_OK(other->Put("w/old", "1", {}));
  ASSERT_OK(other->Delete("w/gone", {}));
  ASSERT_OK(other->Put("x", "beside", {}));
  for (int i = 0; i < 5; ++i) ASSERT_OK(other->Put("w/new", std::to_string(i), {}));
  std::map<std::string, std::string> state{{"w/old", "0"}, {"w/gone", "0"}};
  const std::map<std::string, std::string> want{{"w/old", "1"}, {"w/new", "4"}};
  for (size_t count = 1; state != want; ++count) {
    const MetaEvent event = log.AwaitEvents(count).at(count - 1);
    if (event.kind == MetaEvent::Kind::kDelete) {
      EXPECT_EQ(state.erase(event.entry.key), 1u);
    } else {
      state[event.entry.key] = event.entry.value;
    }
  }
  EXPECT_FALSE(log.resynced());
}

TEST_P(NacosWatchesTest, AWatchThatStartsBehindNoListIsToldToListFirst) {
  const auto meta = Make(1), other = Make(2);
  ASSERT_OK_AND_ASSIGN(const uint64_t put, other->Put("k", "", {}));
  WatchLog anywhere(*meta, "k", put);
  EXPECT_FALSE(anywhere.AwaitResync().reason.ok());
  WatchLog of_another(*meta, "k", BehindAList(*other, ""));
  EXPECT_FALSE(of_another.AwaitResync().reason.ok());
  EXPECT_FAILS(meta->Watch("k", 0, [](const MetaNotice&) {}, {}), kInvalidArgument, kNone);
}

// Proves: S4
TEST_P(NacosWatchesTest, AServerThatRestartsOrListsNothingShowsNoDeletions) {
  // Before whatever still looks when the test ends.
  std::atomic<int> lied{0};
  std::atomic<bool> lies{true};
  const std::string empty = GetParam() == NacosApi::kV1
                                ? R"({"totalCount":0,"pageItems":[]})"
                                : R"({"code":0,"data":{"totalCount":0,"pageItems":[]}})";
  const auto meta = Make(1), other = Make(2);
  for (int i = 0; i < 3; ++i) ASSERT_OK(other->Put("w/" + std::to_string(i), "", {}));
  const uint64_t behind = BehindAList(*meta, "w/");
  network_.after = [&](const HttpRequest& request, FaultyTransport::Result result) {
    if (!lies || request.target.find("search=blur") == std::string::npos) return result;
    ++lied;
    return FaultyTransport::Result(HttpResponse{.status = 200, .headers = {}, .body = empty});
  };
  WatchLog log(*meta, "w/", behind);
  while (lied < 3) std::this_thread::yield();
  lies = false;
  nacos_.Kill();
  nacos_.Start();
  ASSERT_OK(other->Put("w/end", "", {}));
  const std::vector<MetaEvent> events = log.AwaitEvents(1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].entry.key, "w/end");
}

TEST_P(NacosWatchesTest, AWatchIsNotStaleWhileTheServerAnswersAndGrowsStaleWhenItDoesNot) {
  const auto meta = Make(1);
  WatchLog log(*meta, "s/", BehindAList(*meta, "s/"));
  // However long it takes: without an event, only a look makes it fall.
  absl::Duration before = log.watch().Staleness();
  while (log.watch().Staleness() >= before) before = log.watch().Staleness();
  nacos_.process().Signal(SIGSTOP);
  const absl::Duration stale = absl::Milliseconds(300);
  while (log.watch().Staleness() < stale) std::this_thread::yield();
  nacos_.process().Signal(SIGCONT);
  while (log.watch().Staleness() >= stale) std::this_thread::yield();
}

class Texts final : public MetaMeaning<std::string, std::string> {
 public:
  StatusOr<std::string> KeyOf(std::string_view key) const override { return std::string(key); }
  StatusOr<std::string> ValueOf(const MetaEntry& entry) const override { return entry.value; }
};

// Proves: S4
TEST_P(NacosWatchesTest, TheViewsOfTwoProcessesConvergeAndEachShowsItsOwnWritesAtOnce) {
  const Texts texts;
  struct Process {
    std::unique_ptr<NacosMeta> meta;
    std::unique_ptr<CachedMeta<std::string, std::string>> cache;
  };
  std::vector<Process> processes(2);
  for (size_t i = 0; i < processes.size(); ++i) {
    processes[i].meta = Make(i + 1);
    processes[i].cache =
        *CachedMeta<std::string, std::string>::Open(*processes[i].meta, "c/", texts, RealClock());
  }
  const auto shown = [](Process& process) {
    return process.cache->With([](const std::map<std::string, std::string>& all) { return all; });
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < processes.size(); ++i) {
    threads.emplace_back([&, i] {
      Process& process = processes[i];
      for (int j = 0; j < 40; ++j) {
        const std::string key = fmt::format("c/{}", (i + j) % 5);
        if (j % 4 == 3) {
          const auto revision = process.meta->Delete(key, {});
          if (revision.ok()) process.cache->view().NoteDelete(key, *revision);
          continue;
        }
        const std::string value = fmt::format("{}-{}", i, j);
        const auto revision = process.meta->Put(key, value, {});
        ASSERT_OK(revision);
        process.cache->view().NotePut({.key = key, .value = value, .revision = *revision});
      }
      // Nobody else writes this one.
      const std::string own = fmt::format("c/own{}", i);
      for (int j = 0; j < 20; ++j) {
        const auto revision = process.meta->Put(own, std::to_string(j), {});
        ASSERT_OK(revision);
        process.cache->view().NotePut(
            {.key = own, .value = std::to_string(j), .revision = *revision});
        EXPECT_EQ(shown(process)[own], std::to_string(j));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, std::string> truth;
  const auto all = processes[0].meta->List("c/", {});
  ASSERT_OK(all);
  for (const MetaEntry& entry : all->entries) truth[entry.key] = entry.value;
  EXPECT_GE(truth.size(), 2u);
  for (Process& process : processes) {
    while (shown(process) != truth) std::this_thread::yield();
  }
}

// A list is due in an hour only, so whatever is shown was told by a long poll.
TEST(NacosLongPollTest, AChangeIsShownAsSoonAsTheServerTellsOfIt) {
  NacosDouble nacos;
  const std::unique_ptr<HttpTransport> transport = NewHttpTransport({}).value();
  FaultyTransport network(transport.get());
  NacosOptions options;
  options.endpoints = {nacos.endpoint()};
  options.place.api = NacosApi::kV1;
  ASSERT_OK_AND_ASSIGN(const auto other, NacosMeta::Create(*transport, RealClock(), options, 1));
  ASSERT_OK(other->Put("w/a", "0", {}));
  ASSERT_OK(other->Put("w/b", "0", {}));
  options.look_interval = absl::Hours(1);
  {
    ASSERT_OK_AND_ASSIGN(const auto meta, NacosMeta::Create(network, RealClock(), options, 2));
    WatchLog log(*meta, "w/", meta->List("w/", {})->revision + 1);
    ASSERT_OK(other->Put("w/a", "1", {}));
    EXPECT_EQ(log.AwaitEvents(1).at(0).entry.value, "1");
    ASSERT_OK(other->Delete("w/b", {}));
    EXPECT_EQ(log.AwaitEvents(2).at(1).kind, MetaEvent::Kind::kDelete);
    // A key is new to the server's long polls, but not to the process that writes it.
    ASSERT_OK(meta->Put("w/c", "own", {}));
    ASSERT_OK(other->Put("w/a", "2", {}));
    std::map<std::string, std::string> last;
    for (const MetaEvent& event : log.AwaitEvents(4)) last[event.entry.key] = event.entry.value;
    EXPECT_EQ(last["w/a"], "2");
    EXPECT_EQ(last["w/c"], "own");
    log.Close();
    // The poll that is under way ends with the server.
    nacos.Kill();
  }
}

}  // namespace
}  // namespace holdfast
