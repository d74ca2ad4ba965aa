#include "stores/local_stores.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "tests/stores/fake_stores.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(LocalStoresTest, EveryRecordOfTheCatalogueHasItsStore) {
  FakeStores fake;
  const auto routed = [&]<typename... Records>(RecordList<Records...>*) {
    return (... && (fake.stores.machines().For(Records::kType) != nullptr));
  };
  EXPECT_TRUE(routed(static_cast<Catalogue*>(nullptr)));
}

// A fresh set of stores that replays the records shows what the running one shows.
// Proves: G2
TEST(LocalStoresTest, RunningAndReplayingLeadToTheSameState) {
  FakeStores fake;
  Accept(fake.stores.Transact([](Transaction& t) {
    t.PutDelivery(DeliveryFor("a"));
    t.PutDelivery(DeliveryFor("b"));
    t.SourceSeen({"orders", 1, 2}, 4711);
  }));
  Accept(fake.stores.Transact([](Transaction& t) {
    t.RemoveDelivery("a", Reason::kAcked);
    t.WriteOffset({"orders", "billing", 2}, 4712);
    t.RecordDeadLetter(DeadLetterFor("d"));
  }));
  Accept(fake.deliveries().Update({.id = "b", .epoch = 4, .attempt = 2, .due = absl::Seconds(3)}));

  FakeStores recovered;
  fake.sink.Replay(recovered.stores.machines());
  RecoveryReport report;
  recovered.stores.AddTo(report);
  EXPECT_EQ(report.deliveries, 1u);
  EXPECT_EQ(report.offsets, 1u);
  EXPECT_EQ(report.dead_letters, 1u);
  EXPECT_EQ(recovered.offsets().Read({"orders", "billing", 2})->position, OffsetPosition(4712));
  EXPECT_EQ(recovered.offsets().ReadSource({"orders", 1, 2})->seen, 4711u);
  EXPECT_FAILS(recovered.deliveries().Get("a"), kNotFound, kNone);
}

// --- What of each segment is live ---

constexpr size_t kAnswersMax = 30;

// By the records alone: the newest of each key that was not ended since.
class Recount {
 public:
  explicit Recount(const FakeSink& sink) {
    sink.ForEach([this](const RawRecord& record, uint32_t segment) { Take(record, segment); });
  }
  LiveBytes::Share of(uint32_t segment) const {
    LiveBytes::Share share;
    const auto count = [&](const Place& place) {
      if (place.segment != segment) return;
      ++share.records;
      share.bytes += place.bytes;
    };
    for (const auto& [key, place] : places_) count(place);
    const size_t forgotten = answers_.size() - std::min(answers_.size(), kAnswersMax);
    for (size_t i = forgotten; i < answers_.size(); ++i) count(answers_[i]);
    return share;
  }

 private:
  struct Place {
    uint32_t segment = 0;
    uint64_t bytes = 0;
  };
  // The index keeps eight significant bits.
  static uint64_t Rounded(uint64_t bytes) {
    const auto width = static_cast<int>(std::bit_width(bytes));
    return width <= 8 ? bytes : bytes >> (width - 8) << (width - 8);
  }
  void Take(const RawRecord& record, uint32_t segment) {
    const uint64_t bytes = kRecordHeaderBytes + record.fields.size();
    const auto position = [](std::string_view kind, auto topic, auto client, auto partition) {
      return fmt::format("{} {} {} {}", kind, topic, client, partition);
    };
    switch (static_cast<RecordType>(record.header.type)) {
      case RecordType::kDeliveryPut:
        places_[fmt::format("delivery {}", FieldsOf<DeliveryPut>(record).id)] = {segment,
                                                                                 Rounded(bytes)};
        return;
      case RecordType::kDeliveryRemove: {
        const auto r = FieldsOf<DeliveryRemove>(record);
        places_.erase(fmt::format("delivery {}", r.id));
        if (r.reason == 1 && r.idempotency_key.has_value()) {
          answers_.push_back({segment, AnswerMemory::kLiveBytes});
        }
        return;
      }
      case RecordType::kDeadLetter:
        places_[fmt::format("dead {}", FieldsOf<DeadLetterRecord>(record).id)] = {segment,
                                                                                  Rounded(bytes)};
        return;
      case RecordType::kDeadLetterPurge:
        places_.erase(fmt::format("dead {}", FieldsOf<DeadLetterPurge>(record).id));
        return;
      case RecordType::kOffsetAdvance: {
        const auto r = FieldsOf<OffsetAdvance>(record);
        places_[position("offset", r.topic, r.client, r.partition)] = {segment, bytes};
        return;
      }
      case RecordType::kOffsetForget: {
        const auto r = FieldsOf<OffsetForget>(record);
        places_.erase(position("offset", r.topic, r.client, r.partition));
        places_.erase(position("start", r.topic, r.client, r.partition));
        return;
      }
      case RecordType::kOffsetStart: {
        const auto r = FieldsOf<OffsetStart>(record);
        places_[position("start", r.topic, r.client, r.partition)] = {segment, bytes};
        return;
      }
      case RecordType::kSourceSeen: {
        const auto r = FieldsOf<SourceSeen>(record);
        places_[position("seen", r.topic, r.incarnation, r.partition)] = {segment, bytes};
        return;
      }
      case RecordType::kSourceCursor: {
        const auto r = FieldsOf<SourceCursor>(record);
        places_[position("cursor", r.topic, r.incarnation, r.partition)] = {segment, bytes};
        return;
      }
      default:
        return;  // A reschedule and a redrive leave the payload where it is.
    }
  }

  std::map<std::string, Place> places_;
  std::vector<Place> answers_;  // of all acknowledgements with a key, oldest first
};

void ExpectSame(LocalStores& stores, const FakeSink& sink, uint32_t segments) {
  const Recount recount(sink);
  LiveBytes::Share total;
  for (uint32_t segment = 1; segment <= segments; ++segment) {
    SCOPED_TRACE(segment);
    const LiveBytes::Share kept = stores.live().of(SegmentId(segment));
    ASSERT_EQ(kept.records, recount.of(segment).records);
    ASSERT_EQ(kept.bytes, recount.of(segment).bytes);
    total.records += kept.records;
    total.bytes += kept.bytes;
  }
  ASSERT_EQ(stores.live().total().records, total.records);
  ASSERT_EQ(stores.live().total().bytes, total.bytes);
}

void DoSomething(FakeStores& fake, SeededRng& rng) {
  const std::string id = "d" + std::to_string(rng.Below(40));
  const OffsetKey offset{"orders", "c" + std::to_string(rng.Below(5)), rng.Below(3)};
  const SourceKey source{"orders", rng.Below(3), rng.Below(3)};
  switch (rng.Below(10)) {
    case 0:
    case 1:
      Accept(fake.deliveries().Put(DeliveryFor(id, std::string(rng.Below(3'000), 'e'))));
      return;
    case 2:  // Without such a delivery it is refused, and nothing is to change.
      (void)
          fake.deliveries()  // either is fine
              .Update({.id = id, .epoch = 4, .attempt = 2, .due = {}})
              .refused();
      return;
    case 3:
      Accept(fake.deliveries().Remove(
          {.id = id, .idempotency_key = rng.OneIn(4) ? std::optional<std::string_view>() : id}));
      return;
    case 4:
      Accept(fake.dead_letters().Record(DeadLetterFor(id, std::string(rng.Below(500), 'e'))));
      return;
    case 5:
      Accept(fake.dead_letters().Purge(id));
      return;
    case 6:
      Accept(fake.stores.Transact([&](Transaction& t) {
        t.WriteOffset(offset, OffsetPosition(rng.Below(1'000)));
        t.WriteStart(offset, OffsetPosition(rng.Below(1'000), rng.Below(3)));
      }));
      return;
    case 7:
      Accept(fake.offsets().Forget(offset));
      return;
    default:
      Accept(fake.stores.Transact([&](Transaction& t) {
        t.SourceSeen(source, rng.Below(1'000));
        t.SourceCursor(source, rng.Below(1'000));
        t.PutDelivery(DeliveryFor(id));
      }));
  }
}

// Proves: R9
TEST(LocalStoresTest, TheLiveBytesAreThoseOfARecountOfTheRecords) {
  for (const uint64_t seed : Seeds(8)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    EngineOptions options;
    options.remembered_answers = kAnswersMax;
    FakeStores fake(options);
    uint32_t segments = 1;
    for (int i = 0; i < 1'000; ++i) {
      DoSomething(fake, rng);
      if (rng.OneIn(50)) {
        fake.sink.Rotate();
        ++segments;
      }
      if (rng.OneIn(20)) ExpectSame(fake.stores, fake.sink, segments);
      if (testing::Test::HasFatalFailure()) return;
    }
    FakeStores recovered(options);
    fake.sink.Replay(recovered.stores.machines());
    ExpectSame(recovered.stores, fake.sink, segments);
    // Every record once more: what is applied already changes nothing.
    fake.sink.Replay(recovered.stores.machines());
    ExpectSame(recovered.stores, fake.sink, segments);
  }
}

}  // namespace
}  // namespace holdfast
