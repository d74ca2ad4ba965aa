#include "tests/sim/sim_disk.h"

#include <algorithm>
#include <utility>

#include "journal/base/checksum.h"

namespace holdfast {
namespace {

constexpr std::array<std::byte, SimContent::kPageBytes> kZeroPage{};

std::string FolderOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

}  // namespace

void SimContent::SetSize(uint64_t bytes) {
  const bool shrinks = bytes < size_;
  size_ = bytes;
  if (shrinks) TrimToSize();
}

void SimContent::TrimToSize() {
  const uint64_t pages = AlignUp(size_, kPageBytes) / kPageBytes;
  if (pages_.size() > pages) pages_.resize(pages);
  if (const uint64_t used = size_ % kPageBytes;
      used != 0 && pages_.size() == pages && pages_.back()) {
    const std::vector<std::byte> zeros(kPageBytes - used);
    Write(size_, zeros);
  }
}

void SimContent::Read(uint64_t offset, ByteSpan buffer) const {
  while (!buffer.empty()) {
    const uint64_t page = offset / kPageBytes;
    const uint64_t within = offset % kPageBytes;
    const size_t count = std::min<uint64_t>(buffer.size(), kPageBytes - within);
    if (page < pages_.size() && pages_[page]) {
      std::memcpy(buffer.data(), pages_[page]->data() + within, count);
    } else {
      std::memset(buffer.data(), 0, count);
    }
    offset += count;
    buffer = buffer.subspan(count);
  }
}

void SimContent::Write(uint64_t offset, ByteView bytes) {
  while (!bytes.empty()) {
    const uint64_t index = offset / kPageBytes;
    const uint64_t within = offset % kPageBytes;
    const size_t count = std::min<uint64_t>(bytes.size(), kPageBytes - within);
    if (index >= pages_.size()) pages_.resize(index + 1);
    std::shared_ptr<Page>& page = pages_[index];
    const bool zeros = std::memcmp(bytes.data(), kZeroPage.data(), count) == 0;
    if (page || !zeros) {
      if (!page) {
        page = std::make_shared<Page>();
      } else if (page.use_count() > 1) {
        page = std::make_shared<Page>(*page);
      }
      std::memcpy(page->data() + within, bytes.data(), count);
    }
    offset += count;
    bytes = bytes.subspan(count);
  }
}

bool SimContent::Equals(uint64_t offset, ByteView bytes) const {
  while (!bytes.empty()) {
    const uint64_t page = offset / kPageBytes;
    const uint64_t within = offset % kPageBytes;
    const size_t count = std::min<uint64_t>(bytes.size(), kPageBytes - within);
    const bool written = page < pages_.size() && pages_[page];
    const std::byte* own = written ? pages_[page]->data() + within : kZeroPage.data();
    if (std::memcmp(own, bytes.data(), count) != 0) return false;
    offset += count;
    bytes = bytes.subspan(count);
  }
  return true;
}

SimDisk::SimDisk(const SimDiskOptions& options) : options_(options) {
  CHECK(SimContent::kPageBytes % options_.sector_bytes == 0);
  folders_.insert("");
  disk_folders_.insert("");
}

// --- Names
// -----------------------------------------------------------------------------------------

uint64_t SimDisk::Find(const std::string& name) const {
  const auto it = names_.find(name);
  return it == names_.end() ? 0 : it->second;
}

uint64_t SimDisk::Create(const std::string& name) {
  CHECK(!names_.contains(name));
  const uint64_t inode = ++inode_last_;
  files_[inode] = std::make_shared<FileState>();
  names_[name] = inode;
  entries_.push_back(
      {.sequence = sequence_++, .folder = FolderOf(name), .added = name, .added_inode = inode});
  return inode;
}

void SimDisk::MakeFolder(const std::string& folder) {
  if (!folders_.insert(folder).second) return;
  entries_.push_back({.sequence = sequence_++,
                      .folder = FolderOf(folder),
                      .added = folder,
                      .added_is_folder = true});
}

void SimDisk::Rename(const std::string& from, const std::string& to) {
  if (from == to) return;
  const uint64_t inode = Find(from);
  CHECK(inode != 0);
  names_.erase(from);
  names_[to] = inode;
  LooseEntry add{
      .sequence = sequence_++, .folder = FolderOf(to), .added = to, .added_inode = inode};
  if (FolderOf(from) == FolderOf(to)) {
    add.removed = from;
    add.removed_inode = inode;
    entries_.push_back(add);
    return;
  }
  entries_.push_back(add);
  entries_.push_back({.sequence = sequence_++,
                      .folder = FolderOf(from),
                      .removed = from,
                      .removed_inode = inode,
                      .needs = add.sequence});
}

void SimDisk::Remove(const std::string& name) {
  const uint64_t inode = Find(name);
  CHECK(inode != 0);
  names_.erase(name);
  entries_.push_back(
      {.sequence = sequence_++, .folder = FolderOf(name), .removed = name, .removed_inode = inode});
}

void SimDisk::ApplyEntry(const LooseEntry& entry) {
  if (!entry.removed.empty()) {
    const auto it = disk_names_.find(entry.removed);
    if (it != disk_names_.end() && it->second == entry.removed_inode) disk_names_.erase(it);
  }
  if (entry.added.empty()) return;
  if (entry.added_is_folder) {
    disk_folders_.insert(entry.added);
  } else {
    disk_names_[entry.added] = entry.added_inode;
  }
}

void SimDisk::SyncFolder(const std::string& folder) {
  std::set<uint64_t> due;
  for (const LooseEntry& entry : entries_) {
    if (entry.folder != folder) continue;
    due.insert(entry.sequence);
    if (entry.needs != 0) due.insert(entry.needs);
  }
  for (const LooseEntry& entry : entries_) {
    if (due.contains(entry.sequence)) ApplyEntry(entry);
  }
  std::erase_if(entries_, [&](const LooseEntry& e) { return due.contains(e.sequence); });
}

std::vector<std::string> SimDisk::List(const std::string& folder) const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && FolderOf(name) == folder) {
      names.push_back(folder.empty() ? name : name.substr(folder.size() + 1));
    }
  };
  for (const auto& [name, inode] : names_) add(name);
  for (const std::string& name : folders_) add(name);
  std::sort(names.begin(), names.end());
  return names;
}

// --- Bytes
// -----------------------------------------------------------------------------------------

const SimContent& SimDisk::Cache(uint64_t inode) const { return files_.at(inode)->cache; }

SimDisk::FileState& SimDisk::Mutable(uint64_t inode) {
  std::shared_ptr<FileState>& file = files_.at(inode);
  if (file.use_count() > 1) file = std::make_shared<FileState>(*file);
  return *file;
}

uint64_t SimDisk::UsedBytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, inode] : names_) bytes += files_.at(inode)->cache.size();
  return bytes;
}

uint64_t SimDisk::free_bytes() const {
  const uint64_t used = UsedBytes();
  return used < options_.bytes_max ? options_.bytes_max - used : 0;
}

// Notes each sector that `bytes` changes. A sector that is rewritten as it was, with nothing in
// flight and nothing lost, is no change that anybody could see.
void SimDisk::Loosen(FileState& file, uint64_t offset, ByteView bytes, uint64_t flight) {
  const uint64_t sector_bytes = options_.sector_bytes;
  const bool in_flight = std::any_of(file.loose.begin(), file.loose.end(),
                                     [](const Loosened& loose) { return loose.flight != 0; });
  const bool skip_equal = !in_flight && !file.any_lost;
  if (offset + bytes.size() > file.cache.size()) {
    file.loose.push_back({.sequence = sequence_++,
                          .is_size = true,
                          .place = offset + bytes.size(),
                          .flight = flight});
  }
  const uint64_t end = offset + bytes.size();
  for (uint64_t sector = AlignDown(offset, sector_bytes); sector < end; sector += sector_bytes) {
    const uint64_t from = std::max(sector, offset);
    const uint64_t to = std::min(sector + sector_bytes, end);
    const ByteView part = bytes.subspan(from - offset, to - from);
    if (skip_equal && file.cache.Equals(from, part)) continue;
    auto whole = std::make_shared<std::vector<std::byte>>(sector_bytes);
    file.cache.Read(sector, *whole);
    std::memcpy(whole->data() + (from - sector), part.data(), part.size());
    file.loose.push_back(
        {.sequence = sequence_++, .place = sector, .flight = flight, .bytes = std::move(whole)});
  }
}

bool SimDisk::Write(uint64_t inode, uint64_t offset, ByteView bytes) {
  const uint64_t end = offset + bytes.size();
  const uint64_t size = Cache(inode).size();
  if (end > size && end - size > free_bytes()) return false;
  if (bytes.empty()) return true;
  FileState& file = Mutable(inode);
  Loosen(file, offset, bytes, 0);
  file.cache.Write(offset, bytes);
  if (end > size) file.cache.SetSize(end);
  return true;
}

bool SimDisk::Resize(uint64_t inode, uint64_t bytes) {
  const uint64_t size = Cache(inode).size();
  if (bytes > size && bytes - size > free_bytes()) return false;
  if (bytes == size) return true;
  FileState& file = Mutable(inode);
  file.loose.push_back({.sequence = sequence_++, .is_size = true, .place = bytes});
  file.cache.SetSize(bytes);
  return true;
}

// Brings the completed writes with a sequence below `sequence_end` to disk.
void SimDisk::MakeDurable(FileState& file, uint64_t sequence_end) {
  const auto due = [&](const Loosened& loose) {
    return loose.flight == 0 && !loose.lost && loose.sequence < sequence_end;
  };
  uint64_t size_last = 0;
  std::map<uint64_t, uint64_t> sector_last;
  for (const Loosened& loose : file.loose) {
    if (!due(loose)) continue;
    if (loose.is_size) {
      file.disk.SetSize(loose.place);
      size_last = loose.sequence;
    } else {
      file.disk.Write(loose.place, *loose.bytes);
      sector_last[loose.place] = loose.sequence;
      // Bytes that are on disk are inside the file, also where a failed sync lost its size.
      const uint64_t end = std::min(loose.place + loose.bytes->size(), file.cache.size());
      if (end > file.disk.size()) file.disk.SetSize(end);
    }
  }
  // Older versions of what is on disk now, lost ones too, can no longer come back.
  std::erase_if(file.loose, [&](const Loosened& loose) {
    if (loose.flight != 0) return false;
    if (loose.is_size) return loose.sequence <= size_last;
    const auto last = sector_last.find(loose.place);
    return last != sector_last.end() && loose.sequence <= last->second;
  });
  file.disk.TrimToSize();
}

void SimDisk::Sync(uint64_t inode) { MakeDurable(Mutable(inode), sequence_); }

void SimDisk::LoseUnsynced(uint64_t inode) {
  FileState& file = Mutable(inode);
  for (Loosened& loose : file.loose) {
    if (loose.flight == 0) loose.lost = file.any_lost = true;
  }
}

// --- Batches in flight
// -----------------------------------------------------------------------------

uint64_t SimDisk::Launch(Flight flight) {
  flight.covers = sequence_;
  flight.id = sequence_++;
  for (const FlightWrite& write : flight.writes) {
    if (flight.kind == WriteKind::kFlush) continue;
    const uint64_t end = write.offset + write.bytes->size();
    const uint64_t size = Cache(write.inode).size();
    if (end > size && end - size > free_bytes()) return 0;
  }
  for (const FlightWrite& write : flight.writes) {
    if (flight.kind == WriteKind::kFlush) continue;
    Loosen(Mutable(write.inode), write.offset, *write.bytes, flight.id);
  }
  const uint64_t id = flight.id;
  flights_.push_back(std::move(flight));
  return id;
}

SimDisk::Flight SimDisk::TakeFlight(uint64_t id) {
  const auto it = std::find_if(flights_.begin(), flights_.end(),
                               [&](const Flight& flight) { return flight.id == id; });
  CHECK(it != flights_.end());
  Flight flight = std::move(*it);
  flights_.erase(it);
  return flight;
}

void SimDisk::LandUnsynced(uint64_t id) {
  const Flight flight = TakeFlight(id);
  if (flight.kind == WriteKind::kFlush) return;
  for (const FlightWrite& write : flight.writes) {
    FileState& file = Mutable(write.inode);
    // Among writes to one sector the one that completes last is the newest.
    std::vector<Loosened> landed;
    for (Loosened& loose : file.loose) {
      if (loose.flight == id) landed.push_back(std::move(loose));
    }
    std::erase_if(file.loose, [&](const Loosened& loose) { return loose.flight == id; });
    for (Loosened& loose : landed) {
      loose.flight = 0;
      loose.sequence = sequence_++;
      file.loose.push_back(std::move(loose));
    }
    file.cache.Write(write.offset, *write.bytes);
    const uint64_t end = write.offset + write.bytes->size();
    if (end > file.cache.size()) file.cache.SetSize(end);
  }
}

void SimDisk::MakeRangeDurable(FileState& file, const FlightWrite& write, uint64_t flight) {
  const uint64_t end = write.offset + write.bytes->size();
  file.disk.Write(write.offset, *write.bytes);
  if (end > file.disk.size()) file.disk.SetSize(end);
  std::erase_if(file.loose, [&](const Loosened& loose) {
    if (loose.flight == flight) return true;
    if (loose.flight != 0) return false;
    return loose.is_size ? loose.place <= file.disk.size() && file.cache.size() <= file.disk.size()
                         : loose.place >= write.offset && loose.place < end;
  });
  file.disk.TrimToSize();
}

void SimDisk::Land(uint64_t id) {
  const auto it = std::find_if(flights_.begin(), flights_.end(),
                               [&](const Flight& flight) { return flight.id == id; });
  CHECK(it != flights_.end());
  const Flight flight = *it;
  LandUnsynced(id);
  for (const FlightWrite& write : flight.writes) {
    if (flight.kind == WriteKind::kFlush) MakeDurable(Mutable(write.inode), flight.covers);
    if (flight.kind == WriteKind::kDurable) MakeRangeDurable(Mutable(write.inode), write, id);
  }
}

void SimDisk::LandPart(const Flight& flight, SeededRng& rng) {
  if (flight.kind == WriteKind::kFlush) return;
  for (const FlightWrite& write : flight.writes) {
    const uint64_t sector_bytes = options_.sector_bytes;
    std::erase_if(Mutable(write.inode).loose,
                  [&](const Loosened& loose) { return loose.flight == flight.id; });
    for (uint64_t at = 0; at < write.bytes->size(); at += sector_bytes) {
      if (rng.OneIn(2)) continue;
      const uint64_t count = std::min<uint64_t>(sector_bytes, write.bytes->size() - at);
      const ByteView sector = ByteView(*write.bytes).subspan(at, count);
      (void)Write(write.inode, write.offset + at,
                  sector);  // on a full disk it does not land either
    }
  }
}

void SimDisk::LandTorn(uint64_t id, uint64_t seed) {
  SeededRng rng(seed);
  LandPart(TakeFlight(id), rng);
}

bool SimDisk::TryLock(uint64_t inode, uint64_t handle) {
  const auto [it, fresh] = locks_.try_emplace(inode, handle);
  return fresh || it->second == handle;
}

void SimDisk::Unlock(uint64_t handle) {
  std::erase_if(locks_, [&](const auto& lock) { return lock.second == handle; });
}

// --- Crashes
// ---------------------------------------------------------------------------------------

std::vector<LooseWrite> SimDisk::Loose() const {
  // Only files that a cut can leave under some name.
  std::map<uint64_t, std::string> name_of;
  for (const LooseEntry& entry : entries_) {
    if (entry.added_inode != 0) name_of[entry.added_inode] = entry.added;
  }
  for (const auto& [name, inode] : disk_names_) name_of[inode] = name;
  for (const auto& [name, inode] : names_) name_of[inode] = name;
  std::vector<LooseWrite> all;
  for (const auto& [inode, name] : name_of) {
    for (const Loosened& loose : files_.at(inode)->loose) {
      all.push_back({loose.is_size ? LooseWrite::Kind::kSize : LooseWrite::Kind::kData,
                     loose.sequence, name, loose.place});
    }
  }
  for (const LooseEntry& entry : entries_) {
    all.push_back({LooseWrite::Kind::kEntry, entry.sequence,
                   entry.removed.empty()
                       ? "+" + entry.added
                       : "-" + entry.removed + (entry.added.empty() ? "" : " +" + entry.added)});
  }
  std::sort(all.begin(), all.end(),
            [](const LooseWrite& a, const LooseWrite& b) { return a.sequence < b.sequence; });
  return all;
}

SimDisk SimDisk::PowerCut(const std::vector<bool>& kept) const {
  const std::vector<LooseWrite> loose = Loose();
  CHECK(kept.size() == loose.size());
  std::set<uint64_t> keep;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) keep.insert(loose[i].sequence);
  }
  for (const LooseEntry& entry : entries_) {
    if (keep.contains(entry.sequence) && entry.needs != 0) keep.insert(entry.needs);
  }

  SimDisk after(*this);
  ++after.boot_;
  for (const LooseEntry& entry : entries_) {
    if (keep.contains(entry.sequence)) after.ApplyEntry(entry);
  }
  std::erase_if(after.disk_names_, [&](const auto& entry) {
    return !after.disk_folders_.contains(FolderOf(entry.first));
  });
  after.names_ = after.disk_names_;
  after.folders_ = after.disk_folders_;
  after.entries_.clear();
  after.flights_.clear();
  after.late_.clear();
  after.locks_.clear();
  std::map<uint64_t, std::shared_ptr<FileState>> files;
  for (const auto& [name, inode] : after.names_) {
    const FileState& before = *files_.at(inode);
    auto file = std::make_shared<FileState>();
    file->disk = before.disk;
    uint64_t size_last = 0;
    for (const Loosened& write : before.loose) {
      if (write.is_size && keep.contains(write.sequence)) size_last = write.sequence;
    }
    for (const Loosened& write : before.loose) {
      if (write.is_size) {
        if (write.sequence <= size_last) file->disk.SetSize(write.place);
      } else if (keep.contains(write.sequence)) {
        file->disk.Write(write.place, *write.bytes);
      }
    }
    file->disk.TrimToSize();
    file->cache = file->disk;
    files[inode] = std::move(file);
  }
  after.files_ = std::move(files);
  return after;
}

SimDisk SimDisk::Kill(uint64_t seed, bool late) const {
  SeededRng rng(seed);
  SimDisk after(*this);
  std::map<uint64_t, uint64_t> pinned;
  while (!after.flights_.empty()) {
    const Flight flight = after.TakeFlight(after.flights_[rng.Below(after.flights_.size())].id);
    const uint64_t fate = rng.Below(late ? 4 : 3);
    if (fate == 3 && flight.kind != WriteKind::kFlush) {
      for (const FlightWrite& write : flight.writes) {
        const auto lock = locks_.find(write.inode);
        if (lock != locks_.end() && lock->second == write.handle) pinned.insert(*lock);
      }
      after.late_.push_back(flight);
    } else if (fate == 0) {
      after.flights_.push_back(flight);
      after.LandUnsynced(flight.id);
    } else if (fate == 1) {
      after.LandPart(flight, rng);
    } else {
      for (const FlightWrite& write : flight.writes) {
        std::erase_if(after.Mutable(write.inode).loose,
                      [&](const Loosened& loose) { return loose.flight == flight.id; });
      }
    }
  }
  after.locks_ = std::move(pinned);
  return after;
}

bool SimDisk::LandLate(uint64_t inode) {
  const auto it = std::find_if(late_.begin(), late_.end(), [&](const Flight& flight) {
    return inode == 0 ||
           std::any_of(flight.writes.begin(), flight.writes.end(),
                       [&](const FlightWrite& write) { return write.inode == inode; });
  });
  if (it == late_.end()) return false;
  flights_.push_back(*it);
  const uint64_t id = it->id;
  late_.erase(it);
  LandUnsynced(id);
  std::erase_if(locks_, [&](const auto& lock) {
    const auto still_pins = [&](const Flight& flight) {
      return std::any_of(flight.writes.begin(), flight.writes.end(),
                         [&](const FlightWrite& write) { return write.handle == lock.second; });
    };
    return std::none_of(late_.begin(), late_.end(), still_pins);
  });
  return true;
}

// --- For tests
// -------------------------------------------------------------------------------------

std::vector<std::string> SimDisk::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, inode] : names_) names.push_back(name);
  return names;
}

std::string SimDisk::Contents(const std::string& name) const {
  const SimContent& cache = Cache(Find(name));
  std::string bytes(cache.size(), '\0');
  cache.Read(0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
  return bytes;
}

void SimDisk::Damage(const std::string& name, uint64_t offset, ByteView bytes) {
  FileState& file = Mutable(Find(name));
  CHECK(offset + bytes.size() <= file.cache.size());
  file.cache.Write(offset, bytes);
  file.disk.Write(offset, bytes);
}

void SimDisk::SetContents(const std::string& name, ByteView bytes) {
  CHECK(folders_.contains(FolderOf(name)));
  if (Find(name) == 0) {
    disk_names_[name] = Create(name);
    entries_.pop_back();
  }
  FileState& file = Mutable(Find(name));
  file = FileState{};
  file.cache.SetSize(bytes.size());
  file.cache.Write(0, bytes);
  file.disk = file.cache;
}

void SimDisk::SetSize(const std::string& name, uint64_t bytes) {
  FileState& file = Mutable(Find(name));
  file.cache.SetSize(bytes);
  file.disk.SetSize(bytes);
}

void SimDisk::Erase(const std::string& name) {
  names_.erase(name);
  disk_names_.erase(name);
  std::erase_if(entries_,
                [&](const LooseEntry& e) { return e.added == name || e.removed == name; });
}

uint64_t SimDisk::Fingerprint() const {
  uint64_t print = 0;
  for (const std::string& folder : folders_) print = Checksum(AsBytes(folder), print);
  for (const auto& [name, inode] : names_) {
    print = Checksum(AsBytes(name), print);
    print = Checksum(AsBytes(Contents(name)), print);
  }
  return print;
}

std::vector<std::vector<bool>> CutChoices(size_t loose_count, size_t count_max, uint64_t seed) {
  std::vector<std::vector<bool>> choices;
  if (loose_count <= 12 && (size_t{1} << loose_count) <= count_max) {
    for (size_t bits = 0; bits < size_t{1} << loose_count; ++bits) {
      std::vector<bool>& choice = choices.emplace_back(loose_count);
      for (size_t i = 0; i < loose_count; ++i) choice[i] = ((bits >> i) & 1) != 0;
    }
    return choices;
  }
  SeededRng rng(seed);
  choices.emplace_back(loose_count, false);
  choices.emplace_back(loose_count, true);
  // Of the systematic ones as many as leave a third of the room to chance, starting anywhere.
  const size_t systematic_max = count_max * 2 / 3;
  const size_t start = rng.Below(loose_count);
  for (size_t k = 0; k < loose_count && choices.size() + 3 <= systematic_max; ++k) {
    const size_t i = (start + k) % loose_count;
    choices.emplace_back(loose_count, false)[i] = true;
    choices.emplace_back(loose_count, true)[i] = false;
    std::vector<bool>& prefix = choices.emplace_back(loose_count, false);
    std::fill_n(prefix.begin(), i, true);
  }
  while (choices.size() < count_max) {
    const uint64_t one_in = 2 + rng.Below(6);
    const bool mostly = rng.OneIn(2);
    std::vector<bool>& choice = choices.emplace_back(loose_count);
    for (size_t i = 0; i < loose_count; ++i) choice[i] = rng.OneIn(one_in) != mostly;
  }
  if (choices.size() > count_max) choices.resize(count_max);
  return choices;
}

}  // namespace holdfast
