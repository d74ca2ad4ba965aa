// Segment: one file of groups, from spare to active to sealed.
#pragma once

#include <memory>

#include "journal/base/status.h"
#include "journal/format/segment_header.h"
#include "journal/io/storage.h"

namespace holdfast {

inline constexpr char kJournalFolder[] = "journal";

// Identity that every segment of one boot shares.
struct StoreIdentity {
  StoreId store_id{};
  uint64_t salt = 0;
  Epoch epoch;
  std::string host_boot_id;
  uint64_t id_salt = 0;  // of the delivery ids of this boot
};

struct Segment {
  SegmentHeader header;
  std::unique_ptr<File> file;  // locked, O_DIRECT where possible
  Life life() const { return header.life_of(); }
};

// Makes an empty segment under the temporary name "journal/spare-<id>": zeros written once and
// synced, header written and synced, folder synced. PublishSegment gives it its name: until then it
// is nothing. Errors: kResourceExhausted  kDiskFull; the half-made file is removed
StatusOr<Segment> PrepareSegment(Storage& storage, const SegmentHeader& header);
// Renames it to SegmentFileName() (replacing a void file of that name) and syncs the folder.
Status PublishSegment(Storage& storage, const Segment& segment);

}  // namespace holdfast
