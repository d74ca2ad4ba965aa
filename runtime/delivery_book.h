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
#include "absl/time/time.h"
#include "holdfast/dispatcher.h"
#include "journal/base/string_map.h"
#include "runtime/flight_id.h"
#include "runtime/pending_window.h"
#include "runtime/slot_array.h"

namespace holdfast {

enum class Phase : uint8_t {
  kWaiting,        // due, but its client has no channel
  kArmed,          // its timer is set
  kPushing,        // the count of its next push is on its way to the disk
  kEnding,         // its end is on its way to the disk
  kDeadLettering,  // with the sink or the ledger
};

struct Flight {
  FlightId id;
  uint32_t id_hash = 0;        // so that a full table is not read through its ids
  uint32_t generation = 0;     // of the slot: who comes back late compares it
  uint32_t attempt = 0;        // pushes counted
  uint32_t dead_attempts = 0;  // failed attempts to dead-letter it, in this process
  uint32_t track = kNone;
  uint32_t channel = kNone;  // over which it was pushed last; kNone: over none that is open
  uint32_t channel_previous = kNone, channel_next = kNone;
  uint64_t offset = 0;  // or the event of AddUnnumbered, if it has no number; 0: recovered
  uint64_t epoch = 0;
  absl::Duration born;  // when it was put, on the engine clock
  bool numbered = false;
  bool live = false;     // false: the slot is free
  bool counted = false;  // its next push is counted already, and was not made yet
  Phase phase = Phase::kArmed;
};

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
  std::vector<uint32_t> channels;                 // open ones, of Book::channels
  size_t turn = 0;                                // whose turn the next push is
  std::deque<std::pair<Slot, uint32_t>> waiting;  // slot and generation; some may have ended
  uint64_t in_flight = 0;
  std::vector<uint32_t> tracks;
  // For Stats.
  uint64_t pushed = 0, redelivered = 0, acked = 0;
  absl::Duration last_ack = -absl::InfiniteDuration();  // on the engine clock
};

struct OpenChannel {
  std::shared_ptr<Channel> channel;  // null: closed
  uint32_t client = kNone;
  Slot first = kNone;  // of what was pushed over it
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
  OpenChannel& channel(uint32_t index) { return channels_[index]; }
  Client& ClientOfFlight(const Flight& flight) { return clients_[tracks_[flight.track].client]; }
  size_t sources() const { return sources_.size(); }
  size_t clients() const { return clients_.size(); }
  size_t slots() const { return flights_.size(); }  // live ones and others
  uint64_t in_flight() const { return by_id_.size(); }

  // A flight on `track`, pending in its window from now on. `event`: of AddUnnumbered, for one
  // without an offset.
  Slot Add(std::string_view id, uint32_t track, std::optional<uint64_t> offset, uint64_t event = 0);
  // kNone: no such id is in flight.
  Slot Find(std::string_view id) const;
  Slot FindAt(uint32_t track, uint64_t offset) const;
  bool Is(Slot slot, uint32_t generation) const {
    return flights_[slot].live && flights_[slot].generation == generation;
  }

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

  // --- Channels ---
  uint32_t OpenFor(uint32_t client, std::shared_ptr<Channel> channel);
  // The slots that were pushed over it, oldest push first; they are on no channel any more. None if
  // it is unknown.
  std::vector<Slot> Close(uint32_t client, const Channel* channel);
  // The open channel whose turn it is; kNone: the client has none.
  uint32_t NextChannel(uint32_t client);
  void Attach(Slot slot, uint32_t channel);
  void Detach(Slot slot);

  // --- Events without a number ---
  uint64_t AddUnnumbered(uint32_t source, uint64_t token, uint32_t targets);
  // One target has finished. The event, if that was the last.
  std::optional<Unnumbered> FinishUnnumbered(uint64_t event);

 private:
  // The window that has the flight; null: none does.
  PendingWindow* WindowOf(const Flight& flight);

  // Slots in a set, found by the ids of their flights.
  struct IdHash {
    using is_transparent = void;
    const SlotArray<Flight>* flights;
    static uint32_t Short(std::string_view id) { return static_cast<uint32_t>(StringHash()(id)); }
    // The set takes the lowest seven bits apart, and then wants more than 25.
    static size_t Spread(uint32_t hash) { return hash * uint64_t{0x9e3779b97f4a7c15}; }
    size_t operator()(std::string_view id) const { return Spread(Short(id)); }
    size_t operator()(Slot slot) const { return Spread((*flights)[slot].id_hash); }
  };
  struct IdEqual {
    using is_transparent = void;
    const SlotArray<Flight>* flights;
    bool operator()(Slot a, Slot b) const { return a == b; }
    bool operator()(Slot a, std::string_view id) const { return (*flights)[a].id.view() == id; }
    bool operator()(std::string_view id, Slot a) const { return (*this)(a, id); }
  };

  std::deque<Source> sources_;
  std::deque<Track> tracks_;
  std::deque<Client> clients_;
  std::deque<OpenChannel> channels_;
  SlotArray<Flight> flights_;
  std::vector<uint32_t> free_channels_;
  absl::btree_map<SourceKey, uint32_t> source_of_;
  StringMap<uint32_t> client_of_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> track_of_;
  absl::flat_hash_set<Slot, IdHash, IdEqual> by_id_{0, IdHash{&flights_}, IdEqual{&flights_}};
  absl::flat_hash_map<uint64_t, Unnumbered> unnumbered_;
  uint64_t next_unnumbered_ = 1;
};

}  // namespace holdfast
