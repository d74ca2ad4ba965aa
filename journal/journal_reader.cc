#include "journal/journal_reader.h"

#include <utility>

#include "journal/base/check.h"

namespace holdfast {

JournalReader::JournalReader(Storage& storage, const std::vector<ChainSegment>& chain,
                             const ReadRules& rules)
    : storage_(storage), chain_(chain), rules_(rules) {
  CHECK(!chain_.empty());
  const Link& link = chain_.front().link;
  behind_ = link.previous ? JournalPlace{link.previous, link.previous_end}
                          : JournalPlace{chain_.front().id, 0};
  last_lsn_ = link.previous_last_lsn;
}

StatusOr<bool> JournalReader::Next() {
  if (ended_) return false;
  for (;;) {
    if (!entered_) RETURN_IF_ERROR(EnterSegment());
    if (!newest() && here_.offset >= segment().end) {
      RETURN_IF_ERROR(LeaveSegment());
      continue;
    }
    if (!cursor_.has_value()) {
      ASSIGN_OR_RETURN(const Found found, EnterGroup());
      return Conclude(found);
    }
    switch (cursor_->Next()) {
      case BatchCursor::Step::kBatch:
        return Conclude(batch().header.first_lsn == next_lsn_ ? Found::kExpected
                                                              : Found::kOtherLsn);
      case BatchCursor::Step::kEnd:
        here_.offset = group_end_;
        break;
      case BatchCursor::Step::kBad:
        if (!headerless_) {
          here_.offset = cursor_->bad_offset();
          return Conclude(Found::kStampedBad);
        }
        // Nobody says how long this group is, but the next one starts at a block boundary.
        here_.offset = AlignUp(here_.offset, kBlockBytes);
        break;
    }
    cursor_.reset();
  }
}

RecordRef JournalReader::ref() const {
  return {.segment = static_cast<uint32_t>(segment().id.value()),
          .offset = static_cast<uint32_t>(batch().offset),
          .length = batch().header.length};
}

Status JournalReader::EnterSegment() {
  const ChainSegment& segment = this->segment();
  File* file = segment.file;
  if (file == nullptr) {
    ASSIGN_OR_RETURN(owned_, storage_.OpenFile(SegmentFileName(segment.id), OpenMode::kReadOnly,
                                               {.direct = true}));
    file = owned_.get();
  }
  RETURN_IF_ERROR(window_.Open(*file));
  entered_ = true;
  here_ = {segment.id, kFirstGroupOffset};
  const Link& link = segment.link;
  next_lsn_ = last_lsn_ + 1;
  if (link.first <= last_lsn_) {
    here_.offset = kSegmentHeaderBytes;
    return Damaged(Lsn(), fmt::format("its Link goes on with LSN {}", link.first));
  }
  next_lsn_ = link.first == link.through + 1 ? link.next : link.first;
  return absl::OkStatus();
}

Status JournalReader::LeaveSegment() {
  const Link& link = chain_[index_ + 1].link;
  if (link.previous_last_lsn != last_lsn_) {
    return Damaged(link.previous_last_lsn,
                   fmt::format("ends with LSN {}, the Link of segment {} says {}", last_lsn_,
                               chain_[index_ + 1].id, link.previous_last_lsn));
  }
  cursor_.reset();
  window_.Close();  // before its file
  owned_.reset();
  ++index_;
  entered_ = false;
  return absl::OkStatus();
}

StatusOr<Found> JournalReader::EnterGroup() {
  ASSIGN_OR_RETURN(const GroupOnDisk group, ReadGroup(window_, segment().life, here_.offset,
                                                      segment().segment_bytes, next_lsn_));
  if (!group.readable) {
    return group.shape == Shape::kNoStamp ? Found::kNoStamp : Found::kStampedBad;
  }
  headerless_ = group.headerless;
  group_end_ = here_.offset + group.header.length;
  cursor_.emplace(group.bytes, group.header, segment().life, here_.offset);
  if (cursor_->Next() != BatchCursor::Step::kBatch) return Found::kStampedBad;
  return batch().header.first_lsn == next_lsn_ ? Found::kExpected : Found::kOtherLsn;
}

StatusOr<bool> JournalReader::Conclude(Found found) {
  const Verdict verdict = Judge(FactsHere(found));
  switch (verdict) {
    case Verdict::kTaken:
      return Take();
    case Verdict::kMixedCopies:
      return Damaged(found == Found::kExpected ? batch().header.last_lsn() : Lsn(),
                     fmt::format("mixed copies: MARK says that the store was closed at segment {} "
                                 "offset {}, but the journal goes on{}",
                                 rules_.mark_end.segment, rules_.mark_end.offset,
                                 found == Found::kExpected     ? ""
                                 : found == Found::kStampedBad ? ", and fails its check"
                                                               : " behind a hole"));
    case Verdict::kDamage:
      return BadHere(found);
    default:
      verdict_ = verdict;
      ended_ = true;
      cursor_.reset();
      return false;
  }
}

StatusOr<bool> JournalReader::Take() {
  const BatchHeader& header = batch().header;
  const uint64_t end = AlignUp(batch().offset + header.length, kBatchAlignment);
  if (!newest() && end > segment().end) {
    return Damaged(header.last_lsn(), fmt::format("a batch crosses the end at {} that the Link of "
                                                  "segment {} recorded",
                                                  segment().end, chain_[index_ + 1].id));
  }
  const Lsn through = segment().link.through;
  if (header.first_lsn <= through && through < header.last_lsn()) {
    return Damaged(header.last_lsn(),
                   fmt::format("a batch crosses LSN {}, the last that was copied", through));
  }
  last_lsn_ = header.last_lsn();
  next_lsn_ = last_lsn_ == through ? segment().link.next : last_lsn_ + 1;
  here_ = behind_ = {segment().id, end};
  return true;
}

PlaceFacts JournalReader::FactsHere(Found found) const {
  PlaceFacts facts;
  facts.found = found;
  facts.proved = next_lsn_ <= rules_.horizon;
  // In an older segment the Link of its successor is such a group.
  facts.valid_behind = !newest() || segment().last_group > here_.offset;
  facts.mark_clean = rules_.mark_clean;
  facts.against_mark = rules_.mark_end < behind_ ? AgainstMark::kBeyond
                       : here_ < rules_.mark_end ? AgainstMark::kBefore
                                                 : AgainstMark::kAt;
  return facts;
}

Status JournalReader::BadHere(Found found) {
  switch (found) {
    case Found::kOtherLsn:
      return Damaged(Lsn(), fmt::format("LSN {} stands there", batch().header.first_lsn));
    case Found::kNoStamp:
      return Damaged(rules_.horizon,
                     fmt::format("nothing is written there, but LSN {} was", rules_.horizon));
    default:
      break;
  }
  if (!cursor_.has_value())
    return Damaged(Lsn(), "a group header and what follows it fail their checks");
  const uint64_t bad_offset = cursor_->bad_offset();
  here_.offset = bad_offset;
  if (cursor_->Resync()) {
    return Damaged(
        batch().header.first_lsn - 1,
        fmt::format("a batch fails its check; healthy from offset {} on", batch().offset));
  }
  return Damaged(Lsn(), "a batch fails its check, and nothing behind it in its group passes");
}

Status JournalReader::Damaged(Lsn last, std::string reason) {
  ended_ = true;
  verdict_ = Verdict::kDamage;
  const Lsn first = next_lsn_;
  damage_ = ChainDamage{.place = here_, .first = first, .last = last, .reason = reason};
  const std::string range =
      last > first ? fmt::format("LSN {} to {}", first, last) : fmt::format("LSN {}", first);
  return DataLoss("{} offset {}, {}: {}", SegmentFileName(here_.segment), here_.offset, range,
                  reason);
}

}  // namespace holdfast
