// StoreLayout: which files a store has and which of them count, from MARK, the segments' headers
// and their Links alone. The first thing that opening, reading, surveying and repairing do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "journal/base/status.h"
#include "journal/format/segment_header.h"
#include "journal/io/storage.h"
#include "journal/mark.h"
#include "journal/segment.h"
#include "recovery/checkpoint_file.h"
#include "recovery/survey.h"

namespace holdfast {

inline constexpr char kLockFile[] = "LOCK";
inline constexpr char kQuarantinePrefix[] = "quarantine-";

// The names in a directory, sorted by what they are.
struct StoreNames {
  bool mark = false;                    // there is a MARK file
  bool journal = false;                 // there is a journal folder
  std::vector<SegmentId> segments;      // ascending
  std::vector<std::string> spares;      // "journal/spare-…"
  std::vector<std::string> quarantine;  // set aside by a repair
  // Listed before the segments: what a checkpoint holds stands in a segment that is listed too.
  std::vector<Lsn> checkpoints;               // ascending, by their names
  std::vector<std::string> checkpoint_temps;  // "checkpoint/tmp-…": of captures that were cut short
  std::vector<std::string> strangers;   // nobody here made them
  bool store() const { return mark || !segments.empty(); }
};
StatusOr<StoreNames> ListStore(Storage& storage);

struct SegmentFile {
  SegmentId id;
  uint64_t file_bytes = 0;
  std::optional<SegmentHeader>
      header;                  // none: it fails its check, or names another segment or store
  std::string header_fault;    // why
  Life life;                   // stamp 0: unknown
  uint64_t segment_bytes = 0;  // by the header, or the most there can be
  std::optional<Link> link;    // if it is valid
  GroupHeader link_header;     // likewise
  SegmentState state = SegmentState::kBad;
  bool impostor =
      false;  // in the place of a chain segment, but not the file that its successor follows
  std::string name() const { return SegmentFileName(id); }
};

struct StoreLayout {
  StoreNames names;
  MarkView mark;
  StoreId store_id{};
  uint64_t salt = 0;
  std::vector<SegmentFile> segments;  // ascending; not the spare ones
  std::vector<CheckpointFile> checkpoints;  // ascending
  // [chain_begin, chain_end) of `segments` is the chain, without gaps unless `damages` says so.
  size_t chain_begin = 0, chain_end = 0;
  SegmentId oldest;  // that is needed
  Epoch epoch;       // highest in MARK, Links and headers; none: no boot was ever recorded
  // What refuses the open, in the order of the files.
  std::vector<Damage> damages;

  // Without damages every segment of the chain has its Link.
  bool has_chain() const { return chain_begin < chain_end; }
  const SegmentFile& newest() const { return segments[chain_end - 1]; }
  // Whether the same files with the same lives stand there: if not, somebody writes.
  bool SameAs(const StoreLayout& other) const;
  // Whether every segment of the chain of `before` is still there, in the same life.
  bool KeepsChainOf(const StoreLayout& before) const;
};

// Errors: kNotFound            nothing there: no store was ever begun
//         kDataLoss            nothing but checkpoints
//         kFailedPrecondition  kNewerFormat; kForeign: what is there is not ours
//         kUnavailable         a read failed
StatusOr<StoreLayout> ReadLayout(Storage& storage);

// Where the records of a chain segment end: recorded by its successor's Link, otherwise its size.
uint64_t RecordedEnd(const StoreLayout& layout, size_t index);

// A name for `name` in quarantine that is not taken yet.
std::string QuarantineName(const StoreNames& names, const std::string& name);
// Whether a repair began this chain: what is older than it goes to quarantine, it is not removed.
bool IsRestated(const StoreLayout& layout);

// The checkpoint that knows of most, by its footer; null: none is whole.
const CheckpointFile* NewestThrough(const StoreLayout& layout);

// As an open would refuse it.
Status DamageStatus(const Damage& damage);

}  // namespace holdfast
