#include "recovery/replayer.h"

#include <algorithm>
#include <cstddef>

#include "journal/base/check.h"

namespace holdfast {
namespace {

// What stands behind the cut in one file that was read whole.
void CountBehind(const TracedSegment& segment, uint64_t cut, ReplayOutcome& outcome) {
  const uint64_t stamped_end = std::min(segment.trace.stamped_end, segment.end);
  if (stamped_end > cut) outcome.torn_bytes += stamped_end - cut;
  for (const SegmentTrace::Group& group : segment.trace.groups) {
    if (group.offset > cut && group.offset < segment.end) ++outcome.ignored_groups;
  }
}

void CountTornTail(const StoreLayout& layout, const Evidence& evidence, ReplayOutcome& outcome) {
  for (const TracedSegment& segment : evidence.traced) {
    if (segment.id < outcome.cut.segment) continue;
    const bool here = segment.id == outcome.cut.segment;
    CountBehind(segment, here ? outcome.cut.offset : kSegmentHeaderBytes, outcome);
  }
  const SegmentFile& newest = layout.newest();
  const bool shortened = newest.file_bytes < newest.segment_bytes;
  outcome.unproven_tail = !outcome.clean && (outcome.last > outcome.proved || shortened ||
                                             outcome.torn_bytes > 0 || outcome.ignored_groups > 0);
}

// Where in the chain a replay behind `from` begins; chain.size() if nowhere.
size_t ReplayBegin(const std::vector<ChainSegment>& chain, Lsn from) {
  if (!from) return 0;
  size_t begin = chain.size();
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i].link.previous_last_lsn <= from) begin = i;
  }
  return begin;
}

// The name of the checkpoint that alone says that the records that are missing were there.
Status NameCheckpoint(const StoreLayout& layout, const Evidence& evidence, ChainDamage& damage,
                      const Status& status) {
  TailEvidence others = evidence.tail;
  others.checkpoint = Lsn();
  const CheckpointFile* file = NewestThrough(layout);
  if (file == nullptr || damage.first > evidence.tail.checkpoint ||
      damage.first <= Horizon(others)) {
    return status;
  }
  damage.reason = fmt::format("{} ({} is ahead: it holds up to LSN {})", damage.reason,
                              file->name(), file->footer.through);
  return Annotate(status, fmt::format("{} is ahead of the journal: it holds up to LSN {}",
                                      file->name(), file->footer.through));
}

void TakeBatch(const JournalReader& reader, bool held, ReplayOutcome& outcome) {
  const BatchHeader& header = reader.batch().header;
  if (!held) {
    outcome.records += header.records;
    outcome.record_bytes += AlignUp(header.length, kBatchAlignment);
  }
  if (header.last_lsn() <= outcome.proved) {
    outcome.proved_end = reader.behind();
    outcome.proved_last = header.last_lsn();
    return;
  }
  if (!outcome.doubt_first) outcome.doubt_first = header.first_lsn;
  outcome.doubt_bytes += AlignUp(header.length, kBatchAlignment);
  outcome.doubt_records += header.records;
}

// Tells how far a replay has come.
class ProgressMeter {
 public:
  // Both borrowed.
  ProgressMeter(const ProgressCallback& callback, const std::vector<ChainSegment>& chain)
      : callback_(callback) {
    for (const ChainSegment& segment : chain) total_ += segment.end;
  }
  void Tell(uint64_t bytes, uint64_t records) {
    if (!callback_ || bytes < next_) return;
    next_ = bytes + kEachBytes;
    callback_({.bytes_done = bytes, .bytes_total = std::max(bytes, total_), .records = records});
  }

 private:
  static constexpr uint64_t kEachBytes = uint64_t{4} << 20;
  const ProgressCallback& callback_;
  uint64_t total_ = 0;
  uint64_t next_ = 0;
};

}  // namespace

StatusOr<ReplayOutcome> Replay(Storage& storage, const StoreLayout& layout,
                               const Evidence& evidence, const StateMachines& machines,
                               const ReplayOptions& options, std::optional<ChainDamage>* damage) {
  const ReplayScope scope = options.scope;
  const Lsn from = options.from;
  CHECK(CanReplayFrom(evidence, from));
  const std::vector<ChainSegment> chain(
      evidence.chain.begin() + static_cast<ptrdiff_t>(ReplayBegin(evidence.chain, from)),
      evidence.chain.end());
  ReplayOutcome outcome;
  outcome.proved = evidence.proved();
  outcome.proved_last = chain.front().link.previous_last_lsn;
  outcome.begin = chain.front().id;
  ProgressMeter meter(options.progress, chain);
  JournalReader reader(storage, chain, evidence.rules);
  for (;;) {
    meter.Tell(reader.bytes_read(), outcome.records);
    const StatusOr<bool> more = reader.Next();
    if (!more.ok()) {
      std::optional<ChainDamage> found = reader.damage();
      const Status named = found.has_value()
                               ? NameCheckpoint(layout, evidence, *found, more.status())
                               : more.status();
      if (damage != nullptr) *damage = found;
      return named;
    }
    if (!*more) break;
    const bool held = reader.batch().header.last_lsn() <= from;
    TakeBatch(reader, held, outcome);
    if (held) continue;
    const bool apply =
        scope == ReplayScope::kAll || (scope == ReplayScope::kProved && outcome.doubt_records == 0);
    const StatusOr<uint64_t> skipped =
        ApplyBatch(reader.batch(), reader.ref(), apply ? &machines : nullptr);
    if (!skipped.ok()) {
      if (damage != nullptr && skipped.status().code() == StatusCode::kDataLoss) {
        const BatchHeader& header = reader.batch().header;
        *damage = ChainDamage{.place = {SegmentId(reader.ref().segment), reader.ref().offset},
                              .first = header.first_lsn,
                              .last = header.last_lsn(),
                              .reason = std::string(Message(skipped.status()))};
      }
      return skipped.status();
    }
    if (*skipped > 0 && !outcome.skipped_in) {
      outcome.skipped_in = SegmentId(reader.ref().segment);
    }
    outcome.skipped_records += *skipped;
  }
  outcome.clean = reader.verdict() == Verdict::kEndClean;
  outcome.last = reader.last_lsn();
  outcome.next = reader.next_lsn();
  outcome.cut = reader.cut();
  outcome.bytes = reader.bytes_read() + evidence.bytes_read;
  CountTornTail(layout, evidence, outcome);
  return outcome;
}

bool CanReplayFrom(const Evidence& evidence, Lsn from) {
  return ReplayBegin(evidence.chain, from) < evidence.chain.size();
}

Status ReadDoubt(Storage& storage, const Evidence& evidence, const ReplayOutcome& outcome,
                 const BatchSink& sink) {
  if (!outcome.doubt_first) return absl::OkStatus();
  // From the segment in which it begins; what is proved there is read over.
  const SegmentId begin = outcome.proved_end.segment ? outcome.proved_end.segment : outcome.begin;
  std::vector<ChainSegment> chain;
  for (const ChainSegment& segment : evidence.chain) {
    if (segment.id >= begin) chain.push_back(segment);
  }
  JournalReader reader(storage, chain, evidence.rules);
  while (reader.last_lsn() < outcome.last) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) {
      return Unavailable(Detail::kIo,
                         "{}: ends at LSN {}, but LSN {} was there when it was read before",
                         SegmentFileName(reader.cut().segment), reader.last_lsn(), outcome.last);
    }
    if (reader.batch().header.first_lsn >= outcome.doubt_first) {
      RETURN_IF_ERROR(sink(reader.batch()));
    }
  }
  return absl::OkStatus();
}

StatusOr<uint64_t> ApplyBatch(const BatchView& batch, const RecordRef& ref,
                              const StateMachines* machines) {
  uint64_t skipped = 0;
  ByteView rest = batch.records;
  for (uint64_t index = 0; index < batch.header.records; ++index) {
    const Lsn lsn = batch.header.first_lsn + index;
    const auto place = [&] {
      return fmt::format("journal segment {} offset {}, LSN {}", ref.segment, ref.offset, lsn);
    };
    const StatusOr<RawRecord> raw = TakeRecord(rest);
    if (!raw.ok()) return Annotate(raw.status(), place());
    const Status checked = CheckRecord(*raw);
    if (checked.ok()) {
      if (machines != nullptr &&
          machines->For(static_cast<RecordType>(raw->header.type)) != nullptr) {
        machines->Apply(*raw, lsn, ref);
      }
    } else if (checked.code() != StatusCode::kUnimplemented) {
      return Annotate(checked, place());
    } else if (raw->header.may_skip()) {
      ++skipped;
    } else {
      return WrongState(
          Detail::kNewerFormat,
          "{}: record type {} version {} must not be skipped, and this program does not "
          "know it; open the store with the version that wrote it",
          place(), raw->header.type, raw->header.version);
    }
  }
  if (!rest.empty()) {
    return DataLoss("journal segment {} offset {}, LSN {}: {} bytes behind its last record",
                    ref.segment, ref.offset, batch.header.last_lsn(), rest.size());
  }
  return skipped;
}

RecoveryReport ReportOf(const StoreLayout& layout, const ReplayOutcome& outcome) {
  RecoveryReport report;
  report.clean = outcome.clean;
  report.unproven_tail = outcome.unproven_tail;
  report.segments = layout.chain_end - layout.chain_begin;
  report.records = outcome.records;
  report.skipped_records = outcome.skipped_records;
  report.bytes = outcome.bytes;
  report.torn_bytes = outcome.torn_bytes;
  report.ignored_groups = outcome.ignored_groups;
  report.last_lsn = outcome.last.value();
  return report;
}

}  // namespace holdfast
