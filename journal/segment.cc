#include "journal/segment.h"

#include <string>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

std::string SpareName(SegmentId segment) {
  return fmt::format("{}/spare-{:016}", kJournalFolder, segment.value());
}

Status Fill(File& file, const SegmentHeader& header) {
  RETURN_IF_ERROR(file.TryLock());
  // Zeros that were really written: an overwrite then needs no allocation, and its sync no
  // metadata.
  RETURN_IF_ERROR(file.WriteZeros(header.segment_bytes));
  RETURN_IF_ERROR(file.WriteAt(0, EncodeSegmentHeader(header)));
  return file.SyncData();
}

}  // namespace

StatusOr<Segment> PrepareSegment(Storage& storage, const SegmentHeader& header) {
  CHECK(header.segment != SegmentId());
  CHECK(header.segment_bytes >= kSegmentBytesMin);
  CHECK(IsAligned(header.segment_bytes, kBlockBytes));
  const std::string name = SpareName(header.segment);
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
  return Segment{.header = header, .file = std::move(file)};
}

Status PublishSegment(Storage& storage, const Segment& segment) {
  RETURN_IF_ERROR(
      storage.Rename(SpareName(segment.header.segment), SegmentFileName(segment.header.segment)));
  return storage.SyncFolder(kJournalFolder);
}

}  // namespace holdfast
