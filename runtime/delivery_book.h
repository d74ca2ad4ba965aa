// DeliveryBook: what the dispatcher knows of every delivery in flight, and what follows from it:
// how far each client and each source has come. Pure: nothing here writes, waits or looks at a
// clock; the stores hold what a restart needs to fill the book again.
//
// A *source* is one numbering of one partition of a topic. A *track* is one client's way through
// one source. A *flight* is one delivery, from its put until its end is durable.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/time/time.h"
#include "holdfast/dispatcher.h"
#include "journal/base/string_map.h"
#include "runtime/flight_id.h"
#include "runtime/pending_window.h"
#include "runtime/slot_array.h"

namespace holdfast {

enum class Phase : uint8_t {
  kFree,           // no flight: the slot waits for the next one
  kWaiting,        // due, but its client has no channel
  kArmed,          // its timer is set
  kPushing,        // the count of its next push is on its way to the disk
  kEnding,         // its end is on its way to the disk
  kDeadLettering,  // with the sink or the ledger
};

// Half a line of the processor's cache. What may be larger than its bits is read and set through
// the book, which keeps it elsewhere then.
class Flight {
 public:
  FlightKey id = 0;     // who comes back late for a slot compares it
  uint64_t offset = 0;  // or its event, if it has no number
  uint32_t track = kNone;

  bool live() const { return phase != Phase::kFree; }

 private:
  friend class DeliveryBook;
  static constexpr uint32_t kBornBits = 40, kAttemptBits = 10, kChannelBits = 8;
  static constexpr uint64_t kBornMax = (uint64_t{1} << kBornBits) - 1;
  static constexpr int64_t kBornBefore = kBornMax / 2;  // of zero: where it begins
  static constexpr uint32_t kAttemptMax = (1u << kAttemptBits) - 1;
  static constexpr uint32_t kNoChannel = (1u << kChannelBits) - 1;

  uint32_t epoch_ = 0;
  uint64_t born_ : kBornBits = 0;  // in hundredths of a second, from kBornBefore on
  uint32_t attempt_ : kAttemptBits = 0;
  uint32_t channel_ : kChannelBits = kNoChannel;

 public:
  Phase phase : 3 = Phase::kFree;
  bool numbered : 1 = false;
  bool counted : 1 = false;  // its next push is counted already, and was not made yet

 private:
  bool large_ : 1 = false;  // epoch, attempt and channel are in the book's table
};
static_assert(sizeof(Flight) == 32);

struct Track {
  uint32_t source = kNone;
  uint32_t client = kNone;
  // The first offset that was meant for the client; none: there was no numbered one yet, or nobody
  // knows any more.
  std::optional<uint64_t> start;
  // What is handed in below was finished elsewhere; zero where it was always this process's.
  uint64_t finished_below = 0;
  PendingWindow numbered;    // flights by offset
  PendingWindow unnumbered;  // flights by event
};

struct Source {
  SourceKey key;
  std::optional<uint64_t> seen;
  bool let_go = false;   // another instance has it, until it is adopted again
  uint64_t leaving = 0;  // flights that end because of that, not durably yet
  // What its owner before this one had handed in, and is delivered here once more.
  std::optional<uint64_t> handed_in_before;
  uint64_t cursor = 0;        // the newest written
  bool cursor_dirty = false;  // it may be higher now
  std::vector<uint32_t> tracks;

  // Not before what was seen is forgotten: what ends would count as finished.
  bool MayEndMoved() const { return let_go && !seen.has_value(); }
};

struct Client {
  std::string name;
  std::vector<std::shared_ptr<Channel>> channels;  // by number; null: closed
  size_t open = 0;                                 // of them
  size_t turn = 0;                                 // whose turn the next push is
  std::deque<FlightKey> waiting;                   // some may have ended
  uint64_t in_flight = 0;
  std::vector<uint32_t> tracks;
  // For Stats.
  uint64_t pushed = 0, redelivered = 0, acked = 0;
  absl::Duration last_ack = -absl::InfiniteDuration();  // on the engine clock
};

// An event without a number, as long as any of its deliveries is in flight.
struct Unnumbered {
  uint32_t source = kNone;
  uint64_t token = 0;
  uint32_t unfinished = 0;
};

// Threads: one at a time.
class DeliveryBook {
 public:
  DeliveryBook() = default;
  DeliveryBook(const DeliveryBook&) = delete;  // its sets look into its own flights
  DeliveryBook& operator=(const DeliveryBook&) = delete;

  // Made if they are new.
  uint32_t SourceOf(const SourceKey& key);
  uint32_t ClientOf(std::string_view name);
  // kNone: there is none.
  uint32_t FindClient(std::string_view name) const;
  uint32_t FindTrack(uint32_t source, uint32_t client) const;
  uint32_t AddTrack(uint32_t source, uint32_t client, std::optional<uint64_t> start);

  Source& source(uint32_t index) { return sources_[index]; }
  Track& track(uint32_t index) { return tracks_[index]; }
  Client& client(uint32_t index) { return clients_[index]; }
  Flight& flight(Slot slot) { return flights_[slot]; }
  Client& ClientOfFlight(const Flight& flight) { return clients_[tracks_[flight.track].client]; }
  size_t sources() const { return sources_.size(); }
  size_t clients() const { return clients_.size(); }
  size_t slots() const { return flights_.size(); }  // live ones and others
  uint64_t in_flight() const { return by_id_.size(); }

  // A flight on `track`, pending in its window from now on. `event`: of AddUnnumbered, for one
  // without an offset; 0: nobody knows its event any more.
  Slot Add(std::string_view id, uint32_t track, std::optional<uint64_t> offset, uint64_t event = 0);
  // kNone: no such id is in flight.
  Slot Find(std::string_view id) const;
  Slot FindAt(uint32_t track, uint64_t offset) const;
  // As Find(): kNone if it has ended.
  Slot FindKey(FlightKey id) const;
  bool Is(Slot slot, FlightKey id) const {
    return flights_[slot].live() && flights_[slot].id == id;
  }

  // --- What is known of a flight ---
  FlightId IdOf(const Flight& flight) const { return ids_.TextOf(flight.id); }
  uint64_t EpochOf(const Flight& flight) const;
  void SetEpoch(Flight& flight, uint64_t epoch);
  // Pushes counted.
  uint32_t AttemptOf(const Flight& flight) const;
  void SetAttempt(Flight& flight, uint32_t attempt);
  // When it was put, on the engine clock, to a hundredth of a second.
  absl::Duration BornOf(const Flight& flight) const;
  void SetBorn(Flight& flight, absl::Duration born);
  // The number of its client's channel over which it was pushed last; kNone: over none that is
  // open.
  uint32_t ChannelOf(const Flight& flight) const;
  // Failed attempts to dead-letter it, in this process.
  uint32_t& DeadAttemptsOf(Flight& flight) { return LargeOf(flight).dead_attempts; }

  // Its end goes into the journal now, or came to nothing after all.
  void BeginEnd(Slot slot);
  void AbandonEnd(Slot slot);
  // Its end is durable: the slot is free.
  void Remove(Slot slot);

  // Where the client stands: the lowest pending offset, or the one after all that was seen. None:
  // nothing of the source was seen.
  std::optional<uint64_t> NextOf(uint32_t track) const;
  // What the source need not hand in again: below every offset that is unfinished for anybody, and
  // not beyond what was seen.
  uint64_t CursorOf(uint32_t source) const;
  // Whether any client has this offset unfinished.
  bool Unfinished(uint32_t source, uint64_t offset) const;

  // When the oldest of its flights was put; infinite if it has none.
  absl::Duration OldestOf(uint32_t client) const;

  // --- Channels, by number among those of their client ---
  uint32_t OpenFor(uint32_t client, std::shared_ptr<Channel> channel);
  // The slots that were pushed over it, by track and offset; they are on no channel any more. None
  // if it is unknown. Cost: the client's flights.
  std::vector<Slot> Close(uint32_t client, const Channel* channel);
  // The open channel whose turn it is; kNone: the client has none.
  uint32_t NextChannel(uint32_t client);
  void Attach(Slot slot, uint32_t channel) { SetChannel(flights_[slot], channel); }
  void Detach(Slot slot) { SetChannel(flights_[slot], kNone); }

  // --- Events without a number ---
  uint64_t AddUnnumbered(uint32_t source, uint64_t token, uint32_t targets);
  // One target has finished. The event, if that was the last.
  std::optional<Unnumbered> FinishUnnumbered(uint64_t event);

 private:
  // Of a flight with any that its bits do not hold.
  struct Large {
    uint64_t epoch = 0;
    uint32_t attempt = 0;
    uint32_t channel = kNone;
    uint32_t dead_attempts = 0;
  };
  Large& LargeOf(Flight& flight);
  void SetChannel(Flight& flight, uint32_t channel);
  PendingWindow& WindowOf(const Flight& flight);

  // Slots in a set, found by the ids of their flights.
  struct IdHash {
    using is_transparent = void;
    const SlotArray<Flight>* flights;
    size_t operator()(FlightKey id) const { return absl::Hash<FlightKey>()(id); }
    size_t operator()(Slot slot) const { return (*this)((*flights)[slot].id); }
  };
  struct IdEqual {
    using is_transparent = void;
    const SlotArray<Flight>* flights;
    bool operator()(Slot a, Slot b) const { return a == b; }
    bool operator()(Slot a, FlightKey id) const { return (*flights)[a].id == id; }
    bool operator()(FlightKey id, Slot a) const { return (*this)(a, id); }
  };

  std::deque<Source> sources_;
  std::deque<Track> tracks_;
  std::deque<Client> clients_;
  SlotArray<Flight> flights_;
  FlightIds ids_;
  absl::flat_hash_map<FlightKey, Large> large_;
  absl::btree_map<SourceKey, uint32_t> source_of_;
  StringMap<uint32_t> client_of_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> track_of_;
  absl::flat_hash_set<Slot, IdHash, IdEqual> by_id_{0, IdHash{&flights_}, IdEqual{&flights_}};
  absl::flat_hash_map<uint64_t, Unnumbered> unnumbered_;
  uint64_t next_unnumbered_ = 1;
};

}  // namespace holdfast
