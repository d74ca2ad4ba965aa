#include "recovery/checkpoint_file.h"

#include <algorithm>
#include <map>
#include <memory>

#include "journal/base/one_ahead.h"
#include "journal/io/aligned_buffer.h"
#include "journal/io/read_window.h"

namespace holdfast {
namespace {

// Blocks that are handed over at a time: enough that two threads that wait for each other cost
// little, and little to hold.
constexpr uint64_t kOpenedTogether = 4;

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
    {
      // The next blocks are read, checked and unpacked while the entries of these are taken.
      OneAhead<Opened> blocks([this](Opened& opened) { return OpenBlocks(opened); });
      if (handle->read_depth() > 1) blocks.Start();
      for (;;) {
        const StatusOr<Opened*> opened = blocks.Next();
        // No memory there: neither good nor bad is known of the file.
        if (!opened.ok()) return Unavailable(Detail::kIo, "{}", Message(opened.status()));
        if (*opened == nullptr) break;
        for (const Block& block : (*opened)->blocks) RETURN_IF_ERROR(TakeEntries(block));
        RETURN_IF_ERROR((*opened)->failed);
      }
    }
    if (place_ != file_.footer.blocks_end) {
      return DataLoss("its blocks end at {}, its footer says {}", place_, file_.footer.blocks_end);
    }
    for (const auto& [number, section] : sections_) {
      if (section.raw_bytes_left != 0) {
        return DataLoss("section {}: {} bytes of entries are missing", number,
                        section.raw_bytes_left);
      }
    }
    return CheckPadding(place_);
  }

 private:
  struct Section {
    StateMachine* machine = nullptr;
    uint64_t entries = 0;
    uint64_t raw_bytes_left = 0;
  };
  struct Block {
    uint64_t place = 0;
    uint32_t section = 0;
    std::string entries;
  };
  struct Opened {
    std::vector<Block> blocks;  // that passed their checks
    Status failed;              // what stands behind them
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

  // The next blocks, behind those of the call before. False: there are no more.
  bool OpenBlocks(Opened& opened) {
    opened.blocks.resize(std::min(kOpenedTogether, file_.footer.blocks - number_));
    for (size_t i = 0; i < opened.blocks.size(); ++i) {
      opened.failed = OpenBlock(opened.blocks[i]);
      if (opened.failed.ok()) continue;
      opened.blocks.resize(i);
      return true;
    }
    return !opened.blocks.empty();
  }

  Status OpenBlock(Block& into) {
    ASSIGN_OR_RETURN(const ByteView head, window_.At(place_, kCheckpointBlockHeaderBytes));
    const StatusOr<CheckpointBlock> block = DecodeCheckpointBlockHeader(head);
    if (!block.ok()) return Annotate(block.status(), fmt::format("offset {}", place_));
    if (place_ + block->bytes() > file_.footer.blocks_end) {
      return DataLoss("offset {}: a block crosses their end at {}", place_,
                      file_.footer.blocks_end);
    }
    ASSIGN_OR_RETURN(const ByteView bytes, window_.At(place_, block->bytes()));
    const StatusOr<ByteView> entries =
        OpenCheckpointBlock(*block, bytes, static_cast<uint32_t>(number_), key_, into.entries);
    if (!entries.ok()) return Annotate(entries.status(), fmt::format("offset {}", place_));
    if (!block->compressed) into.entries = AsText(*entries);  // it was a view of the window
    into.place = place_;
    into.section = block->section;
    place_ += block->bytes();
    ++number_;
    return absl::OkStatus();
  }

  Status TakeEntries(const Block& block) {
    const auto section = sections_.find(block.section);
    if (section == sections_.end() || section->second.raw_bytes_left < block.entries.size()) {
      return DataLoss("offset {}: more entries of section {} than its footer says", block.place,
                      block.section);
    }
    section->second.raw_bytes_left -= block.entries.size();
    if (StateMachine* machine = section->second.machine; machine != nullptr) {
      const Status loaded = machine->LoadSnapshot(AsBytes(block.entries), section->second.entries);
      if (!loaded.ok()) {
        return Annotate(loaded, fmt::format("offset {}, section {}", block.place, block.section));
      }
    }
    return absl::OkStatus();
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
  // Of who opens blocks: a thread of its own until they end.
  ReadWindow window_;
  uint64_t place_ = kCheckpointHeaderBytes;
  uint64_t number_ = 0;
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
