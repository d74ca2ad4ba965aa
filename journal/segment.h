// Segment: one file of groups, from spare to active to sealed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "journal/base/status.h"
#include "journal/format/segment_header.h"
#include "journal/io/storage.h"

namespace holdfast {

inline constexpr char kJournalFolder[] = "journal";
inline constexpr char kSparePrefix[] = "spare-";

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
  std::string temporary_name;  // until it is published
  Life life() const { return header.life_of(); }
};

// Makes an empty segment under the temporary name "journal/spare-<id>.new": zeros written once and
// synced, header written and synced, folder synced. PublishSegment gives it its name: until then it
// is nothing.
// Errors: kResourceExhausted  kDiskFull; the half-made file is removed
StatusOr<Segment> PrepareSegment(Storage& storage, const SegmentHeader& header);
// The same from a whole file that is no segment any more, "journal/spare-<spare>": it needs no
// space and no zeros. What it held stays there; the stamp of the new life keeps it out (FORMAT.md
// §1). It must have been synced in its old life, and its temporary name must be durable.
// Errors: kResourceExhausted   kDiskFull, on a file system that copies on write; it is removed
//         kFailedPrecondition  kLocked: requests of its old life are in flight
//         kDataLoss            it has not the size that `header` says
StatusOr<Segment> RecycleSegment(Storage& storage, SegmentId spare, const SegmentHeader& header);
// Renames it to SegmentFileName() (replacing a void file of that name) and syncs the folder.
Status PublishSegment(Storage& storage, const Segment& segment);
// "journal/spare-<id>" of a whole file, and back (0 if the name is not one).
std::string SpareFileName(SegmentId segment);
SegmentId ParseSpareFileName(std::string_view name);

}  // namespace holdfast
