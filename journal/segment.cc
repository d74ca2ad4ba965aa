#include "journal/segment.h"

#include <charconv>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

Status Fill(File& file, const SegmentHeader& header) {
  RETURN_IF_ERROR(file.TryLock());
  // Zeros that were really written: an overwrite then needs no allocation, and its sync no
  // metadata.
  RETURN_IF_ERROR(file.WriteZeros(header.segment_bytes));
  RETURN_IF_ERROR(file.WriteAt(0, EncodeSegmentHeader(header)));
  return file.SyncData();
}

Status Renew(File& file, const SegmentHeader& header) {
  RETURN_IF_ERROR(file.TryLock());
  ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size != header.segment_bytes) {
    return DataLoss("{} bytes, want {}", size, header.segment_bytes);
  }
  RETURN_IF_ERROR(file.WriteAt(0, EncodeSegmentHeader(header)));
  return file.SyncData();
}

}  // namespace

StatusOr<Segment> PrepareSegment(Storage& storage, const SegmentHeader& header) {
  CHECK(header.segment != SegmentId());
  CHECK(header.segment_bytes >= kSegmentBytesMin);
  CHECK(IsAligned(header.segment_bytes, kBlockBytes));
  const std::string name = SpareFileName(header.segment) + ".new";
  // What an interrupted preparation left is nobody's.
  if (const Status removed = storage.Remove(name);
      !removed.ok() && removed.code() != StatusCode::kNotFound) {
    return removed;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                   storage.OpenFile(name, OpenMode::kCreate, {.direct = true}));
  Status filled = Fill(*file, header);
  if (filled.ok()) filled = storage.SyncFolder(kJournalFolder);
  if (!filled.ok()) {
    file.reset();
    (void)storage.Remove(name);  // the first error tells more; the next preparation removes it too
    return Annotate(filled, name);
  }
  return Segment{.header = header, .file = std::move(file), .temporary_name = name};
}

StatusOr<Segment> RecycleSegment(Storage& storage, SegmentId spare, const SegmentHeader& header) {
  const std::string name = SpareFileName(spare);
  ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                   storage.OpenFile(name, OpenMode::kReadWrite, {.direct = true}));
  if (Status renewed = Renew(*file, header); !renewed.ok()) {
    file.reset();
    if (renewed.code() == StatusCode::kResourceExhausted) (void)storage.Remove(name);  // as above
    return Annotate(renewed, name);
  }
  return Segment{.header = header, .file = std::move(file), .temporary_name = name};
}

Status PublishSegment(Storage& storage, const Segment& segment) {
  RETURN_IF_ERROR(
      storage.Rename(segment.temporary_name, SegmentFileName(segment.header.segment)));
  return storage.SyncFolder(kJournalFolder);
}

std::string SpareFileName(SegmentId segment) {
  return fmt::format("{}/{}{:016}", kJournalFolder, kSparePrefix, segment.value());
}

SegmentId ParseSpareFileName(std::string_view name) {
  const std::string prefix = fmt::format("{}/{}", kJournalFolder, kSparePrefix);
  if (!name.starts_with(prefix)) return SegmentId();
  name.remove_prefix(prefix.size());
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc() || end != name.data() + name.size()) return SegmentId();
  return SegmentId(value);
}

}  // namespace holdfast
