// The book beside a list of flights that is searched from end to end for every answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "journal/base/seeded_rng.h"
#include "runtime/delivery_book.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

class SilentChannel final : public Channel {
 public:
  void Push(const Delivery&) override {}
};

constexpr uint32_t kSources = 3, kClients = 3;
constexpr uint64_t kOffsets = 160;  // in a source: more than two blocks of a window

class ComparedBook {
 public:
  explicit ComparedBook(uint64_t seed) : rng_(seed) {
    for (uint32_t source = 0; source < kSources; ++source) {
      book_.SourceOf({"topic", 1, source});
      for (uint32_t client = 0; client < kClients; ++client) {
        const uint32_t index = book_.ClientOf("client-" + std::to_string(client));
        if (source == client && source > 0) continue;  // not everybody reads everything
        EXPECT_EQ(book_.AddTrack(source, index, 0), tracks_.size());
        tracks_.push_back({source, client});
      }
    }
  }

  void Step() {
    const uint64_t choice = rng_.Below(16);
    if (choice < 5 || flights_.empty()) return Add();
    const auto chosen = std::next(flights_.begin(), rng_.Below(flights_.size()));
    const Slot slot = chosen->first;
    Known& flight = chosen->second;
    if (choice < 8) {
      if (!flight.ending) book_.BeginEnd(slot);
      flight.ending = true;
    } else if (choice < 9) {
      if (flight.ending) book_.AbandonEnd(slot);
      flight.ending = false;
    } else if (choice < 11 || flights_.size() > 60) {
      Remove(slot);
    } else if (choice < 14) {
      Attach(slot, flight);
    } else if (choice < 15) {
      book_.Detach(slot);
      flight.channel = nullptr;
    } else {
      OpenOrClose();
    }
  }

  void ExpectTheSame() {
    for (uint32_t track = 0; track < tracks_.size(); ++track) ExpectTheSameTrack(track);
    for (uint32_t source = 0; source < kSources; ++source) ExpectTheSameSource(source);
    for (uint32_t client = 0; client < kClients; ++client) {
      ASSERT_EQ(book_.client(client).in_flight, CountIf([&](const Known& flight) {
                  return tracks_[flight.track].client == client;
                }));
    }
    ASSERT_EQ(book_.in_flight(), flights_.size());
    for (const auto& [slot, flight] : flights_) {
      ASSERT_EQ(book_.Find(flight.id), slot);
      ASSERT_TRUE(book_.Is(slot, flight.key));
      ASSERT_LT(slot, most_at_once_) << "a free slot was not used";
    }
    if (!ended_.empty()) {
      const Ended& one = ended_[rng_.Below(ended_.size())];
      ASSERT_EQ(book_.Find(one.id), kNone);
      ASSERT_FALSE(book_.Is(one.slot, one.key));
    }
  }

 private:
  struct Known {
    std::string id;
    uint32_t track = 0;
    std::optional<uint64_t> offset;
    bool ending = false;
    FlightKey key = 0;
    const Channel* channel = nullptr;
  };
  struct Ended {
    std::string id;
    Slot slot;
    FlightKey key;
  };
  struct Way {
    uint32_t source, client;
  };
  struct Open {
    std::shared_ptr<Channel> channel;
    uint32_t client, index;
  };

  template <typename Predicate>
  uint64_t CountIf(Predicate predicate) const {
    uint64_t count = 0;
    for (const auto& [slot, flight] : flights_) count += predicate(flight) ? 1 : 0;
    return count;
  }
  // The lowest offset in flight of those that `predicate` names.
  template <typename Predicate>
  std::optional<uint64_t> LowestIf(Predicate predicate) const {
    std::optional<uint64_t> lowest;
    for (const auto& [slot, flight] : flights_) {
      if (!flight.offset.has_value() || !predicate(flight)) continue;
      lowest = std::min(lowest.value_or(*flight.offset), *flight.offset);
    }
    return lowest;
  }

  void Add() {
    const auto track = static_cast<uint32_t>(rng_.Below(tracks_.size()));
    std::optional<uint64_t> offset = rng_.Below(kOffsets);
    if (rng_.OneIn(5)) offset = std::nullopt;
    for (const auto& [slot, flight] : flights_) {
      if (offset.has_value() && flight.track == track && flight.offset == offset) return;
    }
    const std::string id = "id-" + std::to_string(++ids_);
    const Slot slot = book_.Add(id, track, offset);
    most_at_once_ = std::max(most_at_once_, flights_.size() + 1);
    const Known known{.id = id, .track = track, .offset = offset, .key = book_.flight(slot).id};
    ASSERT_TRUE(flights_.emplace(slot, known).second) << "the slot is in use";
    if (!offset.has_value()) return;
    std::optional<uint64_t>& seen = book_.source(tracks_[track].source).seen;
    seen = std::max(seen.value_or(0), *offset);
  }

  void Remove(Slot slot) {
    const Known flight = flights_.at(slot);
    bool& dirty = book_.source(tracks_[flight.track].source).cursor_dirty;
    dirty = false;
    book_.Remove(slot);
    ASSERT_EQ(dirty, flight.offset.has_value());
    flights_.erase(slot);
    ended_.push_back({flight.id, slot, flight.key});
  }

  void Attach(Slot slot, Known& flight) {
    const uint32_t client = tracks_[flight.track].client;
    const uint32_t index = book_.NextChannel(client);
    const auto open = std::find_if(open_.begin(), open_.end(), [&](const Open& one) {
      return one.client == client && one.index == index;
    });
    const bool any = std::any_of(open_.begin(), open_.end(),
                                 [&](const Open& one) { return one.client == client; });
    ASSERT_EQ(index != kNone, any);
    if (!any) return;
    ASSERT_NE(open, open_.end()) << "its channel is another's";
    book_.Attach(slot, index);
    flight.channel = open->channel.get();
  }

  void OpenOrClose() {
    if (open_.empty() || rng_.OneIn(2)) {
      const auto client = static_cast<uint32_t>(rng_.Below(kClients));
      open_.push_back({std::make_shared<SilentChannel>(), client, 0});
      open_.back().index = book_.OpenFor(client, open_.back().channel);
      return;
    }
    const auto closed = std::next(open_.begin(), rng_.Below(open_.size()));
    std::vector<Slot> expected;
    for (auto& [slot, flight] : flights_) {
      if (flight.channel != closed->channel.get()) continue;
      flight.channel = nullptr;
      expected.push_back(slot);
    }
    std::vector<Slot> pushed = book_.Close(closed->client, closed->channel.get());
    std::sort(pushed.begin(), pushed.end());
    ASSERT_EQ(pushed, expected);
    for (const Slot slot : expected) ASSERT_EQ(book_.ChannelOf(book_.flight(slot)), kNone);
    ASSERT_EQ(closed->channel.use_count(), 1);
    open_.erase(closed);
  }

  void ExpectTheSameTrack(uint32_t track) {
    const std::optional<uint64_t> seen = book_.source(tracks_[track].source).seen;
    const std::optional<uint64_t> pending =
        LowestIf([&](const Known& flight) { return flight.track == track && !flight.ending; });
    std::optional<uint64_t> next;
    if (seen.has_value()) next = pending.value_or(*seen + 1);
    ASSERT_EQ(book_.NextOf(track), next) << "track " << track;
  }

  void ExpectTheSameSource(uint32_t source) {
    const auto of_source = [&](const Known& flight) {
      return tracks_[flight.track].source == source;
    };
    const std::optional<uint64_t> seen = book_.source(source).seen;
    const uint64_t beyond = seen.has_value() ? *seen + 1 : 0;
    ASSERT_EQ(book_.CursorOf(source), LowestIf(of_source).value_or(beyond)) << source;
    const uint64_t offset = rng_.Below(kOffsets);
    ASSERT_EQ(book_.Unfinished(source, offset), CountIf([&](const Known& flight) {
                                                  return of_source(flight) &&
                                                         flight.offset == offset;
                                                }) > 0)
        << offset;
    for (uint32_t track = 0; track < tracks_.size(); ++track) {
      Slot expected = kNone;
      for (const auto& [slot, flight] : flights_) {
        if (flight.track == track && flight.offset == offset) expected = slot;
      }
      ASSERT_EQ(book_.FindAt(track, offset), expected) << track << " at " << offset;
    }
  }

  SeededRng rng_;
  DeliveryBook book_;
  std::vector<Way> tracks_;  // as the book numbers them
  std::map<Slot, Known> flights_;
  std::vector<Ended> ended_;
  std::vector<Open> open_;
  size_t most_at_once_ = 0;
  uint64_t ids_ = 0;
};

TEST(DeliveryBookModelTest, RandomOperationsGiveTheAnswersOfASearchThroughAllFlights) {
  for (const uint64_t seed : Seeds(30)) {
    SCOPED_TRACE(seed);
    ComparedBook both(seed);
    for (int i = 0; i < 1'500; ++i) {
      both.Step();
      if (!testing::Test::HasFatalFailure()) both.ExpectTheSame();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace holdfast
