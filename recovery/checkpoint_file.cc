#include "recovery/checkpoint_file.h"

#include <algorithm>
#include <map>
#include <memory>

#include "journal/io/aligned_buffer.h"
#include "journal/io/read_window.h"

namespace holdfast {
namespace {

Status ReadHead(Storage& storage, const StoreId& store_id, uint64_t salt, CheckpointFile& file) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> handle,
                   storage.OpenFile(file.name(), OpenMode::kReadOnly, {.direct = true}));
  ASSIGN_OR_RETURN(file.bytes, handle->Size());
  const CheckpointKey key{.salt = salt, .from = file.from};
  AlignedBuffer buffer(kBlockBytes);
  ASSIGN_OR_RETURN(size_t got, handle->ReadAt(0, buffer.span()));
  const ByteView header = buffer.view().first(got);
  if (const auto owner = CheckpointOwner(header); owner.has_value() && *owner != store_id) {
    return DataLoss("it belongs to another store");
  }
  ASSIGN_OR_RETURN(file.header, DecodeCheckpointHeader(header, key));
  if (file.bytes < kCheckpointHeaderBytes + kCheckpointFooterBytes) {
    return DataLoss("{} bytes: it was cut short", file.bytes);
  }
  ASSIGN_OR_RETURN(got, handle->ReadAt(file.bytes - kCheckpointFooterBytes, buffer.span()));
  ASSIGN_OR_RETURN(file.footer, DecodeCheckpointFooter(buffer.view().first(got), key, file.bytes));
  return absl::OkStatus();
}

class Loader {
 public:
  Loader(const CheckpointFile& file, uint64_t salt, const StateMachines* machines)
      : file_(file), key_({.salt = salt, .from = file.from}), machines_(machines) {}

  Status Run(Storage& storage) {
    RETURN_IF_ERROR(MatchSections());
    ASSIGN_OR_RETURN(const std::unique_ptr<File> handle,
                     storage.OpenFile(file_.name(), OpenMode::kReadOnly, {.direct = true}));
    const ReadWindow::Closer closer(window_);
    RETURN_IF_ERROR(window_.Open(*handle));
    uint64_t place = kCheckpointHeaderBytes;
    for (uint64_t number = 0; number < file_.footer.blocks; ++number) {
      ASSIGN_OR_RETURN(place, LoadBlock(static_cast<uint32_t>(number), place));
    }
    if (place != file_.footer.blocks_end) {
      return DataLoss("its blocks end at {}, its footer says {}", place, file_.footer.blocks_end);
    }
    for (const auto& [number, section] : sections_) {
      if (section.raw_bytes_left != 0) {
        return DataLoss("section {}: {} bytes of entries are missing", number,
                        section.raw_bytes_left);
      }
    }
    return CheckPadding(place);
  }

 private:
  struct Section {
    StateMachine* machine = nullptr;
    uint64_t entries = 0;
    uint64_t raw_bytes_left = 0;
  };

  // A section that nobody takes, or one that is missing, would be state that is lost without a
  // word.
  Status MatchSections() {
    for (const CheckpointSection& section : file_.footer.sections) {
      sections_[section.number] = {
          .machine = nullptr, .entries = section.entries, .raw_bytes_left = section.raw_bytes};
    }
    if (machines_ == nullptr) return absl::OkStatus();
    size_t known = 0;
    Status missing;
    machines_->ForEach([&](uint32_t number, StateMachine& machine) {
      const auto found = sections_.find(number);
      if (found == sections_.end()) {
        if (machine.MayLackSection()) return;
        missing =
            WrongState(Detail::kNone, "an earlier version wrote it: it has no section {}", number);
        return;
      }
      found->second.machine = &machine;
      ++known;
    });
    RETURN_IF_ERROR(missing);
    if (known < sections_.size()) {
      return WrongState(Detail::kNewerFormat, "it has {} sections that this program does not know",
                        sections_.size() - known);
    }
    return absl::OkStatus();
  }

  // Returns the place behind it.
  StatusOr<uint64_t> LoadBlock(uint32_t number, uint64_t place) {
    ASSIGN_OR_RETURN(const ByteView head, window_.At(place, kCheckpointBlockHeaderBytes));
    const StatusOr<CheckpointBlock> block = DecodeCheckpointBlockHeader(head);
    if (!block.ok()) return Annotate(block.status(), fmt::format("offset {}", place));
    if (place + block->bytes() > file_.footer.blocks_end) {
      return DataLoss("offset {}: a block crosses their end at {}", place, file_.footer.blocks_end);
    }
    ASSIGN_OR_RETURN(const ByteView bytes, window_.At(place, block->bytes()));
    const StatusOr<ByteView> entries = OpenCheckpointBlock(*block, bytes, number, key_, scratch_);
    if (!entries.ok()) return Annotate(entries.status(), fmt::format("offset {}", place));
    const auto section = sections_.find(block->section);
    if (section == sections_.end() || section->second.raw_bytes_left < entries->size()) {
      return DataLoss("offset {}: more entries of section {} than its footer says", place,
                      block->section);
    }
    section->second.raw_bytes_left -= entries->size();
    if (StateMachine* machine = section->second.machine; machine != nullptr) {
      if (const Status loaded = machine->LoadSnapshot(*entries, section->second.entries);
          !loaded.ok()) {
        return Annotate(loaded, fmt::format("offset {}, section {}", place, block->section));
      }
    }
    return place + block->bytes();
  }

  Status CheckPadding(uint64_t place) {
    const uint64_t length = file_.bytes - kCheckpointFooterBytes - place;
    ASSIGN_OR_RETURN(const ByteView padding, window_.At(place, length));
    const bool zero =
        padding.size() == length &&
        std::all_of(padding.begin(), padding.end(), [](std::byte b) { return b == std::byte{0}; });
    return zero ? absl::OkStatus() : DataLoss("offset {}: padding is not zero", place);
  }

  const CheckpointFile& file_;
  const CheckpointKey key_;
  const StateMachines* machines_;
  std::map<uint32_t, Section> sections_;
  ReadWindow window_;
  std::string scratch_;
};

}  // namespace

std::vector<CheckpointFile> ReadCheckpointFiles(Storage& storage, const std::vector<Lsn>& names,
                                                const StoreId& store_id, uint64_t salt) {
  std::vector<CheckpointFile> files;
  for (const Lsn from : names) {
    CheckpointFile file{.from = from};
    file.status = ReadHead(storage, store_id, salt, file);
    if (file.status.code() == StatusCode::kNotFound) continue;
    files.push_back(std::move(file));
  }
  return files;
}

Status LoadCheckpoint(Storage& storage, const CheckpointFile& file, uint64_t salt,
                      const StateMachines* machines) {
  CHECK(file.status.ok());
  return Loader(file, salt, machines).Run(storage);
}

}  // namespace holdfast
