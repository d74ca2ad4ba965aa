// What a watch makes of a stream, line by line: with streams that are made up here.
#include "meta/etcd_watches.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/faulty_transport.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Says what it was given, piece by piece, and then ends or falls silent until it is closed.
class ScriptedStream final : public HttpStream {
 public:
  ScriptedStream(std::vector<std::string> pieces, bool ends)
      : pieces_(pieces.begin(), pieces.end()), ends_(ends) {}
  StatusOr<std::string> Read(absl::Duration) override {
    MutexLock lock(mu_);
    if (!pieces_.empty()) {
      std::string piece = pieces_.front();
      pieces_.pop_front();
      return piece;
    }
    while (!ends_ && !closed_) changed_.Wait(mu_);
    return Unavailable(Detail::kNone, "over");
  }
  void Close() override {
    MutexLock lock(mu_);
    closed_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::deque<std::string> pieces_ ABSL_GUARDED_BY(mu_);
  const bool ends_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

std::string Event(int revision) {
  return fmt::format(
      R"({{"kv":{{"key":"aw==","create_revision":"1","mod_revision":"{}","version":"{}"}}}})",
      revision, revision);
}
std::string Frame(const std::string& members) {
  return R"({"result":{"header":{"revision":"99"},)" + members + "}}\n";
}
std::string Events(const std::vector<int>& revisions) {
  std::string events;
  for (const int revision : revisions) events += (events.empty() ? "" : ",") + Event(revision);
  return Frame(R"("watch_id":"1","events":[)" + events + "]");
}

class EtcdWatchesTest : public testing::Test {
 protected:
  EtcdWatchesTest() {
    network_.before_open = [this](const HttpEndpoint& endpoint, const HttpRequest& request) {
      MutexLock lock(mu_);
      opened_.push_back(endpoint.host + " " + request.body);
      changed_.NotifyAll();
      return std::optional<StatusOr<HttpStreamStart>>(Next());
    };
  }
  // The streams that will be opened, one after the other; then nobody answers.
  void Serve(std::vector<std::string> pieces, bool ends = true) {
    MutexLock lock(mu_);
    streams_.push_back(std::make_unique<ScriptedStream>(std::move(pieces), ends));
  }
  std::string AwaitOpened(size_t number) {
    MutexLock lock(mu_);
    while (opened_.size() < number) changed_.Wait(mu_);
    return opened_[number - 1];
  }
  void Watch(uint64_t from) {
    watch_ = watches_.Watch("k", from, [this](const MetaNotice& notice) {
      MutexLock lock(mu_);
      notices_.push_back(notice);
      changed_.NotifyAll();
    });
  }
  MetaNotice AwaitNotice(size_t number) {
    MutexLock lock(mu_);
    while (notices_.size() < number) changed_.Wait(mu_);
    return notices_[number - 1];
  }
  static std::vector<uint64_t> RevisionsOf(const MetaNotice& notice) {
    std::vector<uint64_t> revisions;
    for (const MetaEvent& event : notice.events) revisions.push_back(event.entry.revision);
    return revisions;
  }

 private:
  StatusOr<HttpStreamStart> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (streams_.empty()) return FaultyTransport::NotSent();
    HttpStreamStart start{.head = {}, .stream = std::move(streams_.front())};
    streams_.pop_front();
    return start;
  }

 protected:
  Mutex mu_;
  CondVar changed_;
  std::deque<std::unique_ptr<HttpStream>> streams_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> opened_ ABSL_GUARDED_BY(mu_);
  std::vector<MetaNotice> notices_ ABSL_GUARDED_BY(mu_);
  FaultyTransport network_{nullptr};
  const EtcdOptions options_ = {.endpoints = {{"a", 1}, {"b", 2}},
                                .watch_retry_min = absl::Milliseconds(1),
                                .watch_retry_max = absl::Milliseconds(1)};
  EtcdClient client_{network_, RealClock(), options_};
  EtcdWatches watches_{client_, options_};
  std::unique_ptr<MetaWatch> watch_;
};

TEST_F(EtcdWatchesTest, LinesAreTakenHoweverTheyAreCut) {
  const std::string all =
      Frame(R"("watch_id":"1","created":true)") + Events({3}) + Events({4, 4, 5});
  std::vector<std::string> bytes;
  for (const char c : all) bytes.emplace_back(1, c);
  Serve(std::move(bytes), false);
  Watch(2);
  EXPECT_EQ(RevisionsOf(AwaitNotice(1)), (std::vector<uint64_t>{3}));
  const MetaNotice second = AwaitNotice(2);
  EXPECT_EQ(RevisionsOf(second), (std::vector<uint64_t>{4, 4, 5}));
  EXPECT_EQ(second.revision, 5u);
}

// Proves: S1
TEST_F(EtcdWatchesTest, AfterABreakItGoesOnBehindWhatItHasShownAndRepeatsNothing) {
  Serve({Events({3}), Events({4}).substr(0, 30)});
  Serve({Events({2, 3, 4}), Events({4}), Events({6})}, false);
  Watch(2);
  EXPECT_EQ(RevisionsOf(AwaitNotice(1)), (std::vector<uint64_t>{3}));
  EXPECT_EQ(RevisionsOf(AwaitNotice(2)), (std::vector<uint64_t>{4}));
  EXPECT_EQ(RevisionsOf(AwaitNotice(3)), (std::vector<uint64_t>{6}));
  EXPECT_NE(AwaitOpened(1).find(R"("start_revision":"2")"), std::string::npos);
  EXPECT_NE(AwaitOpened(2).find(R"("start_revision":"4")"), std::string::npos);
}

TEST_F(EtcdWatchesTest, EventsOutOfOrderOrFromThePastAreNotShown) {
  Serve({Events({7}), Events({5}), Events({9, 8, 9}), Events({10})}, false);
  Watch(5);
  EXPECT_EQ(RevisionsOf(AwaitNotice(1)), (std::vector<uint64_t>{7}));
  EXPECT_EQ(RevisionsOf(AwaitNotice(2)), (std::vector<uint64_t>{9, 9}));
  EXPECT_EQ(RevisionsOf(AwaitNotice(3)), (std::vector<uint64_t>{10}));
}

TEST_F(EtcdWatchesTest, ACompactedStartIsAResyncAndTheLastNotice) {
  Serve({Frame(R"("watch_id":"1","created":true)"),
         Frame(R"("watch_id":"1","canceled":true,"compact_revision":"20")"), Events({30})},
        false);
  Watch(3);
  const MetaNotice resync = AwaitNotice(1);
  EXPECT_EQ(resync.kind, MetaNotice::Kind::kResync);
  EXPECT_EQ(resync.revision, 21u);
  watch_.reset();
  MutexLock lock(mu_);
  EXPECT_EQ(notices_.size(), 1u);
}

TEST_F(EtcdWatchesTest, AStreamThatFailsOrMakesNoSenseIsLeftForAnotherEndpoint) {
  Serve({R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})"
         "\n"});
  Serve({"<html>\n"});
  Serve({Events({3})}, false);
  Watch(1);
  AwaitNotice(1);
  EXPECT_EQ(AwaitOpened(1)[0], 'a');
  EXPECT_EQ(AwaitOpened(2)[0], 'b');
  EXPECT_EQ(AwaitOpened(3)[0], 'a');
}

TEST_F(EtcdWatchesTest, AStreamOfManyWatchesIsAskedForAllOfThem) {
  Serve({}, false);
  Serve({R"({"result":{"watch_id":"2","events":[)" + Event(8) + "]}}\n"}, false);
  Watch(5);
  AwaitOpened(1);
  std::vector<uint64_t> seen;
  const auto second = watches_.Watch("k2", 6, [&](const MetaNotice& notice) {
    MutexLock lock(mu_);
    seen = RevisionsOf(notice);
    changed_.NotifyAll();
  });
  const std::string body = AwaitOpened(2);
  EXPECT_NE(body.find(R"("start_revision":"5","watch_id":"1")"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("start_revision":"6","watch_id":"2")"), std::string::npos) << body;
  MutexLock lock(mu_);
  while (seen.empty()) changed_.Wait(mu_);
  EXPECT_EQ(seen, (std::vector<uint64_t>{8}));
  EXPECT_TRUE(notices_.empty());
}

}  // namespace
}  // namespace holdfast
