#include "recovery/checkpoint_writer.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "journal/base/check.h"

namespace holdfast {
namespace {

constexpr uint64_t kWriteBytes = uint64_t{1} << 20;
// What a block holds at least before it is sealed: large enough to compress well.
constexpr size_t kSealedBytes = size_t{128} << 10;
static_assert(kSealedBytes <= kCheckpointBlockBytesMax);

}  // namespace

CheckpointWriter::CheckpointWriter(Storage& storage, const CheckpointKey& key,
                                   std::unique_ptr<File> file, AlignedBuffer buffer)
    : storage_(storage), key_(key), file_(std::move(file)), buffer_(std::move(buffer)) {
  footer_.from = key.from;
}

CheckpointWriter::~CheckpointWriter() {
  if (published_ || leave_) return;
  file_.reset();
  (void)storage_.Remove(CheckpointTempName(key_.from));  // the next open tries it again
}

StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(Storage& storage,
                                                                     const CheckpointHeader& header,
                                                                     uint64_t salt) {
  const CheckpointKey key{.salt = salt, .from = header.from};
  const std::string name = CheckpointTempName(header.from);
  // First, so that without memory nothing is left behind.
  ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Make(kWriteBytes));
  RETURN_IF_ERROR(storage.MakeFolder(kCheckpointFolder));
  if (const Status removed = storage.Remove(name);
      !removed.ok() && removed.code() != StatusCode::kNotFound) {
    return removed;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                   storage.OpenFile(name, OpenMode::kCreate, {.direct = true}));
  std::unique_ptr<CheckpointWriter> writer(
      new CheckpointWriter(storage, key, std::move(file), std::move(buffer)));
  RETURN_IF_ERROR(writer->Append(EncodeCheckpointHeader(header, key)));
  return writer;
}

void CheckpointWriter::BeginSection(uint32_t section) {
  CHECK(raw_.empty() && !finished_);
  CHECK(footer_.sections.empty() || section > footer_.sections.back().number);
  footer_.sections.push_back({.number = section});
}

Status CheckpointWriter::Add(std::string_view entries) {
  CHECK(!footer_.sections.empty() && !finished_);
  if (entries.empty()) return absl::OkStatus();
  if (raw_.size() + entries.size() > kCheckpointBlockBytesMax) RETURN_IF_ERROR(SealBlock());
  raw_.append(entries);
  return raw_.size() >= kSealedBytes ? SealBlock() : absl::OkStatus();
}

Status CheckpointWriter::EndSection(uint64_t entries) {
  RETURN_IF_ERROR(SealBlock());
  CheckpointSection& section = footer_.sections.back();
  section.entries = std::min(entries, section.raw_bytes);
  return absl::OkStatus();
}

Status CheckpointWriter::SealBlock() {
  if (raw_.empty()) return absl::OkStatus();
  block_.clear();
  CheckpointSection& section = footer_.sections.back();
  AppendCheckpointBlock(static_cast<uint32_t>(footer_.blocks), section.number, raw_, key_, block_);
  ++footer_.blocks;
  section.raw_bytes += raw_.size();
  raw_.clear();
  return Append(AsBytes(block_));
}

Status CheckpointWriter::Finish(Lsn through) {
  CHECK(raw_.empty() && !finished_);
  footer_.through = through;
  footer_.blocks_end = bytes();
  RETURN_IF_ERROR(AppendZerosTo(kCheckpointFooterBytes));
  RETURN_IF_ERROR(Append(EncodeCheckpointFooter(footer_, key_)));
  RETURN_IF_ERROR(WriteOut());
  RETURN_IF_ERROR(Note(file_->SyncData()));
  finished_ = true;
  return absl::OkStatus();
}

StatusOr<KeptCheckpoint> CheckpointWriter::Publish() {
  CHECK(finished_ && !published_);
  // From here on nobody knows whether it has its name, so nobody removes it.
  leave_ = true;
  RETURN_IF_ERROR(
      Note(storage_.Rename(CheckpointTempName(key_.from), CheckpointFileName(key_.from))));
  RETURN_IF_ERROR(Note(storage_.SyncFolder(kCheckpointFolder)));
  RETURN_IF_ERROR(Note(storage_.SyncFolder("")));  // where the folder itself may be new
  published_ = true;
  RemoveOlder();
  return KeptCheckpoint{.from = key_.from, .through = footer_.through, .bytes = bytes()};
}

void CheckpointWriter::RemoveOlder() {
  const auto names = storage_.List(kCheckpointFolder);
  if (!names.ok()) return;
  std::vector<Lsn> found;
  for (const std::string& name : *names) {
    if (const Lsn from = ParseCheckpointFileName(name)) found.push_back(from);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  for (size_t i = kCheckpointsKept; i < found.size(); ++i) {
    (void)storage_.Remove(CheckpointFileName(found[i]));  // the next one tries it again
  }
}

Status CheckpointWriter::Append(ByteView bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min<size_t>(bytes.size(), buffer_.size() - filled_);
    std::memcpy(buffer_.data() + filled_, bytes.data(), count);
    filled_ += count;
    bytes = bytes.subspan(count);
    if (filled_ == buffer_.size()) RETURN_IF_ERROR(WriteOut());
  }
  return absl::OkStatus();
}

Status CheckpointWriter::WriteOut() {
  if (filled_ == 0) return absl::OkStatus();
  RETURN_IF_ERROR(Note(file_->WriteAt(written_, buffer_.view().first(filled_))));
  written_ += filled_;
  filled_ = 0;
  return absl::OkStatus();
}

Status CheckpointWriter::AppendZerosTo(uint64_t alignment) {
  const std::string zeros(AlignUp(bytes(), alignment) - bytes(), '\0');
  return Append(AsBytes(zeros));
}

// Only a full disk leaves a file that may be touched once more: to make room again.
Status CheckpointWriter::Note(Status status) {
  if (!status.ok() && status.code() != StatusCode::kResourceExhausted) leave_ = true;
  return status;
}

}  // namespace holdfast
