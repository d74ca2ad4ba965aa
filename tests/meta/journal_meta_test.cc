#include "meta/journal_meta.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/engine.h"
#include "journal/base/seeded_rng.h"
#include "stores/engine_on_storage.h"
#include "tests/meta/conformance.h"
#include "tests/meta/watch_log.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/stores/fake_sink.h"
#include "tests/support/encoded_record.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// --- The conformance suite, on an engine with threads ---

enum class Ending { kClosed, kKilled };

class EngineFixture final : public MetaFixture {
 public:
  explicit EngineFixture(Ending ending) : ending_(ending) { Open(SimDisk()); }

  MetaStore& store() override { return engine_->meta(); }
  void PassTime(absl::Duration by) override { clock_.Advance(by); }
  absl::Duration lease_min() const override { return absl::Seconds(1); }
  bool ForgetHistory() override {
    auto& meta = dynamic_cast<MvccMeta&>(store());
    EXPECT_OK(meta.Compact(meta.published_revision(), {}));
    return true;
  }
  bool Restart() override {
    if (ending_ == Ending::kClosed) {
      EXPECT_OK(engine_->Close());
    } else {
      storage_->PowerOff();
    }
    engine_.reset();
    const SimDisk left = storage_->disk();
    Open(ending_ == Ending::kClosed ? left : left.Kill(1, /*late=*/false));
    return true;
  }

 private:
  void Open(SimDisk disk) {
    storage_ =
        std::make_unique<SimStorage>(std::move(disk), SimStorageOptions{.wait_really = true});
    auto engine = OpenEngineOn(*storage_, {.clock = &clock_, .rng = &rng_}, /*threads=*/true);
    EXPECT_OK(engine);
    engine_ = *std::move(engine);
  }

  const Ending ending_;
  SimClock clock_;
  SeededRng rng_{1};
  std::unique_ptr<SimStorage> storage_;
  std::unique_ptr<TickingEngine> engine_;
};

INSTANTIATE_TEST_SUITE_P(
    Journal, MetaConformanceTest,
    testing::Values(
        MetaBackend{"Closed", [] { return std::make_unique<EngineFixture>(Ending::kClosed); }},
        MetaBackend{"Killed", [] { return std::make_unique<EngineFixture>(Ending::kKilled); }}),
    BackendName);

// --- One engine without threads after the other on one disk ---

class JournalMetaTest : public testing::Test {
 protected:
  JournalMetaTest() { clock_.JumpWhenAsked(absl::Milliseconds(100)); }
  ~JournalMetaTest() override {
    if (storage_ != nullptr) storage_->PowerOff();
  }

  void Open() { Open(SimDisk(), false); }
  void Open(const SimDisk& disk, bool read_only) {
    if (storage_ != nullptr) storage_->PowerOff();
    engine_.reset();
    storage_ = std::make_unique<SimStorage>(disk);
    const EngineOptions options{.segment_bytes = uint64_t{16} << 20,
                                .read_only = read_only,
                                .clock = &clock_,
                                .rng = &rng_};
    auto engine = OpenEngineOn(*storage_, options, /*threads=*/false);
    ASSERT_OK(engine);
    engine_ = *std::move(engine);
  }
  void Reopen(Ending ending) {
    if (ending == Ending::kClosed) {
      ASSERT_OK(engine_->Close());
      engine_.reset();
      Open(storage_->disk(), false);
    } else {
      Open(storage_->disk().Kill(1, /*late=*/false), false);
    }
  }
  MvccMeta& meta() { return dynamic_cast<MvccMeta&>(engine_->meta()); }

  SimClock clock_;
  SeededRng rng_{7};
  std::unique_ptr<SimStorage> storage_;
  std::unique_ptr<TickingEngine> engine_;
};

// Also where the newest change was a deletion, of which compaction leaves nothing.
TEST_F(JournalMetaTest, TheRevisionOutlivesTheRecordsThatRaisedIt) {
  Open();
  ASSERT_OK(meta().Put("stays", "1", {}));
  ASSERT_OK(meta().Put("goes", "2", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t deleted, meta().Delete("goes", {}));
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(engine_->Compact());
    ASSERT_OK(engine_->Checkpoint());
    Reopen(Ending::kClosed);
    ASSERT_OK_AND_ASSIGN(const MetaList list, meta().List("", {}));
    EXPECT_EQ(list.revision, deleted);
    ASSERT_EQ(list.entries.size(), 1u);
    EXPECT_EQ(list.entries[0].value, "1");
  }
  EXPECT_EQ(*meta().Put("next", "", {}), deleted + 1);
}

// Proves: G11
TEST_F(JournalMetaTest, AfterAnUncleanStopRevisionsGoOnFarAboveAndStayThere) {
  Open();
  ASSERT_OK_AND_ASSIGN(const uint64_t before, meta().Put("k", "1", {}));
  Reopen(Ending::kKilled);
  EXPECT_EQ(meta().published_revision(), before);
  ASSERT_OK_AND_ASSIGN(const MetaList shown, meta().List("", {}));
  EXPECT_EQ(shown.revision, before + JournalMeta::kRevisionsSkipped);
  // What was shown holds, though nothing was written since.
  Reopen(Ending::kClosed);
  EXPECT_EQ(meta().List("", {})->revision, shown.revision);
  ASSERT_OK(engine_->Compact());
  ASSERT_OK(engine_->Checkpoint());
  Reopen(Ending::kClosed);
  EXPECT_EQ(*meta().Put("k", "2", {}), shown.revision + 1);
  // Who had seen everything before the kill may have missed something, and is told so.
  WatchLog log(meta(), "k", before + 1);
  meta().Tick();
  EXPECT_TRUE(log.resynced());
}

TEST_F(JournalMetaTest, AfterACleanStopAWatchGoesOnWhereItWas) {
  Open();
  ASSERT_OK_AND_ASSIGN(const uint64_t before, meta().Put("k", "1", {}));
  Reopen(Ending::kClosed);
  WatchLog log(meta(), "k", before + 1);
  ASSERT_OK(meta().Put("k", "2", {}));
  meta().Tick();
  ASSERT_EQ(log.events().size(), 1u);
  EXPECT_EQ(log.events()[0].entry.value, "2");
}

TEST_F(JournalMetaTest, ALeaseHasItsFullTtlAgainAfterARestart) {
  Open();
  ASSERT_OK_AND_ASSIGN(const MetaLease lease, meta().GrantLease(absl::Seconds(20), {}));
  ASSERT_OK(meta().Put("k", "", {.lease = lease.id}));
  clock_.Advance(absl::Seconds(15));
  Reopen(Ending::kKilled);
  clock_.Advance(absl::Seconds(15));
  EXPECT_OK(meta().Get("k", {}));
  EXPECT_OK(meta().LeaseInfo(lease.id, {}));
  clock_.Advance(absl::Seconds(5));
  EXPECT_FAILS(meta().Get("k", {}), kNotFound, kNone);
  EXPECT_FAILS(meta().KeepAlive(lease.id, {}), kNotFound, kNone);
  // It ended for good.
  Reopen(Ending::kKilled);
  EXPECT_FAILS(meta().Get("k", {}), kNotFound, kNone);
  EXPECT_TRUE(meta().Leases({})->empty());
}

TEST_F(JournalMetaTest, LargeValuesSurviveCheckpointAndCompaction) {
  Open();
  std::map<std::string, std::string> values;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{65'535}, size_t{65'536}, size_t{65'537},
                             size_t{131'072}, size_t{1'400'000}}) {
    std::string value(bytes, '\0');
    for (char& byte : value) byte = static_cast<char>(rng_.Next());
    const std::string key = "k" + std::to_string(bytes);
    ASSERT_OK(meta().Put(key, value, {.request_id = "r"}));
    values[key] = std::move(value);
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(engine_->Compact());
    ASSERT_OK(engine_->Checkpoint());
    Reopen(i == 1 ? Ending::kKilled : Ending::kClosed);
    EXPECT_GT(engine_->recovery().checkpoint_lsn, 0u);
    for (const auto& [key, value] : values) {
      ASSERT_OK_AND_ASSIGN(const MetaEntry entry, meta().Get(key, {}));
      EXPECT_TRUE(entry.value == value) << key;
      EXPECT_EQ(entry.request_id, "r");
    }
  }
}

TEST_F(JournalMetaTest, AReaderSeesItAndCannotChangeIt) {
  Open();
  ASSERT_OK_AND_ASSIGN(const MetaLease lease, meta().GrantLease(absl::Seconds(1), {}));
  ASSERT_OK(meta().Put("k", "1", {.lease = lease.id}));
  const SimDisk left = storage_->disk().Kill(1, /*late=*/false);
  Open(left, /*read_only=*/true);
  clock_.Advance(absl::Hours(1));  // somebody else ends leases
  EXPECT_EQ(meta().Get("k", {})->value, "1");
  const auto put = meta().Put("k", "2", {});
  EXPECT_FAILS(put, kFailedPrecondition, kReadOnly);
  EXPECT_EQ(MetaResultOf(put.status()), MetaResult::kUnavailable);
}

TEST_F(JournalMetaTest, ChangesAreRefusedAfterClose) {
  Open();
  ASSERT_OK(meta().Put("k", "1", {}));
  ASSERT_OK(engine_->Close());
  EXPECT_FAILS(meta().Put("k", "2", {}), kFailedPrecondition, kClosed);
  EXPECT_EQ(meta().Get("k", {})->value, "1");
}

// Proves: S2, S3
TEST_F(JournalMetaTest, AWriteThatTheDiskDidNotConfirmIsUnknownAndNothingIsShownAfterIt) {
  Open();
  ASSERT_OK(meta().Put("k", "1", {}));
  storage_->SetFault(SimFault{.at = storage_->operations() + 1, .for_ever = true});
  const auto put = meta().Put("k", "2", {.request_id = "mine"});
  EXPECT_FAILS(put, kUnavailable, kUnknownOutcome);
  EXPECT_EQ(MetaResultOf(meta().Get("k", {}).status()), MetaResult::kUnavailable);
  EXPECT_EQ(MetaResultOf(meta().Put("k", "3", {}).status()), MetaResult::kUnavailable);
}

// --- The state machine alone ---

struct Machine {
  explicit Machine(uint64_t seed = 1) : meta(mu, live, clock, seed, {}) {
    for (const RecordType type : JournalMeta::kTypes) machines.Route(type, meta);
  }
  Mutex mu;
  LiveBytes live;
  SimClock clock;
  JournalMeta meta;
  StateMachines machines;
};

// What happens to a few keys and leases, as records with places.
class Records {
 public:
  struct Written {
    std::string bytes;
    RecordRef ref;
    RawRecord raw() const {
      ByteView view = AsBytes(bytes);
      return *TakeRecord(view);
    }
  };

  explicit Records(uint64_t seed) : rng_(seed) {}

  Lsn newest() const { return Lsn(written_.size()); }
  const Written& at(Lsn lsn) const { return written_[lsn.value() - 1]; }
  void Next() {
    const std::string key = "key-" + std::to_string(rng_.Below(12));
    switch (rng_.Below(8)) {
      case 0:
      case 1:
        if (versions_.erase(key) > 0) Write(MetaDelete{.key = key, .revision = ++revision_});
        return;
      case 2:
        Write(MetaLeaseGrant{.id = 1 + rng_.Below(4),
                             .ttl_ns = static_cast<int64_t>(rng_.Below(9)) + 1});
        return;
      case 3:
        Write(MetaLeaseEnd{.id = 1 + rng_.Below(4)});
        return;
      case 4:  // as compaction does
        Write(MetaRevision{.revision = revision_});
        return;
      default: {
        auto [place, made] = versions_.try_emplace(key, std::pair(revision_ + 1, uint64_t{0}));
        const std::string value(rng_.OneIn(4) ? rng_.Below(200'000) : rng_.Below(50),
                                static_cast<char>(rng_.Next()));
        Write(MetaPut{.key = key,
                      .create_revision = place->second.first,
                      .revision = ++revision_,
                      .version = ++place->second.second,
                      .lease = rng_.Below(5),
                      .value = value});
      }
    }
  }

 private:
  template <typename Record>
  void Write(const Record& record) {
    Written written{.ref = {.segment = static_cast<uint32_t>(1 + written_.size() / 40),
                            .offset = static_cast<uint32_t>(8 * written_.size()),
                            .length = 8}};
    EncodeRecord(record, written.bytes);
    written_.push_back(std::move(written));
  }

  SeededRng rng_;
  uint64_t revision_ = 1;
  std::map<std::string, std::pair<uint64_t, uint64_t>> versions_;  // create revision, version
  std::vector<Written> written_;
};

void Apply(Machine& machine, const Records& records, Lsn lsn) {
  machine.machines.Apply(records.at(lsn).raw(), lsn, records.at(lsn).ref);
}

// Its entries, sorted.
std::vector<std::string> StateOf(const Machine& machine) {
  std::vector<std::string> entries;
  uint64_t cursor = 0;
  for (bool more = true; more;) {
    std::string entry;
    more = machine.meta.WriteSnapshot(cursor, 1, entry);
    if (!entry.empty()) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Proves: G2
TEST(JournalMetaMachineTest, LoadingAndReplayingIsReplayingEverything) {
  for (const uint64_t seed : Seeds(150)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    Records records(seed);
    Machine running;
    const auto happen = [&](uint64_t count) {
      for (; count > 0; --count) {
        const Lsn before = records.newest();
        records.Next();
        if (before < records.newest()) Apply(running, records, records.newest());
      }
    };
    happen(rng.Below(200));
    const Lsn from = records.newest();
    std::vector<std::string> chunks;
    uint64_t cursor = 0;
    for (bool more = true; more;) {
      chunks.emplace_back();
      more = running.meta.WriteSnapshot(cursor, 1 + rng.Below(100'000), chunks.back());
      EXPECT_LE(chunks.back().size(), 262'144u);
      happen(rng.Below(6));
    }
    Machine loaded(2), scanned(3);
    for (const std::string& chunk : chunks) {
      ASSERT_OK(loaded.meta.LoadSnapshot(AsBytes(chunk), 10));
    }
    for (Lsn lsn = from + 1; lsn <= records.newest(); lsn = lsn + 1) Apply(loaded, records, lsn);
    for (Lsn lsn(1); lsn <= records.newest(); lsn = lsn + 1) Apply(scanned, records, lsn);
    const std::vector<std::string> state = StateOf(running);
    ASSERT_EQ(StateOf(loaded), state);
    ASSERT_EQ(StateOf(scanned), state);
    for (uint64_t segment = 1; segment < 20; ++segment) {
      for (Machine* other : {&loaded, &scanned}) {
        ASSERT_EQ(other->live.of(SegmentId(segment)).records,
                  running.live.of(SegmentId(segment)).records);
        ASSERT_EQ(other->live.of(SegmentId(segment)).bytes,
                  running.live.of(SegmentId(segment)).bytes);
      }
    }
  }
}

// Every record that the state rests on is stated again, and then nothing rests on the old ones.
// Proves: R9
TEST(JournalMetaMachineTest, WhatIsStatedAgainTakesThePlaceOfWhatWas) {
  for (const uint64_t seed : Seeds(50)) {
    SCOPED_TRACE(seed);
    Records records(seed);
    Machine machine;
    for (int i = 0; i < 200; ++i) records.Next();
    for (Lsn lsn(1); lsn <= records.newest(); lsn = lsn + 1) Apply(machine, records, lsn);
    Machine again;
    Lsn next = records.newest();
    const RecordRef place{.segment = 1'000, .offset = 8, .length = 8};
    uint64_t stated = 0;
    for (Lsn lsn(1); lsn <= records.newest(); lsn = lsn + 1) {
      BatchDraft draft;
      if (!machine.meta.Restate(records.at(lsn).raw(), lsn, draft)) continue;
      ++stated;
      next = next + 1;
      machine.machines.Apply(draft.raw(0), next, place);
      again.machines.Apply(draft.raw(0), next, place);
    }
    EXPECT_GT(stated, 0u);
    EXPECT_EQ(machine.live.of(SegmentId(1'000)).records, stated);
    EXPECT_EQ(machine.live.total().records, stated);
    // The statements alone are the whole state.
    EXPECT_EQ(StateOf(again), StateOf(machine));
    machine.meta.Reset();
    EXPECT_EQ(machine.live.total().records, 0u);
    EXPECT_TRUE(StateOf(machine).empty());
  }
}

TEST(JournalMetaMachineTest, BytesThatAreNoEntriesAreRefused) {
  Records records(2);
  Machine machine;
  for (int i = 0; i < 100; ++i) records.Next();
  for (Lsn lsn(1); lsn <= records.newest(); lsn = lsn + 1) Apply(machine, records, lsn);
  std::string whole;
  uint64_t cursor = 0;
  while (machine.meta.WriteSnapshot(cursor, 1'000, whole)) {
  }
  SeededRng rng(3);
  size_t refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::string bytes = whole.substr(0, 4'000);
    for (uint64_t n = 1 + rng.Below(4); n > 0; --n) {
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Next());
    }
    bytes.resize(rng.Below(bytes.size() + 1));
    Machine other;
    refused += other.meta.LoadSnapshot(AsBytes(bytes), 1).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 250u);
  Machine other;
  EXPECT_EQ(other.meta.LoadSnapshot(AsBytes("\x09"), 1).code(), StatusCode::kDataLoss);
}

TEST(JournalMetaMachineTest, NothingIsAnsweredBeforeTheStoreIsOpen) {
  Machine machine;
  EXPECT_FAILS(machine.meta.Get("k", {}), kFailedPrecondition, kNotReady);
  EXPECT_FAILS(machine.meta.Put("k", "", {}), kFailedPrecondition, kNotReady);
}

}  // namespace
}  // namespace holdfast
