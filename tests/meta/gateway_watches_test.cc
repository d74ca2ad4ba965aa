// Watch streams over readers that are made up here.
#include "meta/gateway_watches.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "meta/memory_meta.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// A reader that takes what is written when it is told to.
class FakeReader final : public HttpReply, public HttpEventStream {
 public:
  void Send(HttpResponse) override { ADD_FAILURE() << "a stream was wanted"; }
  std::shared_ptr<HttpEventStream> Stream(HttpResponse head) override {
    MutexLock lock(mu_);
    text_ = head.body;
    return {std::shared_ptr<void>(), this};
  }
  bool Write(std::string_view bytes) override {
    MutexLock lock(mu_);
    text_ += bytes;
    ++writes_;
    changed_.NotifyAll();
    return true;
  }
  void End() override {}
  void OnClosed(std::function<void()> closed) override { closed_ = std::move(closed); }
  void OnDrained(std::function<void()> drained) override { drained_ = std::move(drained); }

  // Everything until now; the next may come.
  std::string Drain() {
    std::string text;
    {
      MutexLock lock(mu_);
      text = std::exchange(text_, std::string());
    }
    drained_();
    return text;
  }
  std::string AwaitWrite() {
    {
      MutexLock lock(mu_);
      while (writes_ == 0) changed_.Wait(mu_);
      writes_ = 0;
    }
    return Drain();
  }
  int writes() {
    MutexLock lock(mu_);
    return writes_;
  }
  void Close() {
    closed_();
    closed_ = drained_ = nullptr;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::string text_ ABSL_GUARDED_BY(mu_);
  int writes_ ABSL_GUARDED_BY(mu_) = 0;
  std::function<void()> closed_, drained_;
};

class GatewayWatchesTest : public testing::Test {
 protected:
  ~GatewayWatchesTest() override {
    if (watches_.stream_count() != 0) reader_.Close();
  }
  static GatewayWatchRequest Create(std::string_view key, uint64_t from,
                                    std::optional<int64_t> id = std::nullopt) {
    GatewayWatchRequest request;
    request.create = GatewayWatchCreate{.id = id, .range = KeyRange::Only(key), .from = from};
    return request;
  }
  static constexpr absl::Duration kNotifyInterval = absl::Minutes(10);
  static size_t Count(const std::string& text, std::string_view what) {
    size_t count = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++count;
    return count;
  }

  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  FakeReader reader_;
  GatewayWatches watches_{meta_, {.cluster_id = 1, .member_id = 2}, kNotifyInterval};
};

TEST_F(GatewayWatchesTest, AReaderThatTakesNothingIsGivenOnePieceAndThenTheRest) {
  watches_.Serve({Create("k", 1)}, reader_);
  EXPECT_EQ(Count(reader_.Drain(), "\"created\":true"), 1u);
  ASSERT_OK(meta_.Put("k", "1", {}));
  std::string text = reader_.AwaitWrite();
  // While it takes nothing, much happens.
  ASSERT_OK(meta_.Put("k", "2", {}));
  text += reader_.AwaitWrite();
  for (int i = 3; i <= 50; ++i) ASSERT_OK(meta_.Put("k", std::to_string(i), {}));
  while (Count(text, "\"kv\"") < 50) text += reader_.AwaitWrite();
  EXPECT_EQ(Count(text, "\"kv\""), 50u);
  for (int i = 1; i <= 50; ++i) {
    EXPECT_EQ(Count(text, fmt::format("\"version\":\"{}\"", i)), 1u) << i;
  }
}

TEST_F(GatewayWatchesTest, IdsAreChosenWhereNoneIsGivenAndNeverTwice) {
  watches_.Serve({Create("a", 0), Create("b", 0, 1), Create("c", 0), Create("d", 0, 3)}, reader_);
  const std::string text = reader_.Drain();
  EXPECT_EQ(Count(text, "\"created\":true"), 4u);
  EXPECT_EQ(Count(text, "\"watch_id\":\"1\""), 1u);
  EXPECT_EQ(Count(text, "\"watch_id\":\"2\""), 1u);
  EXPECT_EQ(Count(text, "\"watch_id\":\"3\""), 1u);
}

TEST_F(GatewayWatchesTest, AnIdThatIsTakenIsRefused) {
  watches_.Serve({Create("a", 0, 7), Create("b", 0, 7)}, reader_);
  const std::string text = reader_.Drain();
  EXPECT_EQ(Count(text, "duplicate watch ID"), 1u);
  EXPECT_EQ(Count(text, R"("watch_id":"-1","created":true,"canceled":true)"), 1u);
}

TEST_F(GatewayWatchesTest, AStartThatIsCompactedEndsThatWatchOnly) {
  for (int i = 0; i < 5; ++i) ASSERT_OK(meta_.Put("k", "", {}));
  ASSERT_OK(meta_.Compact(4, {}));
  watches_.Serve({Create("k", 2, 7), Create("k", 5, 8)}, reader_);
  reader_.Drain();
  std::string text = reader_.AwaitWrite();
  EXPECT_EQ(Count(text, R"("watch_id":"7","canceled":true,"compact_revision":"4")"), 1u) << text;
  EXPECT_EQ(Count(text, R"("watch_id":"8","events")"), 1u) << text;
}

TEST_F(GatewayWatchesTest, ProgressIsToldWhenEverythingWasShown) {
  ASSERT_OK(meta_.Put("k", "", {}));
  GatewayWatchRequest progress;
  progress.progress = true;
  watches_.Serve({Create("k", 1), progress}, reader_);
  reader_.Drain();
  EXPECT_EQ(Count(reader_.AwaitWrite(), "\"events\""), 1u);
  const std::string text = reader_.AwaitWrite();
  EXPECT_EQ(Count(text, R"("watch_id":"-1")"), 1u) << text;
}

TEST_F(GatewayWatchesTest, WhoWantsToKnowIsToldThatThereWasNothing) {
  ASSERT_OK(meta_.Put("other", "", {}));
  GatewayWatchRequest notified = Create("k", 0, 7);
  notified.create->progress_notify = true;
  watches_.Serve({notified, Create("k", 0, 8)}, reader_);
  reader_.Drain();
  clock_.Advance(kNotifyInterval);
  std::string text = reader_.AwaitWrite();
  EXPECT_EQ(Count(text, R"("revision":"2")"), 1u) << text;
  EXPECT_EQ(Count(text, R"("watch_id":"7"}})"), 1u) << text;
  EXPECT_EQ(Count(text, R"("watch_id":"8")"), 0u) << text;
  // An event is as good; the notice after it is that of the interval without one.
  ASSERT_OK(meta_.Put("k", "", {}));
  text = reader_.AwaitWrite();
  EXPECT_EQ(Count(text, "\"events\""), 2u) << text;
  while (reader_.writes() == 0) clock_.Advance(kNotifyInterval);
  text = reader_.AwaitWrite();
  EXPECT_EQ(Count(text, R"("revision":"3")"), 1u) << text;
  EXPECT_EQ(Count(text, R"("watch_id":"7"}})"), 1u) << text;
}

TEST_F(GatewayWatchesTest, AClosedStreamIsForgotten) {
  watches_.Serve({Create("k", 1)}, reader_);
  EXPECT_EQ(watches_.stream_count(), 1u);
  reader_.Close();
  EXPECT_EQ(watches_.stream_count(), 0u);
  ASSERT_OK(meta_.Put("k", "", {}));
}

}  // namespace
}  // namespace holdfast
