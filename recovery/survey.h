// Survey: reads every byte of a store, in the chain or not, and tells a visitor what stands there.
// It goes on behind damage, so that one look names all of it. The eyes of verify, dump, inspect and
// repair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "holdfast/engine.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/record_ref.h"
#include "journal/format/records.h"
#include "journal/format/segment_header.h"
#include "journal/io/storage.h"
#include "journal/mark.h"

namespace holdfast {

enum class SegmentState {
  kChain,       // its records are the store, up to SegmentSurvey::end
  kDead,        // has a Link, but the chain passes it by: left behind by a cut
  kVoid,        // made ahead of need, never used: no Link
  kRetired,     // older than the oldest that is needed; the next open removes it
  kSpare,       // "spare-*": not a part of the store
  kQuarantine,  // set aside by a repair
  kBad,         // named like a segment, with neither a valid header nor a valid Link: damage
};
// "chain", "dead", ...
const char* SegmentStateName(SegmentState state);

struct SegmentSurvey {
  std::string name;  // of the file, "journal/…"
  SegmentId id;      // none for spare and quarantine files
  SegmentState state = SegmentState::kBad;
  bool newest = false;
  uint64_t file_bytes = 0;
  uint64_t segment_bytes = 0;  // by its header; 0 if that is bad
  // Where the records that count end: recorded by the successor's Link, or found in the newest. A
  // multiple of 8. 0 outside the chain.
  uint64_t end = 0;
  uint64_t life = 0;                    // stamp; 0 if unknown
  std::optional<SegmentHeader> header;  // none: it fails its check
  std::optional<Link> link;             // none: not valid
};

struct SurveyedRecord {
  Lsn lsn;
  RecordRef ref;       // of its batch
  uint32_t epoch = 0;  // of the boot that appended it
  uint32_t index = 0;  // in its batch
  uint32_t batch_records = 0;
  // False: it stands in a dead or void segment, behind the end, or behind damage where the order of
  // LSNs is broken. Its bytes pass every check, but the store does not hold it.
  bool live = true;
  RawRecord raw;  // borrowed for the call
};

// One batch whose bytes pass their checks, as it stands.
struct SurveyedBatch {
  RecordRef ref;
  Lsn first_lsn, last_lsn;
  uint32_t epoch = 0;
  bool live = true;   // as in SurveyedRecord
  bool sound = true;  // every record in it decodes, or is of a type that is not known
  ByteView records;   // borrowed for the call
};

struct Damage {
  std::string file;   // "MARK", "journal/…"
  SegmentId segment;  // none for MARK
  uint64_t offset = 0;
  // From `offset` to where healthy data resumes, or to the end of what should be there.
  uint64_t bytes = 0;
  Lsn first_lsn, last_lsn;  // what is lost; none where nothing says so
  std::string reason;
  // False: the store opens all the same (non-zero padding, a redundant header).
  bool refuses_open = true;
};

// Bytes behind the end that were written and never confirmed: normal after a kill or a power cut.
struct TornTail {
  SegmentId segment;
  uint64_t offset = 0;  // of the cut
  uint64_t bytes = 0;
  Lsn next_lsn;  // the first that is not there
};

// One checkpoint file.
struct CheckpointSurvey {
  std::string name;  // "checkpoint/…"
  Lsn from, through;  // replay begins behind `from`; no entry is newer than `through`
  uint64_t bytes = 0;
  uint64_t entries = 0;  // about
  std::string fault;     // why it is of no use; empty: it passes its checks
};

// All calls come in the order of the files, and inside a segment in the order of offsets: OnMark,
// then OnCheckpoint for each, then for each file OnSegment, followed by its OnRecord and OnBatch,
// and then its OnDamage.
class SurveyVisitor {
 public:
  virtual ~SurveyVisitor() = default;
  virtual void OnMark(const MarkView& mark) { (void)mark; }
  virtual void OnCheckpoint(const CheckpointSurvey& checkpoint) { (void)checkpoint; }
  virtual void OnSegment(const SegmentSurvey& segment) { (void)segment; }
  virtual void OnRecord(const SurveyedRecord& record) { (void)record; }
  // After its records.
  virtual void OnBatch(const SurveyedBatch& batch) { (void)batch; }
  virtual void OnDamage(const Damage& damage) { (void)damage; }
};

enum class SurveyVerdict {
  kClean,     // nothing torn, nothing damaged (the last writer may have been killed all the same)
  kTornTail,  // opens; the end is cut
  kDamage,
};

struct SurveyReport {
  SurveyVerdict verdict = SurveyVerdict::kDamage;
  // What an open would say: OK, kDataLoss (the first damage that refuses it), or
  // kFailedPrecondition kNewerFormat (a record that this program does not know and must not skip).
  Status open_status;
  RecoveryReport recovery;  // meaningful if open_status is OK; counts per store are not filled
  std::optional<TornTail> torn;
  // One of MARK's two slots fails its check, the other is used: a power cut inside a statement, or
  // damage. Counts as a torn tail; the next open writes both.
  bool mark_slot_bad = false;
  uint64_t damages = 0;
  uint64_t records = 0;       // live
  uint64_t dead_records = 0;  // not live
  uint64_t bytes = 0;         // read
  Lsn last_lsn;               // newest live record
  Lsn proved_lsn;             // up to here the disk proves what was confirmed
  Lsn horizon_lsn;            // up to here everything must be there
  SegmentId oldest, newest;
  Epoch epoch;  // highest in MARK and Links
  absl::Duration engine_time;
};

struct SurveyOptions {
  bool records = true;  // false: headers and Links only; nothing is read beyond, no record is told
  bool dead_records = false;  // tell records that are not live too
};

// Locks nothing, writes nothing; beside a live writer bytes beyond the newest mark are its live
// tail. Takes memory for one group, and 8 bytes per group of the two newest segments. Damage is not
// an error: it is in the report.
// Errors: kNotFound            no store here
//         kFailedPrecondition  kNewerFormat, kForeign
//         kUnavailable         a read failed, or a writer that restarted took files away meanwhile
StatusOr<SurveyReport> Survey(Storage& storage, SurveyVisitor& visitor,
                              const SurveyOptions& options);

}  // namespace holdfast
