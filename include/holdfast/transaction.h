// Transaction: changes to the three local stores that become durable together or not at all.
#pragma once

#include <cstdint>
#include <string_view>

#include "holdfast/dead_letter_store.h"
#include "holdfast/delivery_state_store.h"
#include "holdfast/offset_store.h"

namespace holdfast {

// Handed to the function given to Engine::Transact. The calls copy what they are given and only
// collect: nothing is judged, visible or written before the function returns. Then the calls are
// judged in order, each against the state that the earlier ones left; if one is refused, none takes
// effect and the Commit says why. Changes that leave the state as it is are dropped.
// Threads: the calling thread only. Do not keep it, and do not mutate the engine in the function.
class Transaction {
 public:
  virtual ~Transaction() = default;
  virtual void PutDelivery(const Delivery& delivery) = 0;
  virtual void UpdateDelivery(const Reschedule& reschedule) = 0;
  virtual void RemoveDelivery(const Removal& removal) = 0;
  void RemoveDelivery(std::string_view id, Reason reason) {
    RemoveDelivery(Removal{.id = id, .reason = reason});
  }
  virtual void WriteOffset(const OffsetKey& key, OffsetPosition position) = 0;
  // The first offset that is meant for a client, with the first put that is. The first start of an
  // incarnation holds; a later one, or one of an older incarnation, changes nothing.
  virtual void WriteStart(const OffsetKey& key, OffsetPosition start) = 0;
  virtual void ForgetOffset(const OffsetKey& key) = 0;
  // Raises what is recorded of a source; see SourceProgress.
  virtual void SourceSeen(const SourceKey& key, uint64_t through) = 0;
  virtual void SourceCursor(const SourceKey& key, uint64_t cursor) = 0;
  virtual void RecordDeadLetter(const DeadLetter& dead_letter) = 0;
  virtual void PurgeDeadLetter(std::string_view delivery_id) = 0;
};

}  // namespace holdfast
