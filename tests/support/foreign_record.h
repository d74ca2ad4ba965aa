// A record that only a later version knows, put into a store as that version would.
#pragma once

#include <string>

#include "journal/base/seeded_rng.h"
#include "journal/format/codec.h"
#include "journal/format/records.h"
#include "recovery/opener.h"
#include "stores/local_stores.h"
#include "tests/support/group_builder.h"

namespace holdfast {

inline constexpr uint8_t kForeignType = 200;

// Type 200, version 1, with those flags.
inline std::string ForeignRecord(uint16_t flags, std::string_view fields = "of a later version") {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.Fixed(kForeignType);
  encoder.Fixed(uint8_t{1});
  encoder.Fixed(flags);
  encoder.Fixed(static_cast<uint32_t>(fields.size()));
  return bytes.append(fields);
}

// Opens the store, appends the record as a batch of its own, and stops cleanly. Returns its
// segment.
inline StatusOr<SegmentId> AppendForeignRecord(Storage& storage, uint16_t flags,
                                               uint64_t segment_bytes) {
  Mutex sequencer;
  SeededRng rng(11);
  LocalStores stores(sequencer, rng, {});
  ASSIGN_OR_RETURN(
      OpenedStore opened,
      OpenStore(storage, RealClock(), rng, {.segment_bytes = segment_bytes}, stores.machines()));
  JournalStart& start = opened.start;
  const Segment& active = start.active;
  GroupBuilder group(active.life(), start.end, start.next);
  group.Add(ForeignRecord(flags), 1);
  const std::vector<std::byte> bytes = group.Build(start.last, start.last);
  RETURN_IF_ERROR(active.file->WriteAt(start.end, bytes));
  RETURN_IF_ERROR(active.file->SyncData());
  RETURN_IF_ERROR(start.mark->Write({.store_id = start.identity.store_id,
                                     .salt = start.identity.salt,
                                     .epoch = start.identity.epoch,
                                     .synced = start.next,
                                     .end_segment = active.header.segment,
                                     .end_offset = start.end + bytes.size(),
                                     .newest = active.header.segment,
                                     .oldest = start.oldest,
                                     .clean = true,
                                     .engine_ns = absl::ToInt64Nanoseconds(start.engine_time)}));
  return active.header.segment;
}

}  // namespace holdfast
