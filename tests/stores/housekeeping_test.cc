// Checkpoints, compaction and retirement beside running writers, on the real engine with its
// threads.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <thread>
#include <vector>

#include "journal/segment.h"
#include "stores/engine_on_storage.h"
#include "tests/sim/model.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/stores/fake_stores.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

constexpr uint64_t kSegment = uint64_t{64} << 10;

EngineOptions TinySegments(const std::string& directory) {
  EngineOptions options;
  options.directory = directory;
  options.io = BackendUnderTest();
  options.segment_bytes = kSegment;
  options.value_cache_entries = 16;
  options.commit_interval = absl::Milliseconds(1);
  options.compact_bytes_per_second = 0;
  return options;
}

std::string IdOf(uint64_t number) { return "id-" + std::to_string(number); }
std::string EventOf(uint64_t number) {
  return std::to_string(number) +
         std::string(200 + number % 300, static_cast<char>('a' + number % 26));
}

// Hundreds of segment lives with short-lived deliveries, and some that stay: the disk stays in its
// bound, and a start from a checkpoint and from a full scan bring back the same, field by field.
// Proves: G7
TEST(HousekeepingTest, ASoakStaysInItsBounds) {
  const uint64_t lives = NumberFromEnvironment("HOLDFAST_SEGMENT_LIVES", 300);
  TempDir directory;
  EngineOptions options = TinySegments(directory.Sub("store"));
  options.remembered_answers = 500;  // of more than a turn around the journal
  uint64_t number = 0;
  std::map<uint64_t, uint32_t> live;  // with attempts
  std::vector<uint64_t> acked;        // in order
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
    SeededRng rng(7);
    const OffsetKey key{"orders", "billing", 0};
    uint64_t worst = 0;
    while (engine->stats().retired_segments < lives) {
      Commit last;
      for (int i = 0; i < 100; ++i) {
        const uint64_t put = ++number;
        last = engine->Transact([&](Transaction& change) {
          Delivery delivery = DeliveryFor(IdOf(put), EventOf(put));
          change.PutDelivery(delivery);
          // One in fifty stays for good.
          if (put > 40 && (put - 40) % 50 != 0 && live.contains(put - 40)) {
            const std::string id = IdOf(put - 40);
            change.RemoveDelivery({.id = id, .client = "billing", .idempotency_key = id});
            live.erase(put - 40);
            acked.push_back(put - 40);
          }
          change.WriteOffset(key, put);
          change.WriteStart(key, put);
          change.SourceSeen({"orders", 0, 0}, put);
        });
        live[put] = 0;
        if (rng.OneIn(5)) {
          const auto some = live.lower_bound(rng.Below(put) + 1);
          if (some != live.end()) {
            some->second += 1;
            last = engine->deliveries().Update({.id = IdOf(some->first),
                                                .epoch = 1,
                                                .attempt = some->second,
                                                .due = absl::Seconds(some->second)});
          }
        }
      }
      ASSERT_OK(last.Wait());
      const EngineStats stats = engine->stats();
      ASSERT_FALSE(stats.poisoned);
      worst = std::max(worst, stats.disk_bytes * 100 / stats.disk_bytes_bound);
      // No file is made beyond the bound; removals lower the bound itself, by less than a segment
      // from one file to the next.
      ASSERT_LE(stats.disk_bytes, stats.disk_bytes_bound + kSegment);
      // Those that stay must not grow the test without end.
      if (live.size() > 2'000) {
        ASSERT_OK(engine->deliveries()
                      .Remove({.id = IdOf(live.begin()->first), .reason = Reason::kWithdrawn})
                      .Wait());
        live.erase(live.begin());
      }
    }
    RecordProperty("worst_percent_of_bound", static_cast<int>(worst));
    EXPECT_GT(engine->stats().segment_waits, 0u);  // or the bound was never met
    EXPECT_GT(engine->stats().restated_records, 0u);
    EXPECT_GT(engine->stats().checkpoints, 2u);
    ASSERT_OK(engine->Close());
  }
  const auto copy = directory.Sub("copy");
  std::filesystem::copy(options.directory, copy, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(copy + "/checkpoint");
  ModelNames names{.sources = {{"orders", 0, 0}}, .starts = {{"orders", "billing", 0}}};
  for (const uint64_t ack : std::span(acked).last(2'000)) {
    names.answers.insert({.id = IdOf(ack), .client = "billing", .key = IdOf(ack)});
  }
  options.space_ratio = 100;  // so that nothing is stated again while they are compared
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
  EXPECT_GT(engine->recovery().checkpoint_lsn, 0u);
  ASSERT_OK_AND_ASSIGN(const Model found, ReadModel(*engine, names));
  EngineOptions scan_options = options;
  scan_options.directory = copy;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> scanned, Engine::Open(scan_options));
  EXPECT_EQ(scanned->recovery().checkpoint_lsn, 0u);
  ASSERT_OK_AND_ASSIGN(const Model from_scan, ReadModel(*scanned, names));
  EXPECT_EQ(from_scan.DifferenceTo(found), "");
  EXPECT_EQ(engine->stats().live_records, scanned->stats().live_records);
  EXPECT_EQ(engine->stats().live_bytes, scanned->stats().live_bytes);
  // And it is what was written.
  EXPECT_EQ(found.starts.at({"orders", "billing", 0}), OffsetPosition(1));
  EXPECT_EQ(found.answers.size(), options.remembered_answers);
  for (const uint64_t ack : std::span(acked).last(options.remembered_answers)) {
    EXPECT_TRUE(found.answers.contains({.id = IdOf(ack), .client = "billing", .key = IdOf(ack)}));
  }
  ASSERT_EQ(found.deliveries.size(), live.size());
  for (const auto& [put, attempts] : live) {
    const Delivery& delivery = found.deliveries.at(IdOf(put));
    EXPECT_EQ(delivery.event, EventOf(put));
    EXPECT_EQ(delivery.attempt, attempts);
  }
}

// Puts, retries, removes, cold reads, checkpoints and compactions at once: what was removed never
// comes back, what was not removed stays, and so it is after a kill.
// Proves: D2, D6
TEST(HousekeepingTest, NothingIsLostOrComesBackWhileAllGoesOn) {
  constexpr uint64_t kDeliveries = 600;
  for (const uint64_t seed : Seeds(2)) {
    SCOPED_TRACE(seed);
    SimStorage storage(SimDisk(), {.wait_really = true});
    EngineOptions options = TinySegments("");
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenEngineOn(storage, options, /*threads=*/true));
    std::vector<std::atomic<bool>> put(kDeliveries), gone(kDeliveries), going(kDeliveries);
    std::atomic<int> busy{2};
    const auto putter = [&] {
      for (uint64_t i = 0; i < kDeliveries; ++i) {
        const Commit commit = engine->deliveries().Put(DeliveryFor(IdOf(i), EventOf(i)));
        EXPECT_OK(commit.refused());
        put[i] = true;
        if (i % 16 == 0) {
          EXPECT_OK(commit.Wait());
        }
      }
      --busy;
    };
    const auto remover = [&] {
      for (uint64_t i = 0; i < kDeliveries; ++i) {
        if (i % 5 == 0) continue;  // these stay
        while (!put[i]) std::this_thread::yield();
        going[i] = true;
        const Commit removed =
            engine->deliveries().Remove({.id = IdOf(i), .reason = Reason::kAcked});
        EXPECT_TRUE(removed.changed());
        if (i % 8 == 0) {
          EXPECT_OK(removed.Wait());
        }
        if (i % 8 == 0) gone[i] = true;
      }
      --busy;
    };
    const auto retrier = [&] {
      SeededRng rng(seed);
      while (busy > 0) {
        const uint64_t i = rng.Below(kDeliveries);
        const bool was_gone = gone[i];
        const Commit update = engine->deliveries().Update(
            {.id = IdOf(i), .epoch = 1, .attempt = 1, .due = absl::Seconds(1)});
        ASSERT_FALSE(was_gone && update.changed());
        std::this_thread::yield();
      }
    };
    const auto reader = [&] {
      SeededRng rng(seed + 1);
      while (busy > 0) {
        const uint64_t i = rng.Below(kDeliveries);
        const bool was_put = put[i], was_going = going[i], was_gone = gone[i];
        const auto got = engine->deliveries().Get(IdOf(i));
        if (was_gone) {
          ASSERT_EQ(got.status().code(), StatusCode::kNotFound) << got.status();
        }
        if (got.ok()) {
          ASSERT_EQ(got->delivery.event, EventOf(i));
        }
        if (was_put && !was_going && !going[i]) {
          ASSERT_OK(got);
        }
      }
    };
    const auto keeper = [&] {
      while (busy > 0) {
        ASSERT_OK(engine->Checkpoint());
        ASSERT_OK(engine->Compact());
      }
    };
    std::vector<std::thread> threads;
    for (const std::function<void()>& body :
         std::vector<std::function<void()>>{putter, remover, retrier, reader, keeper}) {
      threads.emplace_back(body);
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_OK(engine->Flush());
    EXPECT_GT(engine->stats().restated_records, 0u);
    EXPECT_GT(engine->stats().retired_segments, 0u);

    storage.PowerOff();  // so that nothing goes on beneath the copy, with which pages are shared
    SimStorage after(storage.disk().Kill(seed, /*late=*/false), {.wait_really = true});
    ASSERT_OK_AND_ASSIGN(const auto again, OpenEngineOn(after, options, /*threads=*/true));
    for (uint64_t i = 0; i < kDeliveries; ++i) {
      const auto got = again->deliveries().Get(IdOf(i));
      if (i % 5 != 0) {
        EXPECT_EQ(got.status().code(), StatusCode::kNotFound) << i;
      } else {
        ASSERT_OK(got);
        EXPECT_EQ(got->delivery.event, EventOf(i));
      }
    }
  }
}

// The whole way of a full compaction, and what it says of itself.
TEST(HousekeepingTest, CompactGivesBackWhatIsDead) {
  TempDir directory;
  EngineOptions options = TinySegments(directory.Sub("store"));
  options.space_ratio = 100;  // so that only Compact() compacts
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
  for (uint64_t i = 0; i < 1'500; ++i) {
    ASSERT_OK(engine->deliveries().Put(DeliveryFor(IdOf(i), EventOf(i))).refused());
  }
  for (uint64_t i = 0; i < 1'500; ++i) {
    if (i % 10 == 0) continue;
    ASSERT_OK(engine->deliveries().Remove({.id = IdOf(i), .reason = Reason::kAcked}).refused());
  }
  ASSERT_OK(engine->Flush());
  ASSERT_OK_AND_ASSIGN(const CompactionReport report, engine->Compact());
  EXPECT_GT(report.compacted_segments, 3u);
  EXPECT_GT(report.retired_segments, 3u);
  EXPECT_GE(report.restated_records, 100u);
  EXPECT_LE(report.restated_records, 150u);
  EXPECT_LT(report.disk_bytes_after, report.disk_bytes_before);
  EXPECT_EQ(engine->deliveries().Count(), 150u);
  ASSERT_OK(engine->Close());
  EXPECT_FAILS(engine->Checkpoint(), kFailedPrecondition, kClosed);
  EXPECT_FAILS(engine->Compact().status(), kFailedPrecondition, kClosed);
}

// A full simulated disk, with the clock in hand.
class FullDisk {
 public:
  FullDisk() {
    clock_.JumpWhenAsked(absl::Milliseconds(100));
    EngineOptions options = TinySegments("");
    options.commit_interval = absl::ZeroDuration();
    options.checkpoint_every_bytes = uint64_t{1} << 30;  // only where room is wanted
    options.clock = &clock_;
    options.rng = &rng_;
    engine_ = OpenEngineOn(storage_, options, /*threads=*/false).value();
    Status refused;
    while (puts_ < 100'000 && refused.ok()) refused = Put();
    EXPECT_EQ(DetailOf(refused), Detail::kDiskFull) << refused;
  }
  TickingEngine& engine() { return *engine_; }
  uint64_t puts() const { return puts_; }
  // Somebody else takes the rest of it.
  void LeaveNothingFree() {
    const auto ballast = storage_.OpenFile("ballast", OpenMode::kCreate).value();
    EXPECT_OK(ballast->WriteAt(0, AsBytes(std::string(storage_.disk().free_bytes(), 'x'))));
    EXPECT_EQ(storage_.disk().free_bytes(), 0u);
  }
  // Puts go on, at least twenty of them.
  void ExpectToGoOn() {
    const uint64_t before = puts_;
    Status refused;
    for (int turn = 0; turn < 400 && puts_ < before + 20; ++turn) {
      clock_.Advance(absl::Milliseconds(500));
      engine_->Tick();
      refused = Put();
    }
    const EngineStats stats = engine_->stats();
    EXPECT_EQ(puts_, before + 20) << refused << "; " << stats.checkpoints << " checkpoints, "
                                  << stats.retired_segments << " retired";
    EXPECT_GT(stats.retired_segments, 0u);
  }

 private:
  Status Put() {
    const Commit commit = engine_->deliveries().Put(DeliveryFor(IdOf(puts_), EventOf(puts_)));
    if (!commit.refused().ok()) return commit.refused();
    ++puts_;
    return commit.Wait();
  }

  SimClock clock_;
  SeededRng rng_{3};
  SimStorage storage_{SimDisk({.bytes_max = uint64_t{2} << 20}), {}};
  std::unique_ptr<TickingEngine> engine_;
  uint64_t puts_ = 0;
};

// Removals one by one, until even they find no room: compaction still has some, and brings it all
// back.
// Proves: G8
TEST(HousekeepingTest, RemovesDoNotEatWhatCompactionNeeds) {
  FullDisk disk;
  for (uint64_t i = 0; i < disk.puts(); ++i) {
    if (i % 3 == 0) continue;
    const Commit removed =
        disk.engine().deliveries().Remove({.id = IdOf(i), .reason = Reason::kAcked});
    if (!removed.refused().ok()) break;
    EXPECT_OK(removed.Wait());
  }
  disk.ExpectToGoOn();
  EXPECT_GT(disk.engine().stats().restated_records, 0u);
}

// Not a byte is free any more, not even for the checkpoint without which dead segments cannot go:
// it gets the room of a segment of the reserve.
// Proves: G8
TEST(HousekeepingTest, ACheckpointFindsRoomOnADiskWithoutAny) {
  FullDisk disk;
  disk.LeaveNothingFree();
  for (uint64_t i = 0; i < disk.puts(); i += 50) {
    const Commit removed = disk.engine().Transact([&](Transaction& change) {
      for (uint64_t id = i; id < std::min(i + 50, disk.puts()); ++id) {
        change.RemoveDelivery(IdOf(id), Reason::kAcked);
      }
    });
    ASSERT_OK(removed.Wait());
  }
  disk.ExpectToGoOn();
}

// A damaged segment can neither be compacted nor go, nor can any behind it: then the bound is no
// reason to keep writers waiting.
// Proves: G8
TEST(HousekeepingTest, WritersDoNotWaitForWhatCannotBeSetFree) {
  SimStorage storage(SimDisk(), {.wait_really = true});
  ASSERT_OK_AND_ASSIGN(const auto engine,
                       OpenEngineOn(storage, TinySegments(""), /*threads=*/true));
  uint64_t number = 0;
  const auto put = [&] {
    ++number;
    ASSERT_OK(engine->deliveries().Put(DeliveryFor(IdOf(number), EventOf(number))).Wait());
  };
  while (engine->stats().sealed_segments == 0) put();
  // In the middle of an event: a group of one event begins at each block.
  storage.Damage(SegmentFileName(SegmentId(1)), kSegment / 2 + 200, AsBytes("decayed"));
  const uint64_t stay = number;
  const auto over = [&] {
    const EngineStats stats = engine->stats();
    return stats.disk_bytes > stats.disk_bytes_bound + 4 * kSegment;
  };
  while (!over()) {
    put();
    ASSERT_OK(engine->deliveries().Remove({.id = IdOf(number), .reason = Reason::kAcked}).Wait());
  }
  EXPECT_GT(engine->stats().segment_waits, 0u);
  EXPECT_EQ(engine->stats().live_records, stay);
}

TEST(HousekeepingTest, AnOpenTellsHowFarItHasCome) {
  TempDir directory;
  EngineOptions options = TinySegments(directory.Sub("store"));
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
    for (uint64_t i = 0; i < 300; ++i) {
      ASSERT_OK(engine->deliveries().Put(DeliveryFor(IdOf(i), EventOf(i))).refused());
    }
  }
  for (const bool read_only : {true, false}) {
    uint64_t calls = 0;
    options.read_only = read_only;
    options.on_recovery_progress = [&](const RecoveryProgress& now) {
      ++calls;
      EXPECT_LE(now.bytes_done, now.bytes_total);
      EXPECT_GT(now.bytes_total, 0u);
    };
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
    EXPECT_GT(calls, 0u);
  }
}

TEST(HousekeepingTest, ACleanStopLeavesACheckpoint) {
  TempDir directory;
  EngineOptions options = TinySegments(directory.Sub("store"));
  options.checkpoint_every_bytes = uint64_t{1} << 30;  // so that only the stop takes one,
  options.space_ratio = 100;                           // and no want of space before it
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
    for (uint64_t i = 0; i < 300; ++i) {
      ASSERT_OK(engine->deliveries().Put(DeliveryFor(IdOf(i), EventOf(i))).refused());
    }
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
  EXPECT_TRUE(engine->recovery().clean);
  EXPECT_GT(engine->recovery().checkpoint_lsn, 0u);
  EXPECT_EQ(engine->recovery().records, 0u) << "behind a checkpoint of a clean stop is nothing";
  EXPECT_EQ(engine->deliveries().Count(), 300u);
}

}  // namespace
}  // namespace holdfast
