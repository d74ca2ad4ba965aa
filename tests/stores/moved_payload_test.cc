// Payloads that move, and segments that go and come back under another life, while somebody reads:
// the reader of the engine itself finds the new place; one beside it may have to be opened again,
// but is never shown another value, and no damage.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "stores/engine_on_storage.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/stores/fake_stores.h"
#include "tests/support/forwarding_storage.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

constexpr uint64_t kSegment = uint64_t{64} << 10;
constexpr uint64_t kDeliveries = 100;

std::string IdOf(uint64_t number) { return "id-" + std::to_string(number); }
std::string EventOf(const std::string& id) {
  return id + std::string(900, static_cast<char>('a' + id.size() % 26));
}

// Calls a hook once, just before a read of a segment that is open for reading.
class HookStorage final : public ForwardingStorage {
 public:
  explicit HookStorage(Storage& inner) : ForwardingStorage(inner) {}

  void BeforeNextRead(std::function<void()> hook) { BeforeRead(0, std::move(hook)); }
  // So many reads are passed over.
  void BeforeRead(uint64_t reads, std::function<void()> hook) {
    reads_left_ = reads;
    hook_ = std::move(hook);
  }
  bool hook_was_called() const { return hook_ == nullptr; }

  StatusOr<std::unique_ptr<File>> OpenFile(const std::string& name, OpenMode mode,
                                           FileUse use) override {
    ASSIGN_OR_RETURN(std::unique_ptr<File> file, inner().OpenFile(name, mode, use));
    const bool hooked = mode == OpenMode::kReadOnly && name.ends_with(".seg");
    return std::make_unique<HookFile>(std::move(file), hooked ? this : nullptr);
  }

 private:
  class HookFile final : public ForwardingFile {
   public:
    HookFile(std::unique_ptr<File> inner, HookStorage* storage)
        : ForwardingFile(std::move(inner)), storage_(storage) {}
    StatusOr<size_t> ReadAt(uint64_t offset, ByteSpan buffer) override {
      if (storage_ != nullptr && storage_->hook_ != nullptr && storage_->reads_left_-- == 0) {
        if (const auto hook = std::exchange(storage_->hook_, nullptr)) hook();
      }
      return ForwardingFile::ReadAt(offset, buffer);
    }

   private:
    HookStorage* storage_;
  };

  std::function<void()> hook_;
  uint64_t reads_left_ = 0;
};

class MovedPayloadTest : public testing::Test {
 protected:
  MovedPayloadTest() {
    options_.clock = &clock_;
    options_.rng = &rng_;
    options_.segment_bytes = kSegment;
    options_.value_cache_entries = 0;  // every read is cold
    options_.space_ratio = 100;        // so that only Compact() compacts
  }
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(engine_, OpenEngineOn(storage_, options_, /*threads=*/false));
    Put(0, kDeliveries);
    ASSERT_GT(engine_->stats().sealed_segments, 4u);
  }
  StatusOr<std::unique_ptr<TickingEngine>> OpenReader() {
    EngineOptions options = options_;
    options.read_only = true;
    return OpenEngineOn(storage_, options, /*threads=*/false);
  }
  void Put(uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      ASSERT_OK(engine_->deliveries().Put(DeliveryFor(IdOf(i), EventOf(IdOf(i)))).Wait());
    }
  }
  // Every segment that there is goes, and its file comes back full of other records.
  void Turn() {
    const uint64_t before = engine_->stats().retired_segments;
    ASSERT_OK(engine_->Compact());
    ASSERT_OK(engine_->Compact());
    ASSERT_GT(engine_->stats().retired_segments, before);
    ++turns_;
    Put(1'000 * turns_, 1'000 * turns_ + kDeliveries);
  }

  SimClock clock_;
  SeededRng rng_{7};
  EngineOptions options_;
  SimStorage disk_;
  HookStorage storage_{disk_};
  std::unique_ptr<TickingEngine> engine_;
  uint64_t turns_ = 0;
};

// Proves: D6, G4
TEST_F(MovedPayloadTest, AReadThatIsOvertakenFindsTheNewPlace) {
  for (const uint64_t number : {uint64_t{0}, uint64_t{40}, kDeliveries - 20}) {
    storage_.BeforeNextRead([&] { Turn(); });
    const auto got = engine_->deliveries().Get(IdOf(number));
    EXPECT_TRUE(storage_.hook_was_called());
    ASSERT_OK(got);
    EXPECT_EQ(got->delivery.event, EventOf(IdOf(number)));
  }
}

// Proves: D6, G4
TEST_F(MovedPayloadTest, AVisitThatIsOvertakenShowsEveryValueOnce) {
  storage_.BeforeNextRead([&] { Turn(); });
  uint64_t visited = 0;
  ASSERT_OK(engine_->deliveries().Iterate([&](const StoredDelivery& stored) {
    EXPECT_EQ(stored.delivery.event, EventOf(stored.delivery.id));
    ++visited;
    return true;
  }));
  EXPECT_TRUE(storage_.hook_was_called());
  EXPECT_EQ(visited, kDeliveries);
}

// Proves: G4
TEST_F(MovedPayloadTest, ARemovalThatOvertakesAReadIsNoDamage) {
  storage_.BeforeNextRead([&] {
    ASSERT_OK(engine_->deliveries().Remove({.id = IdOf(3), .reason = Reason::kAcked}).Wait());
    Turn();
  });
  EXPECT_FAILS(engine_->deliveries().Get(IdOf(3)), kNotFound, kNone);
}

// Proves: G4
TEST_F(MovedPayloadTest, AReaderBesideIsToldToTryAgainAndShownNothingElse) {
  ASSERT_OK_AND_ASSIGN(const auto reader, OpenReader());
  ASSERT_EQ(reader->deliveries().Count(), kDeliveries);
  // It has the oldest ones open already.
  ASSERT_OK(reader->deliveries().Get(IdOf(0)));
  Turn();
  uint64_t gone = 0;
  for (uint64_t i = 0; i < kDeliveries; ++i) {
    const auto got = reader->deliveries().Get(IdOf(i));
    if (got.ok()) {
      EXPECT_EQ(got->delivery.event, EventOf(IdOf(i)));
    } else {
      EXPECT_EQ(got.status().code(), StatusCode::kUnavailable) << got.status();
      ++gone;
    }
  }
  EXPECT_GT(gone, 0u);
  const absl::Status visited = reader->deliveries().Iterate([&](const StoredDelivery& stored) {
    EXPECT_EQ(stored.delivery.event, EventOf(stored.delivery.id));
    return true;
  });
  EXPECT_EQ(visited.code(), StatusCode::kUnavailable) << visited;

  ASSERT_OK_AND_ASSIGN(const auto again, OpenReader());
  EXPECT_EQ(again->deliveries().Count(), 2 * kDeliveries);
  for (uint64_t i = 0; i < kDeliveries; ++i) EXPECT_OK(again->deliveries().Get(IdOf(i)));
}

// Proves: G4, G7
TEST_F(MovedPayloadTest, AnOpenThatIsOvertakenAtAnyReadBeginsAnew) {
  // The journal turns around, or only grows by some segments.
  const auto grow = [&] {
    ++turns_;
    Put(1'000 * turns_, 1'000 * turns_ + 40);
  };
  const auto turn = [&] {
    grow();
    ASSERT_OK(engine_->Compact());
    ASSERT_OK(engine_->Compact());
    Put(1'000 * turns_ + 40, 1'000 * turns_ + kDeliveries);
  };
  // From the same state each time.
  const auto clean_up = [&] {
    for (uint64_t i = 1'000 * turns_; i < 1'000 * turns_ + kDeliveries; ++i) {
      Accept(engine_->deliveries().Remove({.id = IdOf(i), .reason = Reason::kAcked}));
    }
    ASSERT_OK(engine_->Compact());
  };
  for (const std::function<void()>& change : std::vector<std::function<void()>>{turn, grow}) {
    for (uint64_t read = 0; !HasFailure(); ++read) {
      SCOPED_TRACE(read);
      ASSERT_LT(read, 300u);
      clean_up();
      const uint64_t count = engine_->deliveries().Count();
      storage_.BeforeRead(read, change);
      const auto reader = OpenReader();
      ASSERT_OK(reader);
      EXPECT_GE((*reader)->deliveries().Count(), count);
      if (!storage_.hook_was_called()) break;
    }
    storage_.BeforeNextRead(nullptr);
  }
}

// The same on real files, with a writer that does not stop.
// Proves: G4, G7
TEST(ReaderBesideTest, OpensAndReadsWhileSegmentsGoAndComeBack) {
  TempDir directory;
  EngineOptions options;
  options.directory = directory.Sub("store");
  options.io = BackendUnderTest();
  options.segment_bytes = kSegment;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
  const auto put = [&](uint64_t i) {
    return engine->deliveries().Put(DeliveryFor(IdOf(i), EventOf(IdOf(i))));
  };
  for (uint64_t i = 0; i < 20; ++i) ASSERT_OK(put(i).Wait());  // these stay
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t i = 1'000; !done; ++i) {
      EXPECT_OK(put(i).Wait());
      if (i >= 1'010) {
        EXPECT_OK(engine->deliveries().Remove({.id = IdOf(i - 10)}).refused());
      }
      if (i % 50 == 0) {
        EXPECT_OK(engine->Compact());
      }
    }
  });
  options.read_only = true;
  options.value_cache_entries = 0;
  uint64_t opened = 0, read = 0;
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    const auto reader = Engine::Open(options);
    if (!reader.ok()) {
      EXPECT_EQ(reader.status().code(), StatusCode::kUnavailable) << reader.status();
      continue;
    }
    ++opened;
    EXPECT_GE((*reader)->deliveries().Count(), 20u);
    for (uint64_t i = 0; i < 20; ++i) {
      const auto got = (*reader)->deliveries().Get(IdOf(i));
      if (!got.ok()) {
        EXPECT_EQ(got.status().code(), StatusCode::kUnavailable) << got.status();
        continue;
      }
      EXPECT_EQ(got->delivery.event, EventOf(IdOf(i)));
      ++read;
    }
  }
  done = true;
  writer.join();
  EXPECT_GT(engine->stats().retired_segments, 5u);
  EXPECT_GT(opened, 0u);
  EXPECT_GT(read, 0u);
}

}  // namespace
}  // namespace holdfast
