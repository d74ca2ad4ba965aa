// The dispatcher with its thread, on the real engine with its own.
#include "runtime/dispatch_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "journal/base/seeded_rng.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

TEST(DispatchLoopTest, EachOptionHasItsRange) {
  const auto check = [](auto change) {
    DispatcherOptions options;
    change(options);
    return CheckOptions(options);
  };
  EXPECT_OK(check([](DispatcherOptions&) {}));
  for (const Status& refused : {
           check([](DispatcherOptions& o) { o.ack_timeout = absl::ZeroDuration(); }),
           check([](DispatcherOptions& o) { o.backoff_min = absl::InfiniteDuration(); }),
           check([](DispatcherOptions& o) { o.backoff_max = absl::Milliseconds(1); }),
           check([](DispatcherOptions& o) { o.tick_interval = -absl::Seconds(1); }),
           check([](DispatcherOptions& o) { o.attempts_max = 0; }),
           check([](DispatcherOptions& o) { o.backoff_jitter = 1.5; }),
           check([](DispatcherOptions& o) { o.recover_spread = -absl::Seconds(1); }),
           check([](DispatcherOptions& o) { o.recover_spread = absl::InfiniteDuration(); }),
           check([](DispatcherOptions& o) { o.in_flight_per_client = 0; }),
           check([](DispatcherOptions& o) { o.in_flight_total = 0; }),
       }) {
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
    EXPECT_FALSE(Message(refused).empty());
  }
}

// Acknowledges what it gets, from a thread of its own, but every fifth only the second time.
class BusyClient final : public Channel {
 public:
  BusyClient(Dispatcher& dispatcher, std::string name)
      : dispatcher_(dispatcher), name_(std::move(name)), thread_([this] { Loop(); }) {}
  ~BusyClient() override {
    {
      MutexLock lock(mu_);
      stop_ = true;
      wake_.NotifyAll();
    }
    thread_.join();
  }
  void Push(const Delivery& delivery) override {
    MutexLock lock(mu_);
    ++pushes;
    inbox_.push_back(delivery);
    wake_.NotifyAll();
  }
  std::atomic<uint64_t> pushes{0}, acked{0};

 private:
  void Loop() {
    for (;;) {
      std::vector<Delivery> taken;
      {
        MutexLock lock(mu_);
        while (inbox_.empty() && !stop_) wake_.Wait(mu_);
        if (inbox_.empty()) return;
        taken.swap(inbox_);
      }
      for (const Delivery& delivery : taken) {
        if (*delivery.offset % 5 == 0 && delivery.attempt == 1) {
          EXPECT_OK(
              dispatcher_.Nack({.id = delivery.id, .client = name_, .epoch = delivery.epoch}));
          continue;
        }
        dispatcher_.Ack({.id = delivery.id, .client = name_, .epoch = delivery.epoch},
                        [this](const Status& status) {
                          EXPECT_OK(status);
                          ++acked;
                        });
      }
    }
  }

  Dispatcher& dispatcher_;
  const std::string name_;
  Mutex mu_;
  CondVar wake_;
  std::vector<Delivery> inbox_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class CountingSource final : public SourceAck {
 public:
  void Finished(const SourceKey&, std::optional<uint64_t>, uint64_t) override { ++finished; }
  std::atomic<uint64_t> finished{0};
};

// Several sources, two clients each, acks and nacks from threads of their own, the loop's ticks:
// everything is finished in the end, each event once.
// Proves: A6
TEST(DispatchLoopTest, EverythingIsFinishedWithAllThreadsAtWork) {
  constexpr uint64_t kEvents = 300, kSources = 3;
  TempDir directory;
  EngineOptions options;
  options.directory = directory.Sub("store");
  options.io = BackendUnderTest();
  options.segment_bytes = uint64_t{1} << 20;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
  SeededRng rng(5);
  CountingSource source;
  DispatcherOptions dispatcher_options;
  dispatcher_options.backoff_min = absl::Milliseconds(5);
  dispatcher_options.backoff_max = absl::Milliseconds(20);
  dispatcher_options.tick_interval = absl::Milliseconds(2);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Dispatcher> dispatcher,
                       Dispatcher::Make(*engine, rng, dispatcher_options, {.source_ack = &source}));
  ASSERT_OK(dispatcher->Recover());
  dispatcher->Start();
  auto a = std::make_shared<BusyClient>(*dispatcher, "a");
  auto b = std::make_shared<BusyClient>(*dispatcher, "b");
  dispatcher->ChannelOpened("a", a);
  dispatcher->ChannelOpened("b", b);
  std::vector<std::thread> producers;
  for (uint64_t partition = 0; partition < kSources; ++partition) {
    producers.emplace_back([&, partition] {
      for (uint64_t offset = 0; offset < kEvents; ++offset) {
        const StatusOr<DeliverResult> result = dispatcher->Deliver(
            {.source = {"orders", 1, partition}, .offset = offset, .event = "event"},
            {{.client = "a"}, {.client = "b"}});
        EXPECT_OK(result);
        if (offset % 50 == 0 && result.ok()) {
          EXPECT_OK(result->durable.Wait());
        }
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  // A source is told before the client is answered.
  while (source.finished < kEvents * kSources || a->acked + b->acked < 2 * kEvents * kSources) {
    std::this_thread::yield();
  }
  EXPECT_EQ(dispatcher->Stats().in_flight, 0u);
  EXPECT_EQ(source.finished, kEvents * kSources);
  EXPECT_EQ(a->acked + b->acked, 2 * kEvents * kSources);
  EXPECT_EQ(dispatcher->Stats().nacked, 2 * kEvents * kSources / 5);
  EXPECT_EQ(engine->deliveries().Count(), 0u);
  dispatcher->ChannelClosed("a", a.get());
  dispatcher->ChannelClosed("b", b.get());
  a.reset();  // their last calls have returned then
  b.reset();
  dispatcher.reset();
  for (uint64_t partition = 0; partition < kSources; ++partition) {
    for (const char* client : {"a", "b"}) {
      ASSERT_OK_AND_ASSIGN(const StoredOffset stored,
                           engine->offsets().Read({"orders", client, partition}));
      EXPECT_EQ(stored.position.next, kEvents);
    }
  }
}

// What is under way when the dispatcher goes is told before it is gone.
TEST(DispatchLoopTest, TheEndWaitsForEveryCompletion) {
  TempDir directory;
  EngineOptions options;
  options.directory = directory.Sub("store");
  options.io = BackendUnderTest();
  options.commit_interval = absl::Milliseconds(50);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
  SeededRng rng(5);
  std::atomic<int> told{0};
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dispatcher> dispatcher,
                         Dispatcher::Make(*engine, rng, {}, {}));
    ASSERT_OK(dispatcher->Recover());
    dispatcher->Start();
    for (uint64_t offset = 0; offset < 20; ++offset) {
      ASSERT_OK_AND_ASSIGN(
          const DeliverResult result,
          dispatcher->Deliver({.source = {"orders", 1, 0}, .offset = offset, .event = "e"},
                              {{.client = "a"}}));
      dispatcher->Ack({.id = result.targets[0].id, .client = "a", .epoch = 1},
                      [&](const Status& status) {
                        EXPECT_OK(status);
                        ++told;
                      });
    }
  }
  EXPECT_EQ(told, 20);
  EXPECT_EQ(engine->deliveries().Count(), 0u);
}

}  // namespace
}  // namespace holdfast
