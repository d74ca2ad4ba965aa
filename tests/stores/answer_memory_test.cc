// Remembered acknowledgements: in the stores, over restarts, compaction and retirement.
#include "stores/answer_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/stores/backends.h"
#include "tests/stores/fake_stores.h"
#include "tests/support/encoded_record.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

Removal AckOf(std::string_view id, std::string_view key = "key") {
  return {
      .id = id, .reason = Reason::kAcked, .epoch = 3, .client = "billing", .idempotency_key = key};
}

class AnsweredTest : public testing::TestWithParam<Backend> {
 protected:
  static EngineOptions Options() {
    EngineOptions options;
    options.remembered_answers = 3;
    return options;
  }
  uint64_t PutAndRemove(const std::string& id, const Removal& removal) {
    EXPECT_OK(store_->deliveries().Put(DeliveryFor(id)).refused());
    const Commit removed = store_->deliveries().Remove(removal);
    EXPECT_TRUE(removed.changed());
    EXPECT_OK(removed.Wait());
    return removed.lsn();
  }
  StoreUnderTest store_{GetParam(), Options()};
};
INSTANTIATE_TEST_SUITE_P(Backends, AnsweredTest, testing::ValuesIn(kBackends), BackendName);

// Proves: A3
TEST_P(AnsweredTest, ExactlyTheSameAcknowledgementIsKnownOverEveryRestart) {
  const uint64_t removal = PutAndRemove("a", AckOf("a"));
  PutAndRemove("b", AckOf("b", ""));
  const auto expect_known = [&] {
    DeliveryStateStore& deliveries = store_->deliveries();
    const Commit answer = deliveries.Answered(AckOf("a"));
    EXPECT_OK(answer.Wait());
    EXPECT_FALSE(answer.changed());
    if (store_.is_durable()) {
      EXPECT_EQ(answer.lsn(), removal);
    }
    EXPECT_OK(deliveries.Answered(AckOf("b", "")).Wait());
    for (Removal other : {AckOf("a", "other"), AckOf("c"), AckOf("", ""), AckOf("a", "")}) {
      EXPECT_FAILS(deliveries.Answered(other).Wait(), kNotFound, kNone);
    }
    Removal other = AckOf("a");
    other.epoch = 4;
    EXPECT_FAILS(deliveries.Answered(other).Wait(), kNotFound, kNone);
    other = AckOf("a");
    other.client = "audit";
    EXPECT_FAILS(deliveries.Answered(other).Wait(), kNotFound, kNone);
    other = AckOf("a");
    other.reason = Reason::kWithdrawn;
    EXPECT_FAILS(deliveries.Answered(other).Wait(), kNotFound, kNone);
    other = AckOf("a");
    other.idempotency_key.reset();
    EXPECT_FAILS(deliveries.Answered(other).Wait(), kNotFound, kNone);
    EXPECT_EQ(store_->stats().remembered_answers, 2u);
  };
  expect_known();
  store_.Reopen();
  expect_known();
  store_.Kill();
  expect_known();
  store_.CutPower();
  expect_known();
}

TEST_P(AnsweredTest, OnlyAnAcknowledgementWithAKeyIsKept) {
  Removal withdrawn = AckOf("a");
  withdrawn.reason = Reason::kWithdrawn;
  PutAndRemove("a", withdrawn);
  Removal without = AckOf("b");
  without.idempotency_key.reset();
  PutAndRemove("b", without);
  // A removal of what is not in flight is no acknowledgement.
  EXPECT_FALSE(store_->deliveries().Remove(AckOf("b")).changed());
  EXPECT_FAILS(store_->deliveries().Answered(AckOf("a")).Wait(), kNotFound, kNone);
  EXPECT_FAILS(store_->deliveries().Answered(AckOf("b")).Wait(), kNotFound, kNone);
  EXPECT_EQ(store_->stats().remembered_answers, 0u);
}

// Proves: A3
TEST_P(AnsweredTest, TheOldestIsForgottenForGood) {
  for (const char* id : {"1", "2", "3", "4", "5"}) PutAndRemove(id, AckOf(id));
  for (int restarts = 0; restarts < 2; ++restarts) {
    for (const char* id : {"1", "2"}) {
      EXPECT_FAILS(store_->deliveries().Answered(AckOf(id)).Wait(), kNotFound, kNone);
    }
    for (const char* id : {"3", "4", "5"}) {
      EXPECT_OK(store_->deliveries().Answered(AckOf(id)).Wait());
    }
    store_.CutPower();
  }
}

// --- The journal alone

// Proves: A8
TEST(AnswerMemoryTest, NoAnswerLeavesBeforeWhatItRestsOnIsDurable) {
  FakeStores fake;
  Accept(fake.deliveries().Put(DeliveryFor("a")));
  Accept(fake.deliveries().Remove(AckOf("a")));
  const Commit known = fake.deliveries().Answered(AckOf("a"));
  const Commit unknown = fake.deliveries().Answered(AckOf("b"));
  EXPECT_OK(known.refused());
  EXPECT_FALSE(known.confirmed());
  EXPECT_EQ(known.lsn(), 2u);
  EXPECT_EQ(unknown.refused().code(), StatusCode::kNotFound);
  EXPECT_EQ(unknown.lsn(), 2u);
  fake.sink.Poison();
  EXPECT_FAILS(known.Wait(), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(unknown.Wait(), kUnavailable, kUnknownOutcome);
  fake.sink.Confirm(Lsn(2));
  EXPECT_TRUE(known.confirmed());
  EXPECT_FAILS(unknown.Wait(), kNotFound, kNone);
}

// States everything live in `segment` again, as a compaction does, and says in how many records.
size_t Compact(FakeStores& fake, uint32_t segment) {
  MutexLock lock(fake.sequencer);
  BatchDraft draft;
  std::vector<std::pair<Lsn, std::string>> records;
  for (Lsn lsn(1); lsn <= fake.sink.last(); lsn = lsn + 1) {
    if (fake.sink.segment_of(lsn) == segment) records.emplace_back(lsn, fake.sink.record(lsn));
  }
  for (const auto& [lsn, bytes] : records) {
    ByteView rest = AsBytes(bytes);
    const RawRecord record = TakeRecord(rest).value();
    fake.stores.machines()
        .For(static_cast<RecordType>(record.header.type))
        ->Restate(record, lsn, draft);
  }
  if (draft.empty()) return 0;
  CHECK_OK(fake.sink.Reserve(draft.batch_bytes(), Claim::kReclaim));
  fake.sink.Append(draft);
  return draft.count();
}
// What a scan of the segments from `oldest` on brings.
uint64_t KnownAfterScan(FakeStores& fake, uint32_t oldest, int answers,
                        const EngineOptions& options) {
  FakeStores scanned(options);
  fake.sink.Replay(scanned.stores.machines(), oldest);
  uint64_t known = 0;
  for (int i = 0; i < answers; ++i) {
    known += scanned.deliveries().Answered(AckOf(std::to_string(i))).refused().ok() ? 1 : 0;
  }
  for (uint32_t segment = 1; segment < 10; ++segment) {
    EXPECT_EQ(scanned.stores.live().of(SegmentId(segment)).records,
              segment < oldest ? 0u : fake.stores.live().of(SegmentId(segment)).records);
  }
  return known;
}

// A segment may go once what it held is stated again; then it needs nothing of it any more.
// Proves: A3, R9
TEST(AnswerMemoryTest, TheRemainingSegmentsHoldEveryAnswerThatIsRemembered) {
  EngineOptions options;
  options.remembered_answers = 300;
  FakeStores fake(options);
  const auto acknowledge = [&](int first, int end) {
    for (int i = first; i < end; ++i) {
      const std::string id = std::to_string(i);
      Accept(fake.deliveries().Put(DeliveryFor(id)));
      Accept(fake.deliveries().Remove(AckOf(id)));
    }
  };
  acknowledge(0, 400);
  EXPECT_EQ(fake.stores.live().of(SegmentId(1)).records, 300u);
  fake.sink.Rotate();
  acknowledge(400, 410);
  EXPECT_EQ(fake.stores.live().of(SegmentId(1)).records, 290u);
  EXPECT_EQ(fake.stores.live().of(SegmentId(1)).bytes, 290 * AnswerMemory::kLiveBytes);

  EXPECT_EQ(Compact(fake, 1), (290 + AnswerMemory::kInRecordMax - 1) / AnswerMemory::kInRecordMax);
  EXPECT_EQ(fake.stores.live().of(SegmentId(1)).records, 0u);
  EXPECT_EQ(fake.stores.live().of(SegmentId(2)).records, 300u);
  EXPECT_EQ(Compact(fake, 1), 0u) << "nothing rests on it any more";
  EXPECT_EQ(KnownAfterScan(fake, 1, 410, options), 300u);
  EXPECT_EQ(KnownAfterScan(fake, 2, 410, options), 300u);

  // The statements themselves are stated again, together with removals, without what was forgotten.
  fake.sink.Rotate();
  acknowledge(410, 510);
  // Ten removals, and behind them what is left of three statements.
  EXPECT_EQ(Compact(fake, 2), 4u);
  EXPECT_EQ(fake.stores.live().of(SegmentId(2)).records, 0u);
  EXPECT_EQ(KnownAfterScan(fake, 1, 510, options), 300u);
  EXPECT_EQ(KnownAfterScan(fake, 3, 510, options), 300u);
}

// Whatever a draft holds already.
TEST(AnswerMemoryTest, StatementsFillTheLastRecordOnlyWhereTheyFollowInOrder) {
  Mutex mu;
  MutexLock lock(mu);
  LiveBytes live;
  AnswerMemory memory(mu, live, 100);
  const auto remove = [&](const std::string& id, uint64_t lsn) {
    memory.ApplyRemoval({.id = id, .reason = 1, .idempotency_key = id}, Lsn(lsn), {.segment = 1});
  };
  for (uint64_t lsn = 1; lsn <= 9; ++lsn) remove(std::to_string(lsn), lsn);
  const auto counts = [](const BatchDraft& draft) {
    std::vector<uint64_t> counts;
    for (size_t i = 0; i < draft.count(); ++i) {
      const RawRecord raw = draft.raw(i);
      const bool answers = raw.header.type == static_cast<uint8_t>(RecordType::kAnswers);
      counts.push_back(answers ? FieldsOf<Answers>(raw).answers.count : 0);
    }
    return counts;
  };
  BatchDraft draft;
  EXPECT_TRUE(memory.RestateRemoval(Lsn(3), draft));
  EXPECT_TRUE(memory.RestateRemoval(Lsn(4), draft));
  EXPECT_EQ(counts(draft), (std::vector<uint64_t>{2}));
  EXPECT_TRUE(memory.RestateRemoval(Lsn(2), draft));
  EXPECT_EQ(counts(draft), (std::vector<uint64_t>{2, 1}));
  draft.Add(DeadLetterPurge{.id = "x"});
  EXPECT_TRUE(memory.RestateRemoval(Lsn(9), draft));
  EXPECT_EQ(counts(draft), (std::vector<uint64_t>{2, 1, 0, 1}));
  EXPECT_FALSE(memory.RestateRemoval(Lsn(10), draft));
  // A statement of a statement: what rests on a newer one is left out.
  const EncodedRecord first(FieldsOf<Answers>(draft.raw(0)));
  memory.Apply(first.raw(), Lsn(20), {.segment = 2});
  memory.Apply(EncodedRecord(FieldsOf<Answers>(draft.raw(1))).raw(), Lsn(21), {.segment = 2});
  memory.Apply(EncodedRecord(FieldsOf<Answers>(draft.raw(0))).raw(), Lsn(19), {.segment = 1});
  EXPECT_EQ(live.of(SegmentId(2)).records, 3u);
  EXPECT_EQ(live.of(SegmentId(1)).records, 6u);
  BatchDraft again;
  EXPECT_FALSE(memory.Restate(first.raw(), Lsn(19), again));
  EXPECT_TRUE(memory.Restate(first.raw(), Lsn(20), again));
  EXPECT_EQ(counts(again), (std::vector<uint64_t>{2}));
}

// --- The engine with its files

// Remembered ones stand in segments that go: in many small ones, where most of the journal is
// theirs. Proves: A3, G7
TEST(AnswerMemoryEngineTest, CompactionRetirementAndCheckpointsKeepThem) {
  constexpr int kAnswers = 200;
  const TempDir directory;
  EngineOptions options;
  options.directory = directory.Sub("store");
  options.io = BackendUnderTest();
  options.segment_bytes = uint64_t{64} << 10;
  options.commit_interval = absl::Milliseconds(1);
  options.compact_bytes_per_second = 0;
  options.remembered_answers = kAnswers;
  int count = 0;
  const auto work = [&](Engine& engine, int more) {
    Commit last;
    for (const int end = count + more; count < end; ++count) {
      last = engine.Transact([&](Transaction& change) {
        change.PutDelivery(DeliveryFor(std::to_string(count), std::string(700, 'e')));
        if (count > 0) change.RemoveDelivery(AckOf(std::to_string(count - 1)));
      });
    }
    ASSERT_OK(last.Wait());
  };
  const auto expect_newest = [&](Engine& engine) {
    for (int i = 0; i < count - 1; ++i) {
      const Status answered = engine.deliveries().Answered(AckOf(std::to_string(i))).Wait();
      ASSERT_EQ(answered.ok(), i >= count - 1 - kAnswers) << i << " of " << count;
    }
    EXPECT_EQ(engine.stats().remembered_answers, static_cast<uint64_t>(kAnswers));
  };
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
    while (engine->stats().retired_segments < 60) work(*engine, 100);
    expect_newest(*engine);
    // Until their removals are long gone, and only statements are left of them.
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(engine->Compact());
      work(*engine, 2);
    }
    expect_newest(*engine);
    ASSERT_OK(engine->Checkpoint());
    ASSERT_OK(engine->Checkpoint());
  }
  const std::string copy = directory.Sub("copy");
  std::filesystem::copy(options.directory, copy, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(copy + "/checkpoint");
  options.space_ratio = 100;
  EngineStats from_checkpoint, from_scan;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
    EXPECT_GT(engine->recovery().checkpoint_lsn, 0u);
    expect_newest(*engine);
    from_checkpoint = engine->stats();
  }
  options.directory = copy;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
    EXPECT_EQ(engine->recovery().checkpoint_lsn, 0u);
    expect_newest(*engine);
    from_scan = engine->stats();
  }
  EXPECT_EQ(from_scan.live_records, from_checkpoint.live_records);
  EXPECT_EQ(from_scan.live_bytes, from_checkpoint.live_bytes);
  // A smaller window holds the newest of them.
  options.remembered_answers = 10;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
  EXPECT_EQ(engine->stats().remembered_answers, 10u);
  EXPECT_OK(engine->deliveries().Answered(AckOf(std::to_string(count - 2))).Wait());
  EXPECT_FAILS(engine->deliveries().Answered(AckOf(std::to_string(count - 20))).Wait(), kNotFound,
               kNone);
}

}  // namespace
}  // namespace holdfast
