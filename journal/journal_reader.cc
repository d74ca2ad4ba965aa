#include "journal/journal_reader.h"

#include <algorithm>
#include <utility>

#include "journal/base/check.h"
#include "journal/format/codec.h"

namespace holdfast {

JournalReader::JournalReader(Storage& storage, const std::vector<ChainSegment>& chain,
                             const ReadRules& rules)
    : storage_(storage), chain_(chain), rules_(rules) {
  CHECK(!chain_.empty());
  behind_ = {chain_.front().id, 0};
  last_lsn_ = chain_.front().link.previous_last_lsn;
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
  owned_.reset();
  ++index_;
  entered_ = false;
  return absl::OkStatus();
}

StatusOr<Found> JournalReader::EnterGroup() {
  const uint64_t offset = here_.offset;
  const uint64_t room = segment().segment_bytes > offset ? segment().segment_bytes - offset : 0;
  if (room < kBlockBytes) return Found::kNoStamp;
  ASSIGN_OR_RETURN(const ByteView block, window_.At(offset, kBlockBytes));
  const GroupView view = ReadGroupHeader(block, segment().life, offset, room);
  if (view.shape == Shape::kValid && !view.header.is_link()) {
    ASSIGN_OR_RETURN(const ByteView group, window_.At(offset, view.header.length));
    headerless_ = false;
    group_end_ = offset + view.header.length;
    cursor_.emplace(group, view.header, segment().life, offset);
    return FirstOfGroup();
  }
  ASSIGN_OR_RETURN(const bool readable, EnterHeaderlessGroup(block, room));
  if (readable) return FirstOfGroup();
  cursor_.reset();
  return view.shape == Shape::kNoStamp ? Found::kNoStamp : Found::kStampedBad;
}

Found JournalReader::FirstOfGroup() {
  if (cursor_->Next() != BatchCursor::Step::kBatch) return Found::kStampedBad;
  return batch().header.first_lsn == next_lsn_ ? Found::kExpected : Found::kOtherLsn;
}

// True: cursor_ stands before a valid batch.
StatusOr<bool> JournalReader::EnterHeaderlessGroup(ByteView block, uint64_t room) {
  if (block.size() < kGroupHeaderBytes + kBatchHeaderBytes) return false;
  const uint64_t offset = here_.offset;
  const GroupHeader header = BatchCursor::HeaderFor(next_lsn_, room);
  const auto starts_with_batch = [&](ByteView bytes) {
    return BatchCursor(bytes, header, segment().life, offset).Next() == BatchCursor::Step::kBatch;
  };
  // A large batch is read only if its length can be true: at the end of a segment that was used
  // before this would otherwise cost a group's worth of reading for nothing.
  const uint64_t claimed =
      kGroupHeaderBytes + Decoder(block.subspan(kGroupHeaderBytes)).Fixed<uint32_t>();
  if (claimed > std::min(room, kGroupBytesMax)) return false;
  ASSIGN_OR_RETURN(const ByteView first, window_.At(offset, std::max(claimed, kBlockBytes)));
  if (!starts_with_batch(first)) return false;
  ASSIGN_OR_RETURN(const ByteView group, window_.At(offset, std::min(room, kGroupBytesMax)));
  headerless_ = true;
  cursor_.emplace(group, header, segment().life, offset);
  return true;
}

StatusOr<bool> JournalReader::Conclude(Found found) {
  const Verdict verdict = Judge(FactsHere(found));
  switch (verdict) {
    case Verdict::kTaken:
      return Take();
    case Verdict::kMixedCopies:
      return Damaged(batch().header.last_lsn(),
                     fmt::format("mixed copies: MARK says that the store was closed at segment {} "
                                 "offset {}, but the journal goes on",
                                 rules_.mark_end.segment, rules_.mark_end.offset));
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
