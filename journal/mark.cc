#include "journal/mark.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "journal/base/checksum.h"
#include "journal/format/codec.h"

namespace holdfast {
namespace {

constexpr uint64_t kMarkMagic = 0x31304b52414d4648;  // "HFMARK01"
constexpr uint64_t kBeatMagic = 0x3130544145424648;  // "HFBEAT01"
constexpr uint64_t kSlotBytes = kBlockBytes;
constexpr uint64_t kStatementSlots = 2;
constexpr uint64_t kBeatOffset = kStatementSlots * kSlotBytes;
constexpr uint64_t kMarkFileBytes = kBeatOffset + kSlotBytes;
constexpr size_t kCheckOffset = kSlotBytes - sizeof(uint64_t);

struct alignas(kSlotBytes) Block {
  std::array<std::byte, kSlotBytes> bytes{};
};

// The fields, zeros, and the check in the last 8 bytes.
Block Seal(const std::string& fields, uint64_t seed) {
  CHECK(fields.size() <= kCheckOffset);
  Block block;
  std::memcpy(block.bytes.data(), fields.data(), fields.size());
  const uint64_t check = Checksum(ByteView(block.bytes).first(kCheckOffset), seed);
  std::memcpy(block.bytes.data() + kCheckOffset, &check, sizeof check);
  return block;
}

bool Passes(ByteView block, uint64_t seed) {
  uint64_t check = 0;
  std::memcpy(&check, block.data() + kCheckOffset, sizeof check);
  return check == Checksum(block.first(kCheckOffset), seed);
}

// A statement's check is seeded with its place alone: it is read before the salt is known.
Block EncodeMark(const Mark& mark, uint64_t offset) {
  std::string out;
  Encoder fields(out);
  fields.Fixed(kMarkMagic);
  fields.Fixed(mark.format_version);
  fields.Fixed(mark.sequence);
  for (const uint8_t byte : mark.store_id) fields.Fixed(byte);
  fields.Fixed(mark.salt);
  fields.Fixed(mark.epoch.value());
  fields.Fixed(mark.synced.value());
  fields.Fixed(mark.end_segment.value());
  fields.Fixed(mark.end_offset);
  fields.Fixed(mark.newest.value());
  fields.Fixed(mark.oldest.value());
  fields.Fixed(static_cast<uint8_t>(mark.clean ? 1 : 0));
  fields.Fixed(static_cast<uint64_t>(mark.engine_ns));
  return Seal(out, offset);
}

// None: the slot fails its check.  Errors: kFailedPrecondition kNewerFormat
StatusOr<std::optional<Mark>> DecodeMark(ByteView block, uint64_t offset) {
  if (block.size() != kSlotBytes || !Passes(block, offset)) return std::optional<Mark>();
  Decoder fields(block.first(kCheckOffset));
  if (fields.Fixed<uint64_t>() != kMarkMagic) return std::optional<Mark>();
  Mark mark;
  mark.format_version = fields.Fixed<uint32_t>();
  if (mark.format_version > kFormatVersion) {
    return WrongState(Detail::kNewerFormat, "{}: format version {}, this build reads up to {}",
                      kMarkFile, mark.format_version, kFormatVersion);
  }
  mark.sequence = fields.Fixed<uint64_t>();
  for (uint8_t& byte : mark.store_id) byte = fields.Fixed<uint8_t>();
  mark.salt = fields.Fixed<uint64_t>();
  mark.epoch = Epoch(fields.Fixed<uint64_t>());
  mark.synced = Lsn(fields.Fixed<uint64_t>());
  mark.end_segment = SegmentId(fields.Fixed<uint64_t>());
  mark.end_offset = fields.Fixed<uint64_t>();
  mark.newest = SegmentId(fields.Fixed<uint64_t>());
  mark.oldest = SegmentId(fields.Fixed<uint64_t>());
  mark.clean = fields.Fixed<uint8_t>() != 0;
  mark.engine_ns = static_cast<int64_t>(fields.Fixed<uint64_t>());
  return std::optional<Mark>(mark);
}

Block EncodeHeartbeat(int64_t engine_ns, uint64_t salt) {
  std::string out;
  Encoder fields(out);
  fields.Fixed(kBeatMagic);
  fields.Fixed(static_cast<uint64_t>(engine_ns));
  return Seal(out, salt);
}

int64_t DecodeHeartbeat(ByteView block, uint64_t salt) {
  if (block.size() != kSlotBytes || !Passes(block, salt)) return 0;
  Decoder fields(block);
  if (fields.Fixed<uint64_t>() != kBeatMagic) return 0;
  return static_cast<int64_t>(fields.Fixed<uint64_t>());
}

// Whether a file without a valid statement may be ours all the same: a first statement that was cut
// short leaves its magic or zeros at the start of a slot.
bool MayBeOurs(ByteView bytes) {
  for (uint64_t offset = 0; offset < bytes.size(); offset += kSlotBytes) {
    const ByteView start =
        bytes.subspan(offset, std::min(bytes.size() - offset, sizeof kMarkMagic));
    uint64_t magic = 0;
    std::memcpy(&magic, start.data(), start.size());
    if (magic != 0 && magic != kMarkMagic && magic != kBeatMagic) return false;
  }
  return true;
}

StatusOr<MarkView> ReadMarkFrom(File& file) {
  std::vector<Block> blocks(kMarkFileBytes / kSlotBytes);
  const ByteSpan bytes(blocks.front().bytes.data(), kMarkFileBytes);
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, bytes));
  const auto slot = [&](uint64_t offset) {
    return offset + kSlotBytes <= got ? ByteView(bytes).subspan(offset, kSlotBytes) : ByteView();
  };
  ASSIGN_OR_RETURN(const std::optional<Mark> first, DecodeMark(slot(0), 0));
  ASSIGN_OR_RETURN(const std::optional<Mark> second, DecodeMark(slot(kSlotBytes), kSlotBytes));
  MarkView view;
  view.mark = first;
  if (second.has_value() && (!first.has_value() || second->sequence > first->sequence)) {
    view.mark = second;
    view.slot = 1;
  }
  view.slots_differ =
      !first.has_value() || !second.has_value() || first->sequence != second->sequence;
  view.slot_bad = !first.has_value() || !second.has_value();
  view.foreign = !view.mark.has_value() && !MayBeOurs(ByteView(bytes).first(got));
  if (view.mark.has_value()) {
    view.heartbeat_ns = DecodeHeartbeat(slot(kBeatOffset), view.mark->salt);
  }
  return view;
}

}  // namespace

StatusOr<MarkView> ReadMark(Storage& storage) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                   storage.OpenFile(kMarkFile, OpenMode::kReadOnly, {.direct = true}));
  return ReadMarkFrom(*file);
}

StatusOr<std::unique_ptr<MarkWriter>> MarkWriter::Open(Storage& storage) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                   storage.OpenFile(kMarkFile, OpenMode::kCreate, {.direct = true}));
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size < kMarkFileBytes) {
    const std::vector<std::byte> zeros(kMarkFileBytes - size);
    RETURN_IF_ERROR(file->WriteAt(size, zeros));
  }
  // A killed predecessor may have written what is read here, and not synced it. It is all that
  // holds while the other slot is written.
  RETURN_IF_ERROR(file->SyncData());
  // Also when the file was there: a crash may have left its entry in the folder unsynced.
  RETURN_IF_ERROR(storage.SyncFolder(""));
  ASSIGN_OR_RETURN(const MarkView view, ReadMarkFrom(*file));
  return std::unique_ptr<MarkWriter>(new MarkWriter(std::move(file), view));
}

MarkWriter::MarkWriter(std::unique_ptr<File> file, const MarkView& found)
    : file_(std::move(file)),
      sequence_(found.mark.has_value() ? found.mark->sequence : 0),
      trusted_slot_(found.slot) {}

Status MarkWriter::Write(Mark mark) {
  mark.sequence = ++sequence_;
  // One slot after the other, each durable before the next: a crash leaves at least one whole. The
  // other one may be torn since an earlier crash, so the whole one goes last.
  for (const uint64_t slot : {(trusted_slot_ + 1) % kStatementSlots, trusted_slot_}) {
    const uint64_t offset = slot * kSlotBytes;
    const Block block = EncodeMark(mark, offset);
    RETURN_IF_ERROR(file_->WriteAt(offset, block.bytes));
    RETURN_IF_ERROR(file_->SyncData());
  }
  return absl::OkStatus();
}

Status MarkWriter::WriteHeartbeat(int64_t engine_ns, uint64_t salt) {
  const Block block = EncodeHeartbeat(engine_ns, salt);
  return file_->WriteAt(kBeatOffset, block.bytes);
}

}  // namespace holdfast
