// Limits: what the local stores refuse before anything is written, the same for every backend.
#pragma once

#include <cstdint>
#include <string_view>

#include "holdfast/transaction.h"
#include "journal/base/status.h"

namespace holdfast {

inline constexpr size_t kNameBytesMax = 65'535;
inline constexpr uint64_t kOffsetMax = (uint64_t{1} << 63) - 2;
inline constexpr size_t kChangesMax = 65'535;  // of one transaction

struct StoreLimits {
  uint64_t event_bytes_max = uint64_t{16} << 20;
  uint64_t compress_event_bytes_min = 4096;  // 0: never
  uint64_t batch_bytes_max = uint64_t{16} << 20;
};

// At most kNameBytesMax; an id is not empty either.
// Errors: kInvalidArgument
Status LongName(std::string_view what, std::string_view name);  // what CheckName says of one
inline Status CheckName(std::string_view what, std::string_view name) {
  return name.size() <= kNameBytesMax ? absl::OkStatus() : LongName(what, name);
}
Status CheckId(std::string_view what, std::string_view id);

// Each says which field is out of bounds.
// Errors: kInvalidArgument    an empty id, a long name, a high offset
//         kResourceExhausted  kLimit: the event is too large
Status CheckDelivery(const Delivery& delivery, const StoreLimits& limits);
Status CheckReschedule(const Reschedule& reschedule);
Status CheckRemoval(const Removal& removal);
Status CheckDeadLetter(const DeadLetter& dead_letter, const StoreLimits& limits);
Status CheckDeliveryId(std::string_view id);
// The new id of a redrive.
Status CheckRedrive(std::string_view delivery_id, const DeadLetterStore::RedriveAs& as);
Status CheckOffsetKey(const OffsetKey& key);
Status CheckOffset(std::string_view what, uint64_t offset);
Status CheckSource(const SourceKey& key);

}  // namespace holdfast
