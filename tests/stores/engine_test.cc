#include "holdfast/engine.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <set>

#include "journal/mark.h"
#include "tests/stores/backends.h"
#include "tests/stores/fake_stores.h"
#include "tests/support/child_process.h"
#include "tests/support/recording_log.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

// On a real directory, otherwise with the defaults of a host.
EngineOptions OptionsIn(const std::string& directory) {
  EngineOptions options;
  options.directory = directory;
  options.io = BackendUnderTest();
  options.segment_bytes = uint64_t{1} << 20;
  return options;
}

size_t Threads() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                           std::filesystem::directory_iterator()));
}
size_t Descriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                           std::filesystem::directory_iterator()));
}

// --- The default start

// Proves: W1
TEST(EngineTest, TheDefaultStartIsDurableAndSaysSo) {
  const TempDir dir;
  RecordingLog log;
  EngineOptions options;
  options.directory = dir.Sub("state");
  options.log = &log;
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open(options));
  EXPECT_EQ(log.Count("durability synced"), 1u);
  EXPECT_EQ(log.Count(engine->stats().io_backend), 1u);
  EXPECT_EQ(engine->stats().durability, Durability::kSynced);
  EXPECT_TRUE(engine->recovery().created);
}

// Proves: W1, G1, D1
TEST(EngineTest, AfterAKillOfTheDefaultStartEverythingInFlightComesBack) {
  const TempDir dir;
  constexpr int kDeliveries = 100;
  ChildProcess child([&](int tell) {
    EngineOptions options;
    options.directory = dir.Sub("state");
    auto engine = *Engine::Open(options);
    for (int i = 0; i < kDeliveries; ++i) {
      CHECK_OK(engine->deliveries().Put(DeliveryFor("id-" + std::to_string(i))).refused());
    }
    CHECK_OK(engine->deliveries().Remove({.id = "id-7"}).refused());
    CHECK_OK(engine->Flush());
    CHECK(write(tell, "!", 1) == 1);
    pause();
  });
  ASSERT_EQ(child.Hear(1), "!");
  child.Kill();
  child.Wait();

  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open(OptionsIn(dir.Sub("state"))));
  EXPECT_FALSE(engine->recovery().clean);
  EXPECT_EQ(engine->recovery().deliveries, uint64_t{kDeliveries - 1});
  EXPECT_EQ(engine->deliveries().Count(), uint64_t{kDeliveries - 1});
  for (int i = 0; i < kDeliveries; ++i) {
    const std::string id = "id-" + std::to_string(i);
    const auto got = engine->deliveries().Get(id);
    if (i == 7) {
      EXPECT_FAILS(got, kNotFound, kNone);
    } else {
      ASSERT_OK(got);
      EXPECT_EQ(got->delivery, DeliveryFor(id));
    }
  }
}

// --- Levels

// Proves: G1
TEST(EngineTest, SyncedSurvivesAPowerCut) {
  StoreUnderTest store(Backend::kJournal);
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(store->deliveries().Put(DeliveryFor(std::to_string(i))).Wait());
    store.CutPower();
    ASSERT_EQ(store->deliveries().Count(), static_cast<uint64_t>(i + 1));
  }
}

// Proves: G1
TEST(EngineTest, WrittenSurvivesAKillAndIsShownInTheStats) {
  EngineOptions options;
  options.durability = Durability::kWritten;
  StoreUnderTest store(Backend::kJournal, options);
  EXPECT_EQ(store->stats().durability, Durability::kWritten);
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(store->deliveries().Put(DeliveryFor(std::to_string(i))).Wait());
    store.Kill(static_cast<uint64_t>(i));
    ASSERT_EQ(store->deliveries().Count(), static_cast<uint64_t>(i + 1));
  }
}

// Each prefix of what was written, and nothing else, can be what a power cut leaves.
// Proves: G2
TEST(EngineTest, APowerCutLeavesAPrefix) {
  for (const uint64_t seed : Seeds(5)) {
    SCOPED_TRACE(seed);
    EngineOptions options;
    options.commit_interval = absl::Seconds(1);
    StoreUnderTest store(Backend::kJournal, options);
    const int confirmed = 10;
    for (int i = 0; i < 40; ++i) {
      Accept(store->Transact([&](Transaction& t) {
        t.PutDelivery(DeliveryFor("id-" + std::to_string(i), std::string(2'000, 'e')));
        t.WriteOffset({"t", "c", 0}, static_cast<uint64_t>(i + 1));
      }));
      if (i + 1 == confirmed) {
        ASSERT_OK(store->Flush());
      }
    }
    store.CutPower();
    const uint64_t kept = store->offsets().Read({"t", "c", 0})->position.next;
    EXPECT_GE(kept, uint64_t{confirmed});
    EXPECT_EQ(store->deliveries().Count(), kept);
    for (uint64_t i = 0; i < kept; ++i) {
      EXPECT_OK(store->deliveries().Get("id-" + std::to_string(i)));
    }
  }
}

// --- Ids

// Two boots get the same chance and the same time, and the clock steps back.
// Proves: A1
TEST(EngineTest, IdsNeverRepeatWhateverTimeAndChanceDo) {
  SimClock clock;
  std::set<std::string> ids;
  uint64_t last_epoch = 0;
  SimDisk disk;
  for (int boot = 0; boot < 30; ++boot) {
    SeededRng same_rng(5);
    clock.SetWall(absl::FromUnixSeconds(2'000'000'000 - boot * 1'000));
    SimStorage storage(disk);
    EngineOptions options;
    options.segment_bytes = uint64_t{64} << 10;
    options.clock = &clock;
    options.rng = &same_rng;
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenEngineOn(storage, options, /*threads=*/false));
    EXPECT_GT(engine->boot_epoch(), last_epoch);
    last_epoch = engine->boot_epoch();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(ids.insert(engine->NewDeliveryId()).second);
    // The epoch was durable before the first id: a power cut does not give it out again.
    const SimDisk now = storage.disk();
    disk = now.PowerCut(std::vector<bool>(now.Loose().size(), false));
    storage.PowerOff();
  }
}

TEST(EngineTest, AnIdNamesItsBoot) {
  StoreUnderTest store(Backend::kJournal);
  store.Reopen();
  const std::string id = store->NewDeliveryId();
  EXPECT_TRUE(id.starts_with(std::to_string(store->boot_epoch()) + "-")) << id;
  EXPECT_TRUE(id.ends_with("-1")) << id;
}

// --- Time

TEST(EngineTest, EngineTimeGoesOnWhereTheLastBootStopped) {
  StoreUnderTest store(Backend::kJournal);
  ASSERT_OK(store->deliveries().Put(DeliveryFor("a")).Wait());
  store.clock().Advance(absl::Seconds(100));
  const absl::Duration before = store->EngineNow();
  store.Reopen();
  const absl::Duration after = store->EngineNow();
  EXPECT_GE(after, before - absl::Seconds(1));
  EXPECT_LE(after, before + absl::Milliseconds(1));
  store.clock().SetWall(absl::UnixEpoch());
  EXPECT_EQ(store->EngineNow(), after);
}

// --- One writer

// Proves: G9
TEST(EngineTest, ASecondEngineOfThisProcessIsLockedOut) {
  const TempDir dir;
  EngineOptions options = OptionsIn(dir.Sub("state"));
  options.lock_wait = absl::ZeroDuration();
  {
    ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open(options));
    ASSERT_OK(engine->deliveries().Put(DeliveryFor("a")).Wait());
    EXPECT_FAILS(Engine::Open(options), kFailedPrecondition, kLocked);
    EXPECT_OK(engine->deliveries().Put(DeliveryFor("b")).Wait());  // unharmed
  }
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open(options));
  EXPECT_EQ(engine->deliveries().Count(), 2u);
}

// Proves: G9
TEST(EngineTest, AnotherProcessIsLockedOut) {
  const TempDir dir;
  ChildProcess holder([&](int tell) {
    auto engine = *Engine::Open(OptionsIn(dir.Sub("state")));
    CHECK(write(tell, "!", 1) == 1);
    pause();
  });
  ASSERT_EQ(holder.Hear(1), "!");
  EngineOptions options = OptionsIn(dir.Sub("state"));
  options.lock_wait = absl::Milliseconds(20);
  EXPECT_FAILS(Engine::Open(options), kFailedPrecondition, kLocked);
  holder.Kill();
  holder.Wait();
  options.lock_wait = absl::Seconds(10);
  EXPECT_OK(Engine::Open(options));
}

// A forked child has the memory of the engine but is not its owner.
// Proves: G9
TEST(EngineTest, AForkedChildCannotWriteAndDoesNoHarm) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(auto engine, Engine::Open(OptionsIn(dir.Sub("state"))));
  ASSERT_OK(engine->deliveries().Put(DeliveryFor("a")).Wait());
  EXPECT_EQ(InChild([&] {
              const Status put = engine->deliveries().Put(DeliveryFor("child")).Wait();
              if (DetailOf(put) != Detail::kLocked) return "put: " + put.ToString();
              if (DetailOf(engine->Flush()) != Detail::kLocked) return std::string("flush");
              if (DetailOf(engine->Close()) != Detail::kLocked) return std::string("close");
              engine.reset();  // neither hangs nor closes the parent's store
              return std::string();
            }),
            "");
  EXPECT_OK(engine->deliveries().Put(DeliveryFor("b")).Wait());
  EXPECT_OK(engine->Close());
  engine.reset();
  ASSERT_OK_AND_ASSIGN(engine, Engine::Open(OptionsIn(dir.Sub("state"))));
  EXPECT_TRUE(engine->recovery().clean);
  EXPECT_EQ(engine->deliveries().Count(), 2u);
}

// --- What is refused

// Proves: W3
TEST(EngineTest, AFailedOpenLeavesNothingBehind) {
  const TempDir dir;
  const EngineOptions options = OptionsIn(dir.Sub("state"));
  ASSERT_OK(Engine::Open(options));
  ASSERT_OK(Engine::Open(options));  // whatever is made once per process is there now
  const size_t threads = Threads();
  const size_t descriptors = Descriptors();
  std::filesystem::resize_file(dir.Sub("state") + "/" + kMarkFile, 100);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Engine::Open(options).ok());
  EXPECT_EQ(Threads(), threads);
  EXPECT_EQ(Descriptors(), descriptors);
}

// Whatever operation of an open fails, the next one finds everything as it was and nobody in the
// way. Proves: W3, G7
TEST(EngineTest, AnOpenThatFailsAnywhereCanBeMadeAgain) {
  StoreUnderTest made(Backend::kJournal);
  ASSERT_OK(made->deliveries().Put(DeliveryFor("a")).Wait());
  ASSERT_OK(made->Close());
  const SimDisk disk = made.storage().disk().Kill(1, /*late=*/false);
  SimClock clock;
  clock.JumpWhenAsked(absl::Seconds(1));
  int failures = 0;
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE(at);
    SimStorage storage(disk);
    EngineOptions options;
    options.segment_bytes = uint64_t{64} << 10;
    options.clock = &clock;
    storage.SetFault(SimFault{.at = at});
    auto opened = OpenEngineOn(storage, options, /*threads=*/false);
    const bool met = storage.fault_was_met();
    storage.SetFault(std::nullopt);
    if (opened.ok()) {
      opened->reset();
    } else {
      ++failures;
    }
    auto again = OpenEngineOn(storage, options, /*threads=*/false);
    ASSERT_OK(again);
    EXPECT_EQ((*again)->deliveries().Count(), 1u);
    if (!met) break;
  }
  EXPECT_GT(failures, 10);
}

TEST(EngineTest, AMissingDirectoryIsMadeForAWriterOnly) {
  const TempDir dir;
  EngineOptions options = OptionsIn(dir.Sub("state"));
  options.read_only = true;
  EXPECT_FAILS(Engine::Open(options), kNotFound, kNone);
  EXPECT_FALSE(std::filesystem::exists(dir.Sub("state")));
  options.read_only = false;
  EXPECT_OK(Engine::Open(options));
  options.directory = dir.Sub("two/levels");
  EXPECT_FALSE(Engine::Open(options).ok());
}

TEST(EngineTest, AnEventOverTheLimitIsRefusedAndAnEmptyOneIsNot) {
  EngineOptions options;
  options.event_bytes_max = 1'000;
  for (const Backend backend : kBackends) {
    StoreUnderTest store(backend, options);
    EXPECT_OK(store->deliveries().Put(DeliveryFor("edge", std::string(1'000, 'e'))).Wait());
    EXPECT_FAILS(store->deliveries().Put(DeliveryFor("over", std::string(1'001, 'e'))).Wait(),
                 kResourceExhausted, kLimit);
    EXPECT_OK(store->deliveries().Put(DeliveryFor("empty", "")).Wait());
    store.CutPower();
    EXPECT_EQ(store->deliveries().Count(), 2u);
    EXPECT_EQ(store->deliveries().Get("empty")->delivery.event, "");
  }
}

// A batch is bounded by the segment, so that it fits one.
TEST(EngineTest, ABatchOverAQuarterOfASegmentIsRefused) {
  EngineOptions options;
  options.segment_bytes = uint64_t{64} << 10;
  options.compress_event_bytes_min = 0;
  StoreUnderTest store(Backend::kJournal, options);
  EXPECT_OK(store->deliveries().Put(DeliveryFor("a", std::string(15'000, 'e'))).Wait());
  EXPECT_FAILS(store->deliveries().Put(DeliveryFor("b", std::string(16'384, 'e'))).Wait(),
               kResourceExhausted, kLimit);
  const Commit many = store->Transact([](Transaction& t) {
    for (int i = 0; i < 20; ++i) {
      t.PutDelivery(DeliveryFor("many-" + std::to_string(i), std::string(1'000, 'e')));
    }
  });
  EXPECT_FAILS(many.Wait(), kResourceExhausted, kLimit);
  EXPECT_EQ(store->deliveries().Count(), 1u);
}

// Proves: D3
TEST(EngineTest, OnAFullDiskPutsAreRefusedAndRemovesGoOn) {
  EngineOptions options;
  options.segment_bytes = uint64_t{64} << 10;
  options.clock = nullptr;
  SimClock clock;
  SimStorage storage(SimDisk({.bytes_max = uint64_t{512} << 10}));
  options.clock = &clock;
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenEngineOn(storage, options, /*threads=*/false));
  std::vector<std::string> put;
  Status refused;
  for (int i = 0; i < 1'000 && refused.ok(); ++i) {
    const std::string id = "id-" + std::to_string(i);
    refused = engine->deliveries().Put(DeliveryFor(id, std::string(3'000, 'e'))).Wait();
    if (refused.ok()) put.push_back(id);
  }
  EXPECT_FAILS(refused, kResourceExhausted, kDiskFull);
  EXPECT_EQ(engine->deliveries().Count(), put.size());
  // Not each by itself: a commit takes a block, and what is left is not without end either.
  for (const std::string& id : put) EXPECT_TRUE(engine->deliveries().Remove({.id = id}).changed());
  EXPECT_OK(engine->Flush());
  EXPECT_EQ(engine->deliveries().Count(), 0u);
}

// --- Read-only

// Proves: G7
TEST(EngineTest, AReaderBesideTheWriterSeesWhatIsOnDiskAndChangesNothing) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto writer, Engine::Open(OptionsIn(dir.Sub("state"))));
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK(writer->deliveries().Put(DeliveryFor(std::to_string(i))).Wait());
  }
  ASSERT_OK(writer->offsets().Write({"t", "c", 0}, 7).Wait());
  ASSERT_OK(writer->dead_letters().Record(DeadLetterFor("d")).Wait());

  EngineOptions options = OptionsIn(dir.Sub("state"));
  options.read_only = true;
  ASSERT_OK_AND_ASSIGN(const auto reader, Engine::Open(options));
  EXPECT_EQ(reader->deliveries().Count(), 50u);
  for (int i = 0; i < 50; ++i) {
    const auto got = reader->deliveries().Get(std::to_string(i));
    ASSERT_OK(got);
    EXPECT_EQ(got->delivery, DeliveryFor(std::to_string(i)));
  }
  EXPECT_EQ(reader->offsets().Read({"t", "c", 0})->position, OffsetPosition(7));
  EXPECT_EQ(reader->dead_letters().Get("d")->dead_letter, DeadLetterFor("d"));
  EXPECT_FAILS(reader->deliveries().Put(DeliveryFor("x")).Wait(), kFailedPrecondition, kReadOnly);
  EXPECT_FAILS(reader->deliveries().Remove({.id = "1"}).Wait(), kFailedPrecondition, kReadOnly);
  EXPECT_FAILS(reader->offsets().Write({"t", "c", 0}, 8).Wait(), kFailedPrecondition, kReadOnly);
  EXPECT_EQ(reader->boot_epoch(), writer->boot_epoch());
  EXPECT_NE(reader->NewDeliveryId(), writer->NewDeliveryId());
  EXPECT_OK(reader->Flush());
  EXPECT_OK(reader->Close());
  EXPECT_OK(writer->deliveries().Put(DeliveryFor("after")).Wait());
}

// Proves: G7
TEST(EngineTest, AReaderWritesNothing) {
  StoreUnderTest made(Backend::kJournal);
  ASSERT_OK(made->deliveries().Put(DeliveryFor("a")).Wait());
  SimStorage storage(made.storage().disk().Kill(1, /*late=*/false));
  const uint64_t before = storage.disk().Fingerprint();
  storage.SetObserver([](const SimOperation& operation, const SimDisk&) {
    EXPECT_TRUE(!Changes(operation.call) || operation.call == SimCall::kOpenFile)
        << SimCallName(operation.call) << " " << operation.name;
  });
  {
    EngineOptions options;
    options.read_only = true;
    ASSERT_OK_AND_ASSIGN(const auto reader, OpenEngineOn(storage, options, /*threads=*/false));
    EXPECT_OK(reader->deliveries().Get("a"));
  }
  EXPECT_EQ(storage.disk().Fingerprint(), before);
}

// --- Close

TEST(EngineTest, AfterCloseChangesAreRefused) {
  StoreUnderTest store(Backend::kJournal);
  ASSERT_OK(store->deliveries().Put(DeliveryFor("a")).Wait());
  EXPECT_OK(store->Close());
  EXPECT_OK(store->Close());
  EXPECT_FAILS(store->deliveries().Put(DeliveryFor("b")).Wait(), kFailedPrecondition, kClosed);
  EXPECT_FAILS(store->offsets().Write({"t", "c", 0}, 1).Wait(), kFailedPrecondition, kClosed);
  EXPECT_OK(store->deliveries().Get("a"));
  store.Reopen();
  EXPECT_TRUE(store->recovery().clean);
  EXPECT_EQ(store->deliveries().Count(), 1u);
}

// Proves: G3
TEST(EngineTest, AfterAFailedWriteNothingIsConfirmedAndReopeningDecides) {
  StoreUnderTest store(Backend::kJournal);
  ASSERT_OK(store->deliveries().Put(DeliveryFor("before")).Wait());
  store.storage().SetFault(SimFault{.at = 1, .for_ever = true, .only = SimCall::kSubmit});
  // Not refused, and not confirmed: it may be there after a reopening, or not.
  const Commit during = store->deliveries().Put(DeliveryFor("during"));
  EXPECT_OK(during.refused());
  EXPECT_EQ(during.Wait().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(during.confirmed());
  store.storage().SetFault(std::nullopt);
  EXPECT_TRUE(store->stats().poisoned);
  // Refused: it never appears.
  EXPECT_FAILS(store->deliveries().Put(DeliveryFor("after")).refused(), kUnavailable, kPoisoned);
  EXPECT_OK(store->deliveries().Get("before"));
  EXPECT_FAILS(store->deliveries().Get("during"), kUnavailable, kPoisoned);
  EXPECT_FALSE(store->Close().ok());
  store.Kill();
  EXPECT_OK(store->deliveries().Get("before"));
  EXPECT_FAILS(store->deliveries().Get("after"), kNotFound, kNone);
  EXPECT_OK(store->deliveries().Put(DeliveryFor("after")).Wait());
}

// --- Options

// Proves: W2
TEST(EngineTest, EveryOptionChangesWhatTheEngineDoes) {
  const TempDir dir;
  {  // io
    EngineOptions options = OptionsIn(dir.Sub("posix"));
    options.io = IoBackend::kPosix;
    ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open(options));
    EXPECT_EQ(engine->stats().io_backend, "posix");
  }
  {  // commit_interval
    EngineOptions options;
    options.commit_interval = absl::Seconds(5);
    StoreUnderTest store(Backend::kJournal, options);
    const Commit put = store->deliveries().Put(DeliveryFor("a"));
    static_cast<TickingEngine&>(*store).Tick();
    EXPECT_FALSE(put.confirmed());
    store.clock().Advance(absl::Seconds(5));
    static_cast<TickingEngine&>(*store).Tick();
    EXPECT_OK(put.Wait());
  }
  for (const uint64_t segment_bytes : {uint64_t{64} << 10, uint64_t{512} << 10}) {
    EngineOptions options;
    options.segment_bytes = segment_bytes;
    options.compress_event_bytes_min = 0;
    StoreUnderTest store(Backend::kJournal, options);
    for (int i = 0; i < 20; ++i) {
      ASSERT_OK(
          store->deliveries().Put(DeliveryFor(std::to_string(i), std::string(9'000, 'e'))).Wait());
    }
    store.Reopen();
    EXPECT_EQ(store->recovery().segments > 3, segment_bytes == uint64_t{64} << 10);
  }
  for (const uint64_t compress_min : {uint64_t{0}, uint64_t{4'096}}) {
    EngineOptions options;
    options.compress_event_bytes_min = compress_min;
    StoreUnderTest store(Backend::kJournal, options);
    ASSERT_OK(store->deliveries().Put(DeliveryFor("a", std::string(20'000, 'e'))).Wait());
    EXPECT_EQ(store->stats().record_bytes < 10'000, compress_min != 0);
    store.Reopen();
    EXPECT_EQ(store->deliveries().Get("a")->delivery.event, std::string(20'000, 'e'));
  }
  {  // value_cache_entries, value_cache_bytes
    EngineOptions options;
    options.value_cache_entries = 3;
    StoreUnderTest few(Backend::kJournal, options);
    options.value_cache_entries = 1'000;
    options.value_cache_bytes = 2'000;
    StoreUnderTest small(Backend::kJournal, options);
    for (int i = 0; i < 20; ++i) {
      const std::string id = std::to_string(i);
      Accept(few->deliveries().Put(DeliveryFor(id)));
      Accept(small->deliveries().Put(DeliveryFor(id, std::string(500, 'e'))));
      ASSERT_OK(few->deliveries().Get(id));
      ASSERT_OK(small->deliveries().Get(id));
    }
    EXPECT_EQ(few->stats().cache_entries, 3u);
    EXPECT_LE(small->stats().cache_bytes, 2'000u);
    EXPECT_LT(small->stats().cache_entries, 5u);
    EXPECT_GT(small->stats().cache_entries, 0u);
  }
}

}  // namespace
}  // namespace holdfast
