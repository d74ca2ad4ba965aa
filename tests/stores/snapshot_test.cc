// Checkpoints of the stores: whatever moves while they are captured, loading and replaying gives
// the state that replaying everything gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "holdfast/options.h"
#include "journal/base/seeded_rng.h"
#include "stores/local_stores.h"
#include "tests/support/encoded_record.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

struct Written {
  EncodedRecord record;
  RecordRef ref;
};

struct Stores {
  explicit Stores(uint64_t seed) : rng(seed), stores(sequencer, rng, Options()) {}
  static EngineOptions Options() {
    EngineOptions options;
    options.remembered_answers = 20;
    return options;
  }
  void Apply(const Written& written, Lsn lsn) {
    stores.machines().Apply(written.record.raw(), lsn, written.ref);
  }
  Mutex sequencer;
  SeededRng rng;
  LocalStores stores;
};

// Section to its entries, sorted.
using State = std::map<uint32_t, std::vector<std::string>>;
State StateOf(const Stores& stores) {
  State state;
  stores.stores.machines().ForEach([&](uint32_t section, const StateMachine& machine) {
    std::vector<std::string>& entries = state[section];
    uint64_t cursor = 0;
    for (bool more = true; more;) {
      std::string entry;
      more = machine.WriteSnapshot(cursor, 1, entry);
      if (!entry.empty()) entries.push_back(entry);
    }
    std::sort(entries.begin(), entries.end());
    EXPECT_EQ(entries.size(), machine.SnapshotEntries());
  });
  return state;
}

// What happens to a few keys, at random.
class Events {
 public:
  explicit Events(uint64_t seed) : rng_(seed) {}

  Lsn newest() const { return Lsn(written_.size()); }
  const Written& at(Lsn lsn) const { return written_[lsn.value() - 1]; }
  Lsn Next() {
    const std::string id = "key-" + std::to_string(rng_.Below(30));
    written_.push_back({Record(id),
                        {.segment = static_cast<uint32_t>(1 + written_.size() / 40),
                         .offset = static_cast<uint32_t>(8 * written_.size()),
                         .length = static_cast<uint32_t>(100 + rng_.Below(1000))}});
    return newest();
  }

 private:
  EncodedRecord Record(const std::string& id) {
    const uint64_t n = rng_.Below(5);
    switch (rng_.Below(14)) {
      case 0:
      case 1:
      case 2:
        return EncodedRecord(DeliveryPut{.id = id,
                                         .epoch = n,
                                         .topic = "orders",
                                         .client = "c",
                                         .attempt = n,
                                         .due_ns = static_cast<int64_t>(rng_.Next() >> 1)});
      case 3:
      case 4:
        return EncodedRecord(
            DeliveryReschedule{.id = id, .epoch = n, .attempt = n + 1, .due_ns = -5});
      case 5:
      case 6: {
        const bool remembered = rng_.OneIn(2);
        if (remembered) acks_.emplace_back(newest() + 1, AnswerHash(id, n, "c", "key"));
        return EncodedRecord(DeliveryRemove{
            .id = id,
            .epoch = n,
            .client = "c",
            .reason = 1,
            .idempotency_key = remembered ? std::optional<std::string_view>("key") : std::nullopt});
      }
      case 7:
        return EncodedRecord(DeadLetterRecord{.id = id, .dlq_topic = "dlq", .reason = "why"});
      case 8:
        return rng_.OneIn(2) ? EncodedRecord(DeadLetterPurge{.id = id})
                             : EncodedRecord(DeadLetterRedriven{.id = id, .replays = n});
      case 9:
        return EncodedRecord(
            OffsetAdvance{.topic = id, .client = "c", .partition = n % 2, .next = rng_.Next()});
      case 12:
        return EncodedRecord(OffsetStart{.topic = id,
                                         .client = "c",
                                         .partition = n % 2,
                                         .incarnation = rng_.Below(3),
                                         .start = rng_.Next()});
      case 13: {  // some acknowledgements are stated again
        AnswersWriter answers;
        for (const auto& [lsn, hash] : acks_) {
          if (lsn + 400 > newest() && rng_.OneIn(3)) answers.Add(lsn, hash);
        }
        return EncodedRecord(Answers{.answers = answers.stored()});
      }
      case 10:
        return EncodedRecord(OffsetForget{.topic = id, .client = "c", .partition = n % 2});
      default:
        return rng_.OneIn(2) ? EncodedRecord(SourceSeen{.topic = id, .through = rng_.Next()})
                             : EncodedRecord(SourceCursor{.topic = id, .cursor = rng_.Next()});
    }
  }

  SeededRng rng_;
  std::vector<Written> written_;
  std::vector<std::pair<Lsn, uint64_t>> acks_;
};

using Chunks = std::vector<std::pair<uint32_t, std::string>>;

// A capture in small chunks, with something happening between any two.
Chunks Capture(Stores& stores, Events& events, SeededRng& rng) {
  Chunks chunks;
  stores.stores.machines().ForEach([&](uint32_t section, const StateMachine& machine) {
    uint64_t cursor = 0;
    for (bool more = true; more;) {
      std::string entries;
      more = machine.WriteSnapshot(cursor, 1 + rng.Below(300), entries);
      chunks.emplace_back(section, entries);
      for (uint64_t i = rng.Below(8); i > 0; --i) {
        const Lsn lsn = events.Next();
        stores.Apply(events.at(lsn), lsn);
      }
    }
  });
  return chunks;
}

Status Load(const Chunks& chunks, Stores& stores, uint64_t expected) {
  Status status;
  stores.stores.machines().ForEach([&](uint32_t section, StateMachine& machine) {
    for (const auto& [of, entries] : chunks) {
      if (of == section && status.ok()) {
        status = machine.LoadSnapshot(AsBytes(entries), expected);
      }
    }
  });
  return status;
}

// Proves: G2
TEST(SnapshotTest, LoadingAndReplayingIsReplayingEverything) {
  for (const uint64_t seed : Seeds(300)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    Events events(seed);
    Stores running(seed);
    for (uint64_t i = rng.Below(400); i > 0; --i) {
      const Lsn lsn = events.Next();
      running.Apply(events.at(lsn), lsn);
    }
    const Lsn from = events.newest();
    const Chunks chunks = Capture(running, events, rng);

    Stores loaded(seed + 1);
    ASSERT_OK(Load(chunks, loaded, rng.Below(100)));
    for (Lsn lsn = from + 1; lsn <= events.newest(); lsn = lsn + 1) {
      loaded.Apply(events.at(lsn), lsn);
    }
    Stores scanned(seed + 2);
    for (Lsn lsn(1); lsn <= events.newest(); lsn = lsn + 1) scanned.Apply(events.at(lsn), lsn);

    const State state = StateOf(running);
    ASSERT_EQ(StateOf(loaded), state);
    ASSERT_EQ(StateOf(scanned), state);
    for (uint64_t segment = 1; segment < 40; ++segment) {
      const LiveBytes::Share want = running.stores.live().of(SegmentId(segment));
      const LiveBytes::Share have = loaded.stores.live().of(SegmentId(segment));
      ASSERT_EQ(have.records, want.records) << "segment " << segment;
      ASSERT_EQ(have.bytes, want.bytes) << "segment " << segment;
    }
  }
}

TEST(SnapshotTest, ResetForgetsEverythingAndCountsNothingAsLive) {
  Events events(1);
  Stores stores(1);
  for (int i = 0; i < 300; ++i) {
    const Lsn lsn = events.Next();
    stores.Apply(events.at(lsn), lsn);
  }
  const State state = StateOf(stores);
  stores.stores.machines().ForEach([](uint32_t, StateMachine& machine) { machine.Reset(); });
  for (const auto& [section, entries] : StateOf(stores)) EXPECT_TRUE(entries.empty()) << section;
  EXPECT_EQ(stores.stores.live().total().records, 0u);
  EXPECT_EQ(stores.stores.live().total().bytes, 0u);
  for (Lsn lsn(1); lsn <= events.newest(); lsn = lsn + 1) stores.Apply(events.at(lsn), lsn);
  EXPECT_EQ(StateOf(stores), state);
}

// A check that passes over wrong bytes must not be all that stands before a machine.
TEST(SnapshotTest, BytesThatAreNoEntriesAreRefused) {
  Events events(2);
  Stores stores(2);
  SeededRng rng(2);
  for (int i = 0; i < 300; ++i) {
    const Lsn lsn = events.Next();
    stores.Apply(events.at(lsn), lsn);
  }
  size_t refused = 0;
  for (const auto& [section, entries] : StateOf(stores)) {
    for (const std::string& entry : entries) {
      for (size_t cut = 1; cut < entry.size(); ++cut) {
        Stores other(3);
        const Status status = Load({{section, entry.substr(0, cut)}}, other, 1);
        ASSERT_FAILS(status, kDataLoss, kDamage);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 500u);
}

}  // namespace
}  // namespace holdfast
