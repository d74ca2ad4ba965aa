// DeadLetterStore: deliveries that were given up, kept with their event until purged.
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
#include "holdfast/delivery_state_store.h"

namespace holdfast {

struct DeadLetter {
  std::string delivery_id;  // not empty
  std::string dlq_topic;    // where the body went
  uint64_t dlq_offset = 0;
  std::string reason;
  uint32_t attempts = 0;
  // Where the delivery came from.
  uint64_t epoch = 0;
  std::string topic;
  uint64_t incarnation = 0;
  uint64_t partition = 0;
  std::optional<uint64_t> offset;
  std::string client;
  absl::Time died;  // wall time
  std::string event;

  bool operator==(const DeadLetter&) const = default;
};

struct StoredDeadLetter {
  DeadLetter dead_letter;
  uint64_t replays = 0;  // how often it was redriven
  uint64_t lsn = 0;
  bool durable = false;
};

// Threads: any. Moving a delivery here is one Transact of {RecordDeadLetter, RemoveDelivery,
// WriteOffset}.
class DeadLetterStore {
 public:
  virtual ~DeadLetterStore() = default;

  // The first record of an id wins; later ones change nothing (Commit::changed() tells).
  // Errors: as DeliveryStateStore::Put
  virtual Commit Record(const DeadLetter& dead_letter) = 0;

  // Whether the id is recorded, and whether this answer is durable already.
  struct Presence {
    bool recorded = false;
    bool durable = false;
  };
  // Errors: kUnavailable  kPoisoned: the journal failed before the answer was confirmed
  virtual absl::StatusOr<Presence> IsDeadLettered(std::string_view delivery_id) = 0;

  // Errors: as DeliveryStateStore::Get
  virtual absl::StatusOr<StoredDeadLetter> Get(std::string_view delivery_id) = 0;

  // As DeliveryStateStore::Iterate.
  virtual absl::Status Iterate(const std::function<bool(const StoredDeadLetter&)>& visit) = 0;
  virtual uint64_t Count() = 0;

  // Puts the event up for delivery again, in one batch with the count of its replays. The caller
  // gives the new id (Engine::NewDeliveryId), due time and creation time; the rest comes from the
  // dead letter, with redriven_from set, no source offset and attempt 0.
  struct RedriveAs {
    std::string_view new_id;
    absl::Duration due;
    absl::Time created;
  };
  // Errors: kNotFound         no such dead letter
  //         kAlreadyExists    new_id is in flight
  //         kInvalidArgument  new_id is empty or of 64 KiB or more
  //         kUnavailable, kDataLoss  as Get: nothing was written
  virtual Commit Redrive(std::string_view delivery_id, const RedriveAs& as) = 0;

  // Forgets a dead letter. An unknown id changes nothing.
  virtual Commit Purge(std::string_view delivery_id) = 0;

  // Blocks until everything written so far is confirmed.
  virtual absl::Status Flush() = 0;
};

}  // namespace holdfast
