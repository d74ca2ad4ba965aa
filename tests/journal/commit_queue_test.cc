#include "journal/commit_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

using Kind = CommitQueue::Step::Kind;

constexpr SegmentId kFirst{1};
constexpr SegmentId kSecond{2};
constexpr CommitDemand kNobody{};
constexpr CommitDemand kOneBlocked{.blocked = 1};
constexpr CommitDemand kManyBlocked{.blocked = 10};
constexpr absl::Duration kStart = absl::Seconds(100);

CommitPositions AtStart() {
  return {.appended = Lsn(10),
          .written = Lsn(10),
          .synced = Lsn(10),
          .end_segment = kFirst,
          .end_offset = 8192};
}

// The queue with a caller that closes groups at the places they would have.
class Queue {
 public:
  explicit Queue(const CommitQueueOptions& options) : queue(options, AtStart()) {}

  Lsn Append(uint64_t bytes = 4096) {
    open_bytes_ += bytes;
    queue.OnAppend(queue.positions().appended + 1, open_bytes_);
    return queue.positions().appended;
  }
  void Close() {
    end_ += open_bytes_;
    open_bytes_ = 0;
    queue.OnClose(segment_, end_);
  }
  void Rotate() {
    if (open_bytes_ > 0) Close();
    segment_ = segment_ + 1;
    end_ = 8192;
    queue.OnLink(segment_, end_, 4096);
  }
  // The next step that is submitted, groups closed on the way.
  CommitQueue::Step Next(const CommitDemand& demand = kNobody) {
    for (;;) {
      const CommitQueue::Step step = queue.Next(now, demand);
      if (step.kind != Kind::kClose) return step;
      Close();
    }
  }
  // Submits the next step, which must be of that kind. Returns its id.
  uint64_t Submit(Kind kind, const CommitDemand& demand = kNobody) {
    const CommitQueue::Step step = Next(demand);
    EXPECT_EQ(step.kind, kind);
    return queue.OnSubmitted(step);
  }

  CommitQueue queue;
  absl::Duration now = kStart;

 private:
  uint64_t open_bytes_ = 0;
  SegmentId segment_ = kFirst;
  uint64_t end_ = 8192;
};

CommitQueueOptions WriteThrough() { return {.rejoin_wait = absl::Microseconds(40)}; }
CommitQueueOptions Interval() { return {.commit_interval = absl::Milliseconds(100)}; }
CommitQueueOptions Written() { return {.durability = Durability::kWritten}; }

TEST(CommitQueueTest, WriteThroughSubmitsTheOpenGroupDurablyAtOnce) {
  Queue q(WriteThrough());
  EXPECT_EQ(q.Next().kind, Kind::kNone);
  const Lsn lsn = q.Append();
  EXPECT_TRUE(q.queue.Ripe(kNobody));
  const CommitQueue::Step step = q.Next();
  EXPECT_EQ(step.kind, Kind::kWrite);
  EXPECT_TRUE(step.durable);
  const CommitQueue::Done done = q.queue.OnCompleted(q.queue.OnSubmitted(step));
  EXPECT_EQ(done.satisfied_from, 1u);
  EXPECT_EQ(done.satisfied_to, 2u);
  EXPECT_EQ(q.queue.reached(), lsn);
  EXPECT_TRUE(q.queue.all_synced());
}

// A durable write covers its own range only, so nothing behind a gap is confirmed.
// Proves: G1
TEST(CommitQueueTest, PositionsMoveOverGapFreePrefixesOnly) {
  Queue q(WriteThrough());
  const Lsn first = q.Append();
  const uint64_t first_id = q.Submit(Kind::kWrite, kOneBlocked);
  const Lsn second = q.Append();
  const uint64_t second_id = q.Submit(Kind::kWrite, kOneBlocked);
  const CommitQueue::Done early = q.queue.OnCompleted(second_id);
  EXPECT_EQ(early.satisfied_from, early.satisfied_to);
  EXPECT_LT(q.queue.positions().written, first);
  const CommitQueue::Done both = q.queue.OnCompleted(first_id);
  EXPECT_EQ(both.satisfied_to - both.satisfied_from, 2u);
  EXPECT_EQ(q.queue.reached(), second);
}

TEST(CommitQueueTest, ManyCallersMakeOneBiggerGroupAndFewMakeTwo) {
  Queue q(WriteThrough());
  q.Append();
  q.Submit(Kind::kWrite, kManyBlocked);
  q.Append();
  EXPECT_EQ(q.Next(kManyBlocked).kind, Kind::kNone);
  EXPECT_EQ(q.Next(kOneBlocked).kind, Kind::kWrite);
}

TEST(CommitQueueTest, ADiskThatWritesOneAfterTheOtherGetsOneGroupAtATime) {
  CommitQueueOptions options = WriteThrough();
  options.writes_overlap = false;
  Queue q(options);
  q.Append();
  q.Submit(Kind::kWrite, kOneBlocked);
  q.Append();
  EXPECT_EQ(q.Next(kOneBlocked).kind, Kind::kNone);
}

TEST(CommitQueueTest, AGroupWaitsForReleasedCallersButNotForLong) {
  Queue q(WriteThrough());
  q.Append();
  q.queue.OnCompleted(q.Submit(Kind::kWrite));
  q.Append();
  q.queue.OnReleased(3, q.now + absl::Microseconds(40));
  EXPECT_FALSE(q.queue.Ripe(kManyBlocked));
  EXPECT_EQ(q.Next(kManyBlocked).kind, Kind::kHold);
  EXPECT_EQ(q.Next(kManyBlocked).until, q.now + absl::Microseconds(40));
  q.now += absl::Microseconds(40);
  EXPECT_EQ(q.Next(kManyBlocked).kind, Kind::kWrite);
}

TEST(CommitQueueTest, TheWaitIsRenewedWhileCallersComeBackButNotForEver) {
  Queue q(WriteThrough());
  q.Append();
  q.queue.OnCompleted(q.Submit(Kind::kWrite));
  q.queue.OnReleased(100, q.now + absl::Microseconds(40));
  int waits = 0;
  for (; q.queue.open_group() == 2; ++waits) {
    ASSERT_LT(waits, 100);
    q.Append();
    if (q.Next(kManyBlocked).kind == Kind::kHold) q.now += absl::Microseconds(40);
  }
  EXPECT_GT(waits, 2);
  EXPECT_LT(waits, 10);
}

TEST(CommitQueueTest, AGroupClosesWhenAllReleasedCallersAreBack) {
  Queue q(WriteThrough());
  q.Append();
  q.queue.OnCompleted(q.Submit(Kind::kWrite));
  q.queue.OnReleased(2, q.now + absl::Microseconds(40));
  q.Append();
  q.Append();
  EXPECT_TRUE(q.queue.Ripe(kManyBlocked));
  EXPECT_EQ(q.Next(kManyBlocked).kind, Kind::kWrite);
}

TEST(CommitQueueTest, AnIntervalConfirmsEverythingByOneFlush) {
  Queue q(Interval());
  const Lsn lsn = q.Append();
  EXPECT_EQ(q.Next().kind, Kind::kNone);
  EXPECT_EQ(q.queue.DueAt(), q.now + absl::Milliseconds(100));
  q.now += absl::Milliseconds(100);
  const CommitQueue::Step write = q.Next();
  EXPECT_EQ(write.kind, Kind::kWrite);
  EXPECT_FALSE(write.durable);
  const uint64_t id = q.queue.OnSubmitted(write);
  EXPECT_EQ(q.Next().kind, Kind::kNone);  // a flush covers completed writes only
  q.queue.OnCompleted(id);
  EXPECT_EQ(q.queue.positions().written, lsn);
  EXPECT_LT(q.queue.reached(), lsn);
  q.queue.OnCompleted(q.Submit(Kind::kFlush));
  EXPECT_EQ(q.queue.reached(), lsn);
  EXPECT_EQ(q.queue.DueAt(), absl::InfiniteDuration());
}

TEST(CommitQueueTest, WithAnIntervalAFullGroupGoesOutAlone) {
  Queue q(Interval());
  q.Append(uint64_t{300} << 10);
  EXPECT_TRUE(q.queue.Ripe(kNobody));
  q.queue.OnCompleted(q.Submit(Kind::kWrite));
  EXPECT_EQ(q.Next().kind, Kind::kNone);
}

TEST(CommitQueueTest, TooMuchUnsyncedStartsAFlushBeforeTheInterval) {
  CommitQueueOptions options = Interval();
  options.unsynced_bytes_flush = uint64_t{1} << 20;
  Queue q(options);
  for (int i = 0; i < 3; ++i) {
    q.Append(uint64_t{300} << 10);
    q.queue.OnCompleted(q.Submit(Kind::kWrite));
  }
  const Lsn written = q.queue.positions().written;
  q.Append(uint64_t{200} << 10);
  q.queue.OnCompleted(q.Submit(Kind::kFlush));
  EXPECT_EQ(q.queue.reached(), written);
}

// What was appended after a flush began is not covered by it.
// Proves: G1
TEST(CommitQueueTest, AFlushCoversOnlyWhatWasWrittenBeforeIt) {
  Queue q(Interval());
  const Lsn covered = q.Append(uint64_t{300} << 10);
  q.queue.OnCompleted(q.Submit(Kind::kWrite));
  q.queue.OnSyncWanted();
  const uint64_t flush = q.Submit(Kind::kFlush);
  q.Append(uint64_t{300} << 10);
  q.queue.OnCompleted(q.Submit(Kind::kWrite));
  q.queue.OnCompleted(flush);
  EXPECT_EQ(q.queue.reached(), covered);
  EXPECT_FALSE(q.queue.all_synced());
}

// A flush covers its own file only: S passes the end of a segment after a flush of that segment.
// Proves: G1
TEST(CommitQueueTest, EachSegmentNeedsItsOwnFlush) {
  Queue q(Interval());
  const Lsn in_first = q.Append();
  q.Rotate();
  const Lsn in_second = q.Append();
  q.queue.OnSyncWanted();
  std::vector<SegmentId> flushed;
  std::vector<Lsn> reached;
  while (!q.queue.all_synced()) {
    const CommitQueue::Step step = q.Next();
    ASSERT_NE(step.kind, Kind::kNone);
    q.queue.OnCompleted(q.queue.OnSubmitted(step));
    if (step.kind != Kind::kFlush) continue;
    flushed.push_back(step.segment);
    reached.push_back(q.queue.reached());
  }
  EXPECT_EQ(flushed, (std::vector<SegmentId>{kFirst, kSecond}));
  EXPECT_EQ(reached, (std::vector<Lsn>{in_first, in_second}));
  EXPECT_EQ(q.queue.positions().end_segment, kSecond);
}

TEST(CommitQueueTest, LevelWrittenConfirmsAtTheWriteAndSyncsEachSecond) {
  Queue q(Written());
  const Lsn lsn = q.Append();
  q.queue.OnCompleted(q.Submit(Kind::kWrite));
  EXPECT_EQ(q.queue.reached(), lsn);
  EXPECT_LT(q.queue.positions().synced, lsn);
  EXPECT_EQ(q.Next().kind, Kind::kNone);
  EXPECT_EQ(q.queue.DueAt(), q.now + absl::Seconds(1));
  q.now += absl::Seconds(1);
  q.queue.OnCompleted(q.Submit(Kind::kFlush));
  EXPECT_EQ(q.queue.positions().synced, lsn);
}

TEST(CommitQueueTest, LevelWrittenWithAnIntervalWritesOnceAnInterval) {
  CommitQueueOptions options = Written();
  options.commit_interval = absl::Milliseconds(100);
  Queue q(options);
  const Lsn lsn = q.Append();
  EXPECT_EQ(q.Next().kind, Kind::kNone);
  q.now += absl::Milliseconds(100);
  q.queue.OnCompleted(q.Submit(Kind::kWrite));
  EXPECT_EQ(q.queue.reached(), lsn);
  EXPECT_EQ(q.Next().kind, Kind::kNone);
}

TEST(CommitQueueTest, AfterAFailureNothingIsStartedAnyMore) {
  Queue q(WriteThrough());
  q.Append();
  q.queue.Stop();
  EXPECT_FALSE(q.queue.Ripe(kOneBlocked));
  EXPECT_EQ(q.Next(kOneBlocked).kind, Kind::kNone);
}

TEST(CommitQueueTest, GroupOfFindsTheGroupThatHoldsANumber) {
  Queue q(Interval());
  const Lsn first = q.Append();
  const Lsn second = q.Append();
  q.Close();
  const Lsn third = q.Append();
  EXPECT_EQ(q.queue.GroupOf(first), 1u);
  EXPECT_EQ(q.queue.GroupOf(second), 1u);
  EXPECT_EQ(q.queue.GroupOf(third), 2u);
}

// --- A disk that completes in any order, and what must hold at every moment ---

struct Flying {
  uint64_t id = 0;
  Kind kind = Kind::kWrite;
  GroupNumber group = 0;            // kWrite
  bool durable = false;             // kWrite
  std::vector<GroupNumber> covers;  // kFlush: groups of its file that had been written by then
};

class RandomDisk {
 public:
  RandomDisk(const CommitQueueOptions& options, uint64_t seed) : options_(options), rng_(seed) {}

  void Run(int events) {
    for (int i = 0; i < events; ++i) {
      Event();
      CheckInvariants();
    }
    Finish();
  }

 private:
  struct Group {
    SegmentId segment;
    Lsn last;
    bool written = false, durable = false;
  };

  CommitDemand Demand() { return {.blocked = blocked_, .callbacks = rng_.OneIn(2)}; }

  void Event() {
    switch (rng_.Below(10)) {
      case 0:
      case 1:
      case 2:
        open_bytes_ += 4096 * (1 + rng_.Below(8));
        last_ = last_ + 1 + rng_.Below(5);
        queue_.OnAppend(last_, open_bytes_);
        break;
      case 3:
        now_ += absl::Microseconds(rng_.Below(200'000));
        break;
      case 4:
        blocked_ = rng_.Below(6);
        break;
      case 5:
        if (rng_.OneIn(8)) Rotate();
        break;
      case 6:
        if (rng_.OneIn(10)) queue_.OnSyncWanted();
        break;
      case 7:
        Complete();
        break;
      default:
        Start();
    }
  }

  void Start() {
    const CommitQueue::Step step = queue_.Next(now_, Demand());
    switch (step.kind) {
      case Kind::kClose:
        return Close();
      case Kind::kWrite: {
        const uint64_t id = queue_.OnSubmitted(step);
        flying_.push_back({id, step.kind, step.group, step.durable, {}});
        break;
      }
      case Kind::kFlush: {
        Flying flush{.id = queue_.OnSubmitted(step), .kind = step.kind, .covers = {}};
        for (auto& [number, group] : groups_) {
          if (group.segment == step.segment && group.written) flush.covers.push_back(number);
        }
        flying_.push_back(flush);
        break;
      }
      default:
        return;
    }
    writes_ = std::count_if(flying_.begin(), flying_.end(),
                            [](const Flying& f) { return f.kind == Kind::kWrite; });
    EXPECT_LE(writes_, static_cast<int64_t>(options_.depth_max));
  }

  void Close() {
    groups_[queue_.open_group()] = {segment_, last_};
    queue_.OnClose(segment_, end_ += open_bytes_);
    open_bytes_ = 0;
  }

  void Rotate() {
    if (open_bytes_ > 0) Close();
    segment_ = segment_ + 1;
    groups_[queue_.open_group()] = {segment_, last_};
    queue_.OnLink(segment_, end_ = 8192, 4096);
  }

  void Complete() {
    if (flying_.empty()) return;
    const size_t pick = rng_.Below(flying_.size());
    const Flying flight = flying_[pick];
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(pick));
    if (flight.kind == Kind::kWrite) {
      groups_[flight.group].written = true;
      groups_[flight.group].durable |= flight.durable;
    }
    for (const GroupNumber number : flight.covers) groups_[number].durable = true;
    const CommitQueue::Done done = queue_.OnCompleted(flight.id);
    EXPECT_EQ(done.satisfied_from, satisfied_);
    EXPECT_GE(done.satisfied_to, satisfied_);
    satisfied_ = done.satisfied_to;
    if (rng_.OneIn(2)) queue_.OnReleased(rng_.Below(4), now_ + absl::Microseconds(40));
  }

  // What the disk knows bounds what the queue claims, and the queue claims all of it.
  void CheckInvariants() {
    Lsn written{10};
    Lsn synced{10};
    bool all_written = true;
    bool all_durable = true;
    for (const auto& [number, group] : groups_) {
      all_written = all_written && group.written;
      all_durable = all_durable && group.durable;
      if (all_written) written = group.last;
      if (all_durable) synced = group.last;
    }
    const CommitPositions& at = queue_.positions();
    EXPECT_EQ(at.appended, last_);
    EXPECT_EQ(at.written, written);
    EXPECT_LE(at.synced, synced);
    if (options_.durability == Durability::kSynced && !queue_.has_interval()) {
      EXPECT_EQ(at.synced, synced);
    }
  }

  // Left alone, everything appended is confirmed: nothing is stuck or forgotten.
  void Finish() {
    queue_.OnSyncWanted();
    for (int i = 0; i < 100'000 && !queue_.all_synced(); ++i) {
      now_ += absl::Microseconds(50);
      Start();
      if (rng_.OneIn(3)) Complete();
      CheckInvariants();
    }
    EXPECT_TRUE(queue_.all_synced());
    EXPECT_EQ(queue_.positions().synced, last_);
    EXPECT_EQ(queue_.unsynced_bytes(), 0u);
  }

  const CommitQueueOptions options_;
  SeededRng rng_;
  CommitQueue queue_{options_, AtStart()};
  absl::Duration now_ = kStart;
  std::map<GroupNumber, Group> groups_;
  std::vector<Flying> flying_;
  GroupNumber satisfied_ = 1;
  Lsn last_{10};
  SegmentId segment_ = kFirst;
  uint64_t end_ = 8192;
  uint64_t open_bytes_ = 0;
  size_t blocked_ = 0;
  int64_t writes_ = 0;
};

// Whatever the order of completions, no position claims more than the disk has, and none stays
// behind. Proves: G1 G2
TEST(CommitQueueTest, ClaimsExactlyWhatTheDiskHasInAnyOrder) {
  for (const uint64_t seed : Seeds(400)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    CommitQueueOptions options;
    options.durability = rng.OneIn(2) ? Durability::kSynced : Durability::kWritten;
    if (rng.OneIn(2)) options.commit_interval = absl::Milliseconds(100);
    if (rng.OneIn(2)) options.rejoin_wait = absl::Microseconds(40);
    options.group_bytes_full = uint64_t{64} << 10;
    options.unsynced_bytes_flush = uint64_t{256} << 10;
    options.depth_max = 1 + rng.Below(6);
    options.writes_overlap = rng.OneIn(2);
    RandomDisk(options, seed).Run(2000);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast
