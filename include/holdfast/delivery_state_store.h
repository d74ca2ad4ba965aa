// DeliveryStateStore: every delivery that is in flight, from its put to its removal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/commit.h"

namespace holdfast {

// One event on its way to one client. Names and the event are arbitrary bytes; names are shorter
// than 64 KiB, the event is at most EngineOptions::event_bytes_max. Times are kept to the
// nanosecond; one beyond 64 bits of them is kept as infinite.
struct Delivery {
  std::string id;  // not empty; never used again for another delivery (Engine::NewDeliveryId)
  uint64_t epoch = 0;
  std::string topic;
  uint64_t incarnation = 0;
  uint64_t partition = 0;
  std::optional<uint64_t> offset;  // none: the event did not come from a numbered source
  std::string client;
  uint32_t attempt = 0;  // pushes so far
  absl::Duration due;    // when to push next, on the engine clock (Engine::EngineNow)
  absl::Time created;    // wall time, for people
  std::optional<std::string> redriven_from;  // id of the dead letter that this one replays
  std::string event;

  bool operator==(const Delivery&) const = default;
};

struct StoredDelivery {
  Delivery delivery;
  uint64_t lsn = 0;      // of the newest record that it consists of
  bool durable = false;  // the level in force has reached lsn
};

// The part of it that changes while it is in flight.
struct StoredSchedule {
  uint64_t epoch = 0;
  uint32_t attempt = 0;
  absl::Duration due;
  uint64_t lsn = 0;      // of the newest record that it consists of
  bool durable = false;  // the level in force has reached lsn
};

// New values for a live delivery; all absolute.
struct Reschedule {
  std::string_view id;
  uint64_t epoch = 0;
  uint32_t attempt = 0;
  absl::Duration due;
};

enum class Reason : uint8_t { kAcked = 1, kDeadLettered = 2, kWithdrawn = 3 };

// How a delivery ends. All but the id is recorded as given and may be empty. An acknowledgement
// with a key is remembered, see Answered().
struct Removal {
  std::string_view id;
  Reason reason = Reason::kAcked;
  uint64_t epoch = 0;  // of the delivery
  std::string_view client = {};
  std::optional<std::string_view> idempotency_key = {};
  std::string_view answer = {};
};

// Threads: any. Mutations that must be atomic with other stores go through Engine::Transact.
class DeliveryStateStore {
 public:
  virtual ~DeliveryStateStore() = default;

  // Stores the delivery; a live one of the same id is replaced. A refused put leaves no trace.
  // Errors: kInvalidArgument    empty id, a name of 64 KiB or more, an offset above 2^63 - 2
  //         kResourceExhausted  the event is over the limit, or the disk is full
  virtual Commit Put(const Delivery& delivery) = 0;

  // Errors: kNotFound  no live delivery of this id: a remove wins over a retry. Wait() says so
  //                    when the removal itself is confirmed, not before
  virtual Commit Update(const Reschedule& reschedule) = 0;

  // Ends the delivery. An unknown or ended id changes nothing; the answer then waits for the
  // removal that made it so.
  virtual Commit Remove(const Removal& removal) = 0;

  // Errors: kNotFound     no live delivery of this id
  //         kUnavailable  its bytes could not be read; try again. kPoisoned: the journal failed
  //                       before the newest change of this id was confirmed; reopen
  //         kDataLoss     its bytes are damaged; run `holdfast verify`
  virtual absl::StatusOr<StoredDelivery> Get(std::string_view id) = 0;

  // The same without the event, which is not read.
  // Errors: kNotFound, kUnavailable kPoisoned as Get
  virtual absl::StatusOr<StoredSchedule> GetSchedule(std::string_view id) = 0;

  // Whether exactly this acknowledgement (id, epoch, client and key; a reason of kAcked) ended a
  // delivery and is among the EngineOptions::remembered_answers newest. Then the answer is OK, and
  // is confirmed when that removal is; it changes nothing.
  // Errors: kNotFound  it is not remembered. Wait() says so when every removal until now is
  //                    confirmed
  virtual Commit Answered(const Removal& acknowledgement) = 0;

  // Visits the deliveries live at the moment of the call, in no particular order, until `visit`
  // answers false. The visitor may mutate any store; what was removed meanwhile is not visited. One
  // that cannot be read is left out and does not stop the others.
  // Errors: as Get, for the first value that could not be read
  virtual absl::Status Iterate(const std::function<bool(const StoredDelivery&)>& visit) = 0;

  // Live deliveries now. O(1).
  virtual uint64_t Count() = 0;

  // Blocks until everything written so far is confirmed.
  virtual absl::Status Flush() = 0;
};

}  // namespace holdfast
