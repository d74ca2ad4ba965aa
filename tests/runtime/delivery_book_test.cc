#include "runtime/delivery_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

class SilentChannel final : public Channel {
 public:
  void Push(const Delivery&) override {}
};

using Slots = std::vector<Slot>;

class DeliveryBookTest : public testing::Test {
 protected:
  // A flight with the next free id.
  Slot Add(std::optional<uint64_t> offset) { return AddOn(track_, offset); }
  Slot AddOn(uint32_t track, std::optional<uint64_t> offset) {
    return book_.Add("id-" + std::to_string(++ids_), track, offset);
  }
  uint32_t Open(const std::shared_ptr<Channel>& channel) { return book_.OpenFor(client_, channel); }

  DeliveryBook book_;
  uint32_t source_ = book_.SourceOf({"topic", 1, 0});
  uint32_t client_ = book_.ClientOf("client");
  uint32_t track_ = book_.AddTrack(source_, client_, 10);
  std::shared_ptr<Channel> one_ = std::make_shared<SilentChannel>();
  std::shared_ptr<Channel> two_ = std::make_shared<SilentChannel>();
  uint64_t ids_ = 0;
};

TEST_F(DeliveryBookTest, NamesAreKnownByAllTheirParts) {
  EXPECT_EQ(book_.SourceOf({"topic", 1, 0}), source_);
  std::set<uint32_t> sources{source_};
  for (const SourceKey& key : {SourceKey{"topic", 2, 0}, SourceKey{"topic", 1, 1},
                               SourceKey{"", 1, 0}, SourceKey{std::string(1, '\0'), 1, 0}}) {
    EXPECT_TRUE(sources.insert(book_.SourceOf(key)).second);
    EXPECT_EQ(book_.source(book_.SourceOf(key)).key, key);
  }
  EXPECT_EQ(book_.sources(), 5u);
  EXPECT_EQ(book_.ClientOf("client"), client_);
  EXPECT_EQ(book_.FindClient("client"), client_);
  EXPECT_EQ(book_.FindClient(""), kNone);
  EXPECT_EQ(book_.FindClient("other"), kNone);
  const uint32_t other = book_.ClientOf("other");
  EXPECT_NE(other, client_);
  EXPECT_EQ(book_.client(other).name, "other");
  EXPECT_EQ(book_.FindTrack(source_, client_), track_);
  EXPECT_EQ(book_.FindTrack(source_, other), kNone);
  EXPECT_EQ(book_.track(track_).start, 10u);
}

TEST_F(DeliveryBookTest, OfASourceThatWasNotSeenNothingIsKnown) {
  EXPECT_EQ(book_.NextOf(track_), std::nullopt);
  EXPECT_EQ(book_.CursorOf(source_), 0u);
  EXPECT_FALSE(book_.Unfinished(source_, 0));
  book_.source(source_).seen = 0;
  EXPECT_EQ(book_.NextOf(track_), 1u);
  EXPECT_EQ(book_.CursorOf(source_), 1u);
}

// 20 ends before 11: the client does not stand beyond 11, and the source keeps it too.
TEST_F(DeliveryBookTest, WhatEndsOutOfOrderDoesNotPassWhatIsPending) {
  const Slot eleven = Add(11), twenty = Add(20);
  book_.source(source_).seen = 20;
  book_.BeginEnd(twenty);
  book_.Remove(twenty);
  EXPECT_EQ(book_.NextOf(track_), 11u);
  EXPECT_EQ(book_.CursorOf(source_), 11u);
  EXPECT_EQ(book_.FindAt(track_, 20), kNone);
  EXPECT_EQ(book_.FindAt(track_, 11), eleven);
  book_.BeginEnd(eleven);
  book_.Remove(eleven);
  EXPECT_EQ(book_.NextOf(track_), 21u);
  EXPECT_EQ(book_.CursorOf(source_), 21u);
}

// The client's place is written with the end; the source may forget only what is durable.
TEST_F(DeliveryBookTest, AnEndThatIsNotDurableCountsForTheClientOnly) {
  const Slot slot = Add(11);
  book_.source(source_).seen = 11;
  book_.BeginEnd(slot);
  EXPECT_EQ(book_.NextOf(track_), 12u);
  EXPECT_EQ(book_.CursorOf(source_), 11u);
  EXPECT_TRUE(book_.Unfinished(source_, 11));
  EXPECT_EQ(book_.FindAt(track_, 11), slot);
  book_.AbandonEnd(slot);
  EXPECT_EQ(book_.NextOf(track_), 11u);
  EXPECT_EQ(book_.CursorOf(source_), 11u);
  book_.source(source_).cursor_dirty = false;
  book_.Remove(slot);
  EXPECT_TRUE(book_.source(source_).cursor_dirty);
  EXPECT_FALSE(book_.Unfinished(source_, 11));
}

// Who comes back late for a slot finds out that it is another's now.
TEST_F(DeliveryBookTest, ASlotThatIsGivenOutAgainIsOfAnotherId) {
  std::set<std::pair<Slot, FlightKey>> given;
  const Slot first = Add(1);
  book_.Remove(first);
  for (uint64_t i = 0; i < 100; ++i) {
    const Slot slot = Add(i % 2 == 0 ? std::optional<uint64_t>(1) : std::nullopt);
    ASSERT_EQ(slot, first);
    Flight& flight = book_.flight(slot);
    EXPECT_TRUE(given.emplace(slot, flight.id).second);
    EXPECT_EQ(flight.phase, Phase::kArmed);
    EXPECT_EQ(book_.EpochOf(flight), 0u);
    EXPECT_EQ(book_.AttemptOf(flight), 0u);
    EXPECT_EQ(book_.ChannelOf(flight), kNone);
    for (const auto& [at, id] : given) ASSERT_EQ(book_.Is(at, id), id == flight.id);
    // None of it may be seen by whoever comes next.
    book_.SetEpoch(flight, i % 3 == 0 ? UINT64_MAX : 7);
    book_.SetAttempt(flight, i % 5 == 0 ? UINT32_MAX : 5);
    flight.phase = Phase::kEnding;
    book_.Attach(slot, Open(one_));
    if (i % 7 == 0) {
      EXPECT_EQ(++book_.DeadAttemptsOf(flight), 1u);
    }
    book_.Remove(slot);
    EXPECT_FALSE(book_.Is(slot, flight.id));
    EXPECT_EQ(book_.Close(client_, one_.get()), Slots());
  }
}

TEST_F(DeliveryBookTest, AnIdIsFoundWhileItsFlightIsInFlightOnly) {
  std::vector<Slot> slots;
  for (uint64_t offset = 0; offset < 2'000; ++offset) slots.push_back(Add(offset));
  for (uint64_t i = 0; i < 2'000; ++i) {
    const std::string id = "id-" + std::to_string(i + 1);
    ASSERT_EQ(book_.Find(id), slots[i]);
    book_.Remove(slots[i]);
    ASSERT_EQ(book_.Find(id), kNone);
  }
  EXPECT_EQ(book_.Find(""), kNone);
  EXPECT_EQ(book_.in_flight(), 0u);
}

// Ids that engines make, and others.
TEST_F(DeliveryBookTest, AnIdIsItsBytes) {
  std::map<std::string, Slot> slots;
  for (const std::string id : {"7-00ff-12", "7-00ff-012", "7-00ff-0", "7-00ff-", "8-00ff-12", "12",
                               "word", "", "7-00ff-12x"}) {
    slots[id] = book_.Add(id, track_, std::nullopt);
  }
  for (const auto& [id, slot] : slots) {
    ASSERT_EQ(book_.Find(id), slot) << id;
    ASSERT_EQ(book_.IdOf(book_.flight(slot)).view(), id);
  }
  for (const std::string id : {"7-00ff-1", "7-00ff-0012", "9-00ff-12", "wor", "words", "2"}) {
    EXPECT_EQ(book_.Find(id), kNone) << id;
  }
  for (const auto& [id, slot] : slots) {
    book_.Remove(slot);
    ASSERT_EQ(book_.Find(id), kNone) << id;
  }
}

// Each by itself, and one after the other.
TEST_F(DeliveryBookTest, WhatIsLargeComesBackAsItWas) {
  const Slot slot = Add(1), other = Add(2);
  book_.SetEpoch(book_.flight(other), 3);
  Flight& flight = book_.flight(slot);
  const uint32_t number = Open(one_);
  book_.Attach(slot, number);
  for (const uint64_t epoch : {uint64_t{1}, uint64_t{UINT32_MAX}, uint64_t{1} << 32, UINT64_MAX}) {
    for (const uint32_t attempt : {0u, 1'023u, 1'024u, UINT32_MAX}) {
      book_.SetEpoch(flight, epoch);
      book_.SetAttempt(flight, attempt);
      ASSERT_EQ(book_.EpochOf(flight), epoch);
      ASSERT_EQ(book_.AttemptOf(flight), attempt);
      ASSERT_EQ(book_.ChannelOf(flight), number);
    }
  }
  book_.SetEpoch(flight, 2);
  EXPECT_EQ(book_.EpochOf(flight), 2u);
  EXPECT_EQ(++book_.DeadAttemptsOf(flight), 1u);
  EXPECT_EQ(++book_.DeadAttemptsOf(flight), 2u);
  EXPECT_EQ(book_.AttemptOf(flight), UINT32_MAX);
  EXPECT_EQ(book_.Close(client_, one_.get()), Slots{slot});
  EXPECT_EQ(book_.ChannelOf(flight), kNone);
  EXPECT_EQ(book_.EpochOf(book_.flight(other)), 3u);
}

TEST_F(DeliveryBookTest, AFlightIsAsOldAsItsPutSays) {
  const Slot slot = Add(1);
  Flight& flight = book_.flight(slot);
  const absl::Duration year = absl::Hours(24 * 365);
  for (const absl::Duration born :
       {absl::ZeroDuration(), absl::Milliseconds(10), absl::Seconds(-3),
        absl::Seconds(1e6) + absl::Milliseconds(70), 100 * year, -100 * year}) {
    book_.SetBorn(flight, born);
    EXPECT_EQ(book_.BornOf(flight), born);
    EXPECT_EQ(book_.OldestOf(client_), born);
  }
  book_.SetBorn(flight, absl::Milliseconds(1'019));
  EXPECT_EQ(book_.BornOf(flight), absl::Milliseconds(1'010));
  for (const absl::Duration never : {1'000 * year, absl::InfiniteDuration()}) {
    book_.SetBorn(flight, never);
    EXPECT_GT(book_.BornOf(flight), 100 * year);
    book_.SetBorn(flight, -never);
    EXPECT_LT(book_.BornOf(flight), -100 * year);
  }
}

// More channels than a flight has bits for.
TEST_F(DeliveryBookTest, EveryChannelOfManyGivesBackItsOwn) {
  constexpr uint64_t kChannels = 600;
  std::vector<std::shared_ptr<Channel>> channels;
  std::vector<Slot> slots;
  for (uint64_t i = 0; i < kChannels; ++i) {
    channels.push_back(std::make_shared<SilentChannel>());
    slots.push_back(Add(i));
    book_.Attach(slots.back(), Open(channels.back()));
  }
  for (uint64_t i = 0; i < kChannels; ++i) {
    ASSERT_EQ(book_.Close(client_, channels[i].get()), Slots{slots[i]}) << i;
  }
  EXPECT_EQ(book_.NextChannel(client_), kNone);
}

// Proves: T9
TEST_F(DeliveryBookTest, AChannelThatClosesGivesBackWhatWasPushedOverIt) {
  const uint32_t one = Open(one_), two = Open(two_);
  const Slot a = Add(1), b = Add(2), c = Add(3), d = Add(4), e = Add(5), f = Add(6);
  for (const Slot slot : {a, b, c, d, e}) book_.Attach(slot, one);
  book_.Attach(f, two);
  book_.Attach(a, one);  // pushed again
  book_.Attach(b, two);
  book_.Detach(c);
  book_.Remove(d);
  const Slot g = Add(std::nullopt);
  book_.Attach(g, one);
  EXPECT_EQ(book_.Close(client_, one_.get()), (Slots{a, e, g}));
  EXPECT_EQ(book_.ChannelOf(book_.flight(e)), kNone);
  EXPECT_EQ(one_.use_count(), 1);
  EXPECT_EQ(book_.Close(client_, one_.get()), Slots());
  EXPECT_EQ(book_.Close(client_, two_.get()), (Slots{b, f}));
}

TEST_F(DeliveryBookTest, AChannelIsClosedForItsOwnClientOnly) {
  const uint32_t other = book_.ClientOf("other");
  const Slot slot = Add(1);
  book_.Attach(slot, Open(one_));
  EXPECT_EQ(book_.Close(other, one_.get()), Slots());
  EXPECT_EQ(book_.Close(client_, nullptr), Slots());
  EXPECT_EQ(book_.NextChannel(other), kNone);
  EXPECT_EQ(book_.Close(client_, one_.get()), Slots{slot});
}

TEST_F(DeliveryBookTest, OpenChannelsTakeTurns) {
  EXPECT_EQ(book_.NextChannel(client_), kNone);
  std::vector<std::shared_ptr<Channel>> channels;
  std::set<uint32_t> open;
  for (int i = 0; i < 3; ++i) {
    channels.push_back(std::make_shared<SilentChannel>());
    open.insert(Open(channels.back()));
  }
  ASSERT_EQ(open.size(), 3u);
  const auto expect_turns = [&] {
    const size_t count = open.size();
    std::vector<uint32_t> turns;
    for (size_t i = 0; i < 4 * count; ++i) turns.push_back(book_.NextChannel(client_));
    EXPECT_EQ(std::set<uint32_t>(turns.begin(), turns.begin() + static_cast<ptrdiff_t>(count)),
              open);
    for (size_t i = count; i < turns.size(); ++i) EXPECT_EQ(turns[i], turns[i - count]);
  };
  expect_turns();
  book_.NextChannel(client_);
  book_.Close(client_, channels[1].get());
  open.erase(1);
  expect_turns();
  // Its number is used again; those of other clients are their own.
  const uint32_t other = book_.ClientOf("other");
  const uint32_t first = book_.OpenFor(other, one_);
  EXPECT_EQ(book_.NextChannel(other), first);
  EXPECT_EQ(book_.NextChannel(other), first);
  expect_turns();
  EXPECT_EQ(Open(two_), 1u);
  open.insert(1);
  expect_turns();
}

TEST_F(DeliveryBookTest, AnEventWithoutANumberEndsWithItsLastTarget) {
  const uint32_t other = book_.SourceOf({"b", 3, 4});
  const uint64_t three = book_.AddUnnumbered(source_, 7, 3);
  const uint64_t one = book_.AddUnnumbered(other, 8, 1);
  EXPECT_NE(three, one);
  EXPECT_EQ(book_.FinishUnnumbered(three), std::nullopt);
  const std::optional<Unnumbered> last = book_.FinishUnnumbered(one);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->source, other);
  EXPECT_EQ(last->token, 8u);
  EXPECT_EQ(book_.FinishUnnumbered(three), std::nullopt);
  EXPECT_EQ(book_.FinishUnnumbered(three)->token, 7u);
  // Once, and never again.
  EXPECT_EQ(book_.FinishUnnumbered(three), std::nullopt);
  EXPECT_EQ(book_.FinishUnnumbered(0), std::nullopt);
  EXPECT_NE(book_.AddUnnumbered(source_, 9, 1), three);
}

TEST_F(DeliveryBookTest, FlightsWithoutANumberHoldNoOffset) {
  book_.source(source_).seen = 5;
  const Slot slot = Add(std::nullopt);
  const uint64_t event = book_.flight(slot).offset;  // no offset
  const Slot numbered = Add(event);
  EXPECT_EQ(book_.FindAt(track_, event), numbered);
  book_.Remove(numbered);
  book_.source(source_).cursor_dirty = false;
  book_.BeginEnd(slot);
  book_.AbandonEnd(slot);
  EXPECT_EQ(book_.NextOf(track_), 6u);
  EXPECT_EQ(book_.CursorOf(source_), 6u);
  EXPECT_FALSE(book_.Unfinished(source_, event));
  EXPECT_EQ(book_.client(client_).in_flight, 1u);
  book_.Remove(slot);
  EXPECT_FALSE(book_.source(source_).cursor_dirty);
  EXPECT_EQ(book_.client(client_).in_flight, 0u);
}

}  // namespace
}  // namespace holdfast
