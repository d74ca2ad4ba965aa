// What must hold while many threads use the stores at once; runs under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "stores/engine_on_storage.h"
#include "tests/sim/sim_storage.h"
#include "tests/stores/fake_stores.h"
#include "tests/support/deep_storage.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// An engine with its threads, on a simulated disk that can be seen at any moment.
struct LiveStore {
  explicit LiveStore(SimDisk disk = SimDisk(), uint64_t cache_entries = 10'000)
      : storage(
            std::make_unique<SimStorage>(std::move(disk), SimStorageOptions{.wait_really = true})) {
    EngineOptions options;
    options.segment_bytes = uint64_t{256} << 10;
    options.value_cache_entries = cache_entries;
    auto opened = OpenEngineOn(*storage, options, /*threads=*/true);
    CHECK_OK(opened);
    engine = *std::move(opened);
  }
  Engine* operator->() { return engine.get(); }

  std::unique_ptr<SimStorage> storage;
  std::unique_ptr<TickingEngine> engine;
};

void RunAll(const std::vector<std::function<void()>>& bodies) {
  std::vector<std::thread> threads;
  for (const auto& body : bodies) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

void RaiseTo(std::atomic<uint64_t>& maximum, uint64_t value) {
  uint64_t seen = maximum.load();
  while (seen < value && !maximum.compare_exchange_weak(seen, value)) {
  }
}

// Every read is at least every write that was completed before it; the last value is the maximum;
// what was confirmed before a kill is there after it. Proves: O1
TEST(RacesTest, OffsetsOnlyRiseForEveryReader) {
  const OffsetKey key{"orders", "billing", 0};
  for (const uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(seed);
    LiveStore store;
    std::atomic<uint64_t> written{0}, confirmed{0}, highest{0};
    std::atomic<int> writers{3};
    const auto writer = [&](uint64_t number) {
      SeededRng rng(seed * 100 + number);
      for (int i = 0; i < 200; ++i) {
        const uint64_t next = rng.Below(1'000'000) + 1;
        const Commit commit = store->offsets().Write(key, next);
        RaiseTo(written, next);
        RaiseTo(highest, next);
        if (rng.OneIn(4) && commit.Wait().ok()) RaiseTo(confirmed, next);
      }
      --writers;
    };
    SimDisk disk;
    uint64_t confirmed_at_kill = 0;
    const auto reader = [&] {
      uint64_t last = 0;
      while (writers > 0) {
        const uint64_t before = written;
        const auto read = store->offsets().Read(key);
        if (!read.ok()) continue;
        ASSERT_GE(read->position.next, before);
        ASSERT_GE(read->position.next, last);
        last = read->position.next;
      }
    };
    const auto killer = [&] {
      while (writers > 0 && confirmed < 900'000) std::this_thread::yield();
      confirmed_at_kill = confirmed;
      disk = store.storage->disk().Kill(seed, /*late=*/false);
    };
    RunAll({[&] { writer(1); }, [&] { writer(2); }, [&] { writer(3); }, reader, killer});
    EXPECT_EQ(store->offsets().Read(key)->position, OffsetPosition(highest));

    store.engine.reset();  // its threads share pages of the disk with the copy
    LiveStore after(disk);
    if (confirmed_at_kill > 0) {
      const auto read = after->offsets().Read(key);
      ASSERT_OK(read);
      EXPECT_GE(read->position.next, confirmed_at_kill);
      EXPECT_LE(read->position.next, highest);
    }
  }
}

// Once a remove was reported durable, nothing shows the id again, however puts, retries, reads of
// cold values and visits race with it; nor does a restart. Proves: D2, D6
TEST(RacesTest, ARemovedDeliveryNeverComesBack) {
  constexpr int kDeliveries = 200;
  for (const uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(seed);
    LiveStore store(SimDisk(), /*cache_entries=*/4);
    std::vector<std::atomic<bool>> gone(kDeliveries);
    std::atomic<int> busy{2};
    const auto id_of = [](int i) { return "id-" + std::to_string(i); };
    const auto event_of = [](int i) { return std::string(2'500 + static_cast<size_t>(i), 'e'); };
    for (int i = 0; i < kDeliveries; ++i) {  // more than stays in memory
      ASSERT_OK(store->deliveries().Put(DeliveryFor(id_of(i), event_of(i))).refused());
    }
    const auto remover = [&](int parity) {
      for (int i = parity; i < kDeliveries; i += 2) {
        const Commit removed =
            store->deliveries().Remove({.id = id_of(i), .reason = Reason::kAcked});
        EXPECT_TRUE(removed.changed());
        EXPECT_OK(removed.Wait());
        gone[static_cast<size_t>(i)] = true;
      }
      --busy;
    };
    const auto retrier = [&] {
      SeededRng rng(seed);
      while (busy > 0) {
        const int i = static_cast<int>(rng.Below(kDeliveries));
        const bool was_gone = gone[static_cast<size_t>(i)];
        const Commit update = store->deliveries().Update(
            {.id = id_of(i), .epoch = 1, .attempt = 1, .due = absl::Seconds(1)});
        ASSERT_FALSE(was_gone && update.changed());
      }
    };
    const auto reader = [&] {
      SeededRng rng(seed + 1);
      while (busy > 0) {
        const int i = static_cast<int>(rng.Below(kDeliveries));
        const bool was_gone = gone[static_cast<size_t>(i)];
        const auto got = store->deliveries().Get(id_of(i));
        ASSERT_FALSE(was_gone && got.ok());
        if (got.ok()) {
          ASSERT_EQ(got->delivery.id, id_of(i));
          ASSERT_EQ(got->delivery.event, event_of(i));
        } else {
          ASSERT_FAILS(got, kNotFound, kNone);
        }
      }
    };
    const auto visitor = [&] {
      while (busy > 0) {
        std::vector<bool> was_gone;
        for (const auto& is_gone : gone) was_gone.push_back(is_gone);
        EXPECT_OK(store->deliveries().Iterate([&](const StoredDelivery& stored) {
          EXPECT_FALSE(was_gone[std::stoul(stored.delivery.id.substr(3))]);
          return true;
        }));
      }
    };
    RunAll({[&] { remover(0); }, [&] { remover(1); }, retrier, reader, visitor});
    EXPECT_EQ(store->deliveries().Count(), 0u);

    store.storage->PowerOff();  // so that nothing goes on beneath the copy
    LiveStore after(store.storage->disk().Kill(seed, /*late=*/false));
    EXPECT_EQ(after->deliveries().Count(), 0u);
  }
}

// A long visit reads in a thread of its own beside those that change what it is about to show.
// Proves: D2, D4
TEST(RacesTest, AVisitThatReadsAheadShowsNothingThatWasRemoved) {
  constexpr int kDeliveries = 6'000;
  SimStorage storage{SimDisk(), SimStorageOptions{.wait_really = true}};
  DeepStorage deep(storage);
  EngineOptions options;
  options.segment_bytes = uint64_t{256} << 10;  // and as much stays in memory
  options.value_cache_entries = 0;
  options.commit_interval = absl::Milliseconds(1);
  auto engine = OpenEngineOn(deep, options, /*threads=*/true);
  ASSERT_OK(engine);
  DeliveryStateStore& deliveries = (*engine)->deliveries();
  const auto id_of = [](int i) { return "id-" + std::to_string(i); };
  const auto event_of = [](int i) { return "event " + std::to_string(i * 7); };
  for (int i = 0; i < kDeliveries; ++i) Accept(deliveries.Put(DeliveryFor(id_of(i), event_of(i))));
  ASSERT_OK((*engine)->Flush());

  std::vector<std::atomic<bool>> gone(kDeliveries);
  std::atomic<bool> busy{true};
  const auto changer = [&] {
    for (int visit = 0; visit < kDeliveries; visit += 3) {
      Accept(deliveries.Put(DeliveryFor(id_of(visit), event_of(visit))));  // moves
      EXPECT_TRUE(deliveries.Remove({.id = id_of(visit + 1)}).changed());
      gone[static_cast<size_t>(visit) + 1] = true;
    }
    busy = false;
  };
  const auto visitor = [&] {
    for (bool last = false; !last;) {
      last = !busy;
      std::vector<bool> was_gone(gone.begin(), gone.end());
      std::set<std::string> seen;
      EXPECT_OK(deliveries.Iterate([&](const StoredDelivery& stored) {
        const int number = std::stoi(stored.delivery.id.substr(3));
        EXPECT_FALSE(was_gone[static_cast<size_t>(number)]);
        EXPECT_EQ(stored.delivery.event, event_of(number));
        EXPECT_TRUE(seen.insert(stored.delivery.id).second);
        return true;
      }));
      EXPECT_GE(seen.size(), static_cast<size_t>(kDeliveries / 3 * 2));
      // Ended while the next ones are read.
      int some = 2'000;
      EXPECT_OK(deliveries.Iterate([&](const StoredDelivery&) { return --some > 0; }));
    }
  };
  RunAll({changer, visitor, visitor});
}

// Transactions of many threads are whole for every reader: a delivery is in flight or dead, never
// both, never neither. Proves: D2
TEST(RacesTest, MovesToTheDeadLettersAreWhole) {
  constexpr int kDeliveries = 150;
  LiveStore store;
  const auto id_of = [](int i) { return "id-" + std::to_string(i); };
  for (int i = 0; i < kDeliveries; ++i) Accept(store->deliveries().Put(DeliveryFor(id_of(i))));
  std::atomic<int> busy{2};
  std::atomic<int> acked{0}, dead{0};
  // Two ends race for each delivery; one gets it.
  const auto ender = [&](bool acks) {
    for (int i = 0; i < kDeliveries; ++i) {
      if (acks) {
        if (store->deliveries().Remove({.id = id_of(i)}).changed()) ++acked;
      } else {
        const Commit moved = store->Transact([&](Transaction& t) {
          t.UpdateDelivery({.id = id_of(i), .epoch = 3, .attempt = 6, .due = absl::Seconds(1)});
          t.RecordDeadLetter(DeadLetterFor(id_of(i)));
          t.RemoveDelivery(id_of(i), Reason::kDeadLettered);
        });
        if (moved.changed()) ++dead;
      }
    }
    --busy;
  };
  const auto reader = [&] {
    SeededRng rng(1);
    while (busy > 0) {
      const std::string id = id_of(static_cast<int>(rng.Below(kDeliveries)));
      // Dead first: a move between the two looks must not show it twice.
      const bool was_dead = store->dead_letters().IsDeadLettered(id)->recorded;
      EXPECT_FALSE(was_dead && store->deliveries().Get(id).ok());
    }
  };
  RunAll({[&] { ender(true); }, [&] { ender(false); }, reader});
  EXPECT_EQ(acked + dead, kDeliveries);
  EXPECT_EQ(store->dead_letters().Count(), static_cast<uint64_t>(dead));
  EXPECT_EQ(store->deliveries().Count(), 0u);
}

// Proves: A1
TEST(RacesTest, IdsOfManyThreadsDoNotRepeat) {
  LiveStore store;
  std::vector<std::vector<std::string>> ids(4);
  std::vector<std::function<void()>> bodies;
  for (auto& mine : ids) {
    bodies.push_back([&store, &mine] {
      for (int i = 0; i < 1'000; ++i) mine.push_back(store->NewDeliveryId());
    });
  }
  RunAll(bodies);
  std::set<std::string> all;
  for (const auto& mine : ids) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 4'000u);
}

}  // namespace
}  // namespace holdfast
