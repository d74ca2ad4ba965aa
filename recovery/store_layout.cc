#include "recovery/store_layout.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include "journal/format/codec.h"
#include "journal/io/aligned_buffer.h"
#include "journal/segment.h"

namespace holdfast {
namespace {

// Names at the top that are ours, or that a file system makes by itself in the root of a volume.
constexpr std::string_view kKnownNames[] = {kLockFile, "lost+found"};

Damage SegmentDamage(const SegmentFile& file, std::string reason) {
  return {.file = file.name(),
          .segment = file.id,
          .bytes = file.file_bytes,
          .reason = std::move(reason)};
}

// The header, if it is this file's; otherwise why not.
Status JudgeHeader(const StoreLayout& layout, ByteView block, SegmentFile& file) {
  StatusOr<SegmentHeader> header = DecodeSegmentHeader(block);
  if (!header.ok()) {
    if (DetailOf(header.status()) == Detail::kNewerFormat) {
      return Annotate(header.status(), file.name());
    }
    file.header_fault = Message(header.status());
  } else if (header->segment != file.id) {
    file.header_fault = fmt::format("its header names segment {}", header->segment);
  } else if (header->store_id != layout.store_id || header->salt != layout.salt) {
    file.header_fault = "it belongs to another store";
  } else {
    file.header = *header;
  }
  return absl::OkStatus();
}

// What the first two blocks say. Only those are read: a store may have thousands of segments.
Status JudgeHead(const StoreLayout& layout, ByteView head, SegmentFile& file) {
  const ByteView block = head.first(std::min<size_t>(head.size(), kSegmentHeaderBytes));
  const ByteView link_block = head.subspan(block.size());
  RETURN_IF_ERROR(JudgeHeader(layout, block, file));
  if (file.header.has_value()) {
    file.life = file.header->life_of();
    file.segment_bytes = file.header->segment_bytes;
  } else {
    // The Link bears the same stamp, and proves it by its check.
    file.life = {.salt = layout.salt,
                 .segment = static_cast<uint32_t>(file.id.value()),
                 .stamp = Decoder(link_block).Fixed<uint64_t>()};
    file.segment_bytes =
        std::clamp(AlignUp(file.file_bytes, kBlockBytes), kSegmentBytesMin, kSegmentBytesMax);
  }
  LinkView view = DecodeLinkGroup(link_block, file.life);
  if (view.shape == Shape::kValid) {
    file.link = std::move(view.link);
    file.link_header = view.header;
  } else if (!file.header.has_value()) {
    file.life.stamp = 0;
  }
  return absl::OkStatus();
}

StatusOr<ByteView> ReadHead(Storage& storage, AlignedBuffer& buffer, SegmentFile& file) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> handle,
                   storage.OpenFile(file.name(), OpenMode::kReadOnly, {.direct = true}));
  ASSIGN_OR_RETURN(file.file_bytes, handle->Size());
  ASSIGN_OR_RETURN(const size_t got, handle->ReadAt(0, buffer.span()));
  return buffer.view().first(got);
}

// The store's identity: MARK says it; without a MARK the first segment whose header passes.
void TakeIdentity(StoreLayout& layout, ByteView head) {
  if (layout.salt != 0) return;
  const auto header =
      DecodeSegmentHeader(head.first(std::min<size_t>(head.size(), kSegmentHeaderBytes)));
  if (!header.ok()) return;
  layout.store_id = header->store_id;
  layout.salt = header->salt;
}

Status ReadHeads(Storage& storage, StoreLayout& layout) {
  AlignedBuffer buffer(kFirstGroupOffset);
  for (const SegmentId id : layout.names.segments) {
    SegmentFile file{.id = id};
    ASSIGN_OR_RETURN(const ByteView head, ReadHead(storage, buffer, file));
    TakeIdentity(layout, head);
    RETURN_IF_ERROR(JudgeHead(layout, head, file));
    if (file.header.has_value()) layout.epoch = std::max(layout.epoch, file.header->epoch);
    if (file.link.has_value()) layout.epoch = std::max(layout.epoch, file.link->epoch);
    layout.segments.push_back(std::move(file));
  }
  return absl::OkStatus();
}

// The index of the valid Link with the highest (epoch, segment); size() if none is valid.
size_t NewestLink(const std::vector<SegmentFile>& segments) {
  size_t newest = segments.size();
  for (size_t i = 0; i < segments.size(); ++i) {
    if (!segments[i].link.has_value()) continue;
    if (newest == segments.size() || segments[i].link->epoch >= segments[newest].link->epoch) {
      newest = i;
    }
  }
  return newest;
}

// The chain goes back from the newest Link. Segments behind it that MARK knows of belong to it too:
// their Links fail, which is damage.
void FindChain(StoreLayout& layout) {
  auto& segments = layout.segments;
  if (segments.empty()) return;
  const size_t newest = NewestLink(segments);
  const bool linked = newest < segments.size();
  const std::optional<Mark>& mark = layout.mark.mark;
  layout.oldest = linked ? segments[newest].link->oldest : SegmentId();
  if (mark.has_value()) layout.oldest = std::max(layout.oldest, mark->oldest);

  const auto first_at = [&](SegmentId id) {
    return static_cast<size_t>(std::lower_bound(segments.begin(), segments.end(), id,
                                                [](const SegmentFile& file, SegmentId wanted) {
                                                  return file.id < wanted;
                                                }) -
                               segments.begin());
  };
  layout.chain_begin = linked ? std::min(newest, first_at(layout.oldest)) : first_at(layout.oldest);
  layout.chain_end = linked ? newest + 1 : layout.chain_begin;
  SegmentId known = linked ? segments[newest].id : segments.back().id;
  if (mark.has_value()) known = mark->end_segment;
  while (layout.chain_end < segments.size() && segments[layout.chain_end].id <= known &&
         segments[layout.chain_end].header.has_value()) {
    ++layout.chain_end;
  }
  // Where both of its own blocks fail, the Link behind it still tells a segment's life.
  for (size_t i = layout.chain_begin; i + 1 < layout.chain_end; ++i) {
    const std::optional<Link>& behind = segments[i + 1].link;
    if (segments[i].life.stamp == 0 && behind.has_value() && behind->previous == segments[i].id) {
      segments[i].life.stamp = behind->previous_life;
    }
  }
}

SegmentState StateOf(const StoreLayout& layout, size_t index) {
  const SegmentFile& file = layout.segments[index];
  if (index >= layout.chain_begin && index < layout.chain_end) return SegmentState::kChain;
  if (!file.header.has_value() && !file.link.has_value()) return SegmentState::kBad;
  if (index < layout.chain_begin) return SegmentState::kRetired;
  return file.link.has_value() ? SegmentState::kDead : SegmentState::kVoid;
}

// Whether another file stands where the Link behind it wants one.
bool IsImpostor(const StoreLayout& layout, size_t index) {
  if (index + 1 >= layout.chain_end) return false;
  const SegmentFile& file = layout.segments[index];
  const SegmentFile& successor = layout.segments[index + 1];
  if (successor.id != file.id + 1 || !successor.link.has_value()) return false;
  return successor.link->previous != file.id || successor.link->previous_life != file.life.stamp;
}

std::optional<Damage> DamageInChain(const SegmentFile& file) {
  if (file.impostor) {
    return SegmentDamage(file,
                         fmt::format("it is not the file that segment {} follows, but an older "
                                     "or a foreign copy",
                                     file.id + 1));
  }
  if (file.link.has_value()) return std::nullopt;
  if (file.header.has_value()) return SegmentDamage(file, "its Link fails its check");
  return SegmentDamage(file, fmt::format("its Link fails its check, and so does its header ({})",
                                         file.header_fault));
}

void FindSegmentDamage(StoreLayout& layout) {
  SegmentId expected = layout.oldest;
  for (size_t i = 0; i < layout.segments.size(); ++i) {
    SegmentFile& file = layout.segments[i];
    file.state = StateOf(layout, i);
    if (file.state == SegmentState::kBad) {
      layout.damages.push_back(
          SegmentDamage(file, fmt::format("not a segment: {}", file.header_fault)));
    }
    if (file.state != SegmentState::kChain) continue;
    for (; expected < file.id; expected = expected + 1) {
      layout.damages.push_back({.file = SegmentFileName(expected),
                                .segment = expected,
                                .reason = "the file is missing"});
    }
    expected = file.id + 1;
    file.impostor = IsImpostor(layout, i);
    if (std::optional<Damage> damage = DamageInChain(file); damage.has_value()) {
      layout.damages.push_back(*std::move(damage));
    }
  }
}

std::optional<Damage> MarkDamage(const StoreLayout& layout) {
  const std::optional<Mark>& mark = layout.mark.mark;
  const auto damaged = [](std::string reason) {
    return Damage{.file = kMarkFile, .reason = std::move(reason)};
  };
  if (!mark.has_value()) {
    if (layout.segments.empty()) return std::nullopt;
    return damaged(layout.names.mark ? "no slot passes its check, but there are segments"
                                     : "the file is missing, but there are segments");
  }
  if (layout.segments.empty()) {
    if (!mark->newest && !mark->end_segment && layout.checkpoints.empty()) return std::nullopt;
    return damaged(fmt::format("segments up to {} were in use, but there are none", mark->newest));
  }
  if (NewestLink(layout.segments) == layout.segments.size()) {
    return damaged("none of the segments has a Link that passes its check");
  }
  if (mark->end_segment > layout.newest().id) {
    return damaged(
        fmt::format("the records up to LSN {} end in segment {}, but the newest with a "
                    "valid Link is {}",
                    mark->synced, mark->end_segment, layout.newest().id));
  }
  return std::nullopt;
}

// A store that was never begun, or whose first beginning was cut short, has no valid MARK and no
// segment.
Status RefuseForeign(const Storage& storage, const StoreLayout& layout) {
  const StoreNames& names = layout.names;
  if (!names.segments.empty() || layout.mark.mark.has_value()) return absl::OkStatus();
  if (names.strangers.empty() && !layout.mark.foreign) return absl::OkStatus();
  return WrongState(
      Detail::kForeign, "{}: holds \"{}\" and no store; give the engine a directory of its own",
      storage.display_path(), names.strangers.empty() ? kMarkFile : names.strangers.front());
}

// The names in the folder of the checkpoints.
Status ListCheckpoints(Storage& storage, StoreNames& names) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, storage.List(kCheckpointFolder));
  for (const std::string& file : files) {
    const std::string name = fmt::format("{}/{}", kCheckpointFolder, file);
    if (const Lsn from = ParseCheckpointFileName(file)) {
      names.checkpoints.push_back(from);
    } else if (IsCheckpointTempName(file)) {
      names.checkpoint_temps.push_back(name);
    } else if (file.starts_with(kQuarantinePrefix)) {
      names.quarantine.push_back(name);
    } else {
      names.strangers.push_back(name);
    }
  }
  std::sort(names.checkpoints.begin(), names.checkpoints.end());
  return absl::OkStatus();
}

}  // namespace

StatusOr<StoreNames> ListStore(Storage& storage) {
  StoreNames names;
  bool checkpoints = false;
  ASSIGN_OR_RETURN(const std::vector<std::string> top, storage.List(""));
  for (const std::string& name : top) {
    if (name == kMarkFile) {
      names.mark = true;
    } else if (name == kJournalFolder) {
      names.journal = true;
    } else if (name == kCheckpointFolder) {
      checkpoints = true;
    } else if (name.starts_with(kQuarantinePrefix)) {
      names.quarantine.push_back(name);
    } else if (std::find(std::begin(kKnownNames), std::end(kKnownNames), name) ==
               std::end(kKnownNames)) {
      names.strangers.push_back(name);
    }
  }
  if (checkpoints) RETURN_IF_ERROR(ListCheckpoints(storage, names));
  if (!names.journal) return names;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, storage.List(kJournalFolder));
  for (const std::string& file : files) {
    const std::string name = fmt::format("{}/{}", kJournalFolder, file);
    if (const SegmentId id = ParseSegmentFileName(file)) {
      names.segments.push_back(id);
    } else if (file.starts_with(kSparePrefix)) {
      names.spares.push_back(name);
    } else if (file.starts_with(kQuarantinePrefix)) {
      names.quarantine.push_back(name);
    } else {
      names.strangers.push_back(name);
    }
  }
  std::sort(names.segments.begin(), names.segments.end());
  return names;
}

StatusOr<StoreLayout> ReadLayout(Storage& storage) {
  StoreLayout layout;
  ASSIGN_OR_RETURN(layout.names, ListStore(storage));
  if (layout.names.mark) {
    ASSIGN_OR_RETURN(layout.mark, ReadMark(storage));
  }
  RETURN_IF_ERROR(RefuseForeign(storage, layout));
  if (const std::optional<Mark>& mark = layout.mark.mark; mark.has_value()) {
    layout.store_id = mark->store_id;
    layout.salt = mark->salt;
    layout.epoch = mark->epoch;
  } else if (layout.names.segments.empty()) {
    if (!layout.names.checkpoints.empty()) {
      return DataLoss("{}: there are checkpoints, but neither a MARK nor a segment",
                      storage.display_path());
    }
    return NotFound("{}: no store here", storage.display_path());
  }
  RETURN_IF_ERROR(ReadHeads(storage, layout));
  layout.checkpoints =
      ReadCheckpointFiles(storage, layout.names.checkpoints, layout.store_id, layout.salt);
  for (const CheckpointFile& file : layout.checkpoints) {
    if (file.status.ok()) layout.epoch = std::max(layout.epoch, file.header.epoch);
  }
  FindChain(layout);
  if (std::optional<Damage> damage = MarkDamage(layout); damage.has_value()) {
    layout.damages.push_back(*std::move(damage));
  }
  FindSegmentDamage(layout);
  return layout;
}

bool StoreLayout::SameAs(const StoreLayout& other) const {
  const auto sequence = [](const StoreLayout& layout) {
    return layout.mark.mark.has_value() ? layout.mark.mark->sequence : 0;
  };
  const auto same = [](const SegmentFile& a, const SegmentFile& b) {
    return std::tie(a.id, a.life.stamp, a.state, a.file_bytes) ==
           std::tie(b.id, b.life.stamp, b.state, b.file_bytes);
  };
  return sequence(*this) == sequence(other) &&
         std::equal(segments.begin(), segments.end(), other.segments.begin(), other.segments.end(),
                    same);
}

bool StoreLayout::KeepsChainOf(const StoreLayout& before) const {
  const auto kept = [&](const SegmentFile& old) {
    return std::any_of(segments.begin(), segments.end(), [&](const SegmentFile& file) {
      return file.id == old.id && file.life.stamp == old.life.stamp;
    });
  };
  return std::all_of(before.segments.begin() + static_cast<ptrdiff_t>(before.chain_begin),
                     before.segments.begin() + static_cast<ptrdiff_t>(before.chain_end), kept);
}

uint64_t RecordedEnd(const StoreLayout& layout, size_t index) {
  const SegmentFile& file = layout.segments[index];
  if (index + 1 < layout.chain_end) {
    const SegmentFile& successor = layout.segments[index + 1];
    if (successor.id == file.id + 1 && successor.link.has_value())
      return successor.link->previous_end;
  }
  return file.segment_bytes;
}

std::string QuarantineName(const StoreNames& names, const std::string& name) {
  const size_t folder = name.rfind('/') + 1;  // 0: none
  const std::string base = name.substr(0, folder) + kQuarantinePrefix + name.substr(folder);
  const auto taken = [&](const std::string& candidate) {
    return std::find(names.quarantine.begin(), names.quarantine.end(), candidate) !=
           names.quarantine.end();
  };
  std::string candidate = base;
  for (int copy = 2; taken(candidate); ++copy) candidate = fmt::format("{}.{}", base, copy);
  return candidate;
}

bool IsRestated(const StoreLayout& layout) {
  const SegmentFile& oldest = layout.segments[layout.chain_begin];
  return oldest.link.has_value() && !oldest.link->previous && oldest.id > SegmentId(1);
}

const CheckpointFile* NewestThrough(const StoreLayout& layout) {
  const CheckpointFile* newest = nullptr;
  for (const CheckpointFile& file : layout.checkpoints) {
    if (!file.status.ok()) continue;
    if (newest == nullptr || file.footer.through > newest->footer.through) newest = &file;
  }
  return newest;
}

Status DamageStatus(const Damage& damage) {
  std::string lost;
  if (damage.first_lsn) {
    lost = damage.last_lsn > damage.first_lsn
               ? fmt::format(", LSN {} to {}", damage.first_lsn, damage.last_lsn)
               : fmt::format(", LSN {}", damage.first_lsn);
  }
  return DataLoss("{} offset {}{}: {}; run `holdfast verify`", damage.file, damage.offset, lost,
                  damage.reason);
}

}  // namespace holdfast
