#include "tests/sim/sim_disk.h"

#include <algorithm>
#include <utility>

#include "journal/base/checksum.h"

namespace holdfast {

SimDisk::SimDisk(const SimDiskOptions& options) : options_(options) {
  CHECK(SimContent::kPageBytes % options_.sector_bytes == 0);
  folders_.insert("");
  disk_folders_.insert("");
}

// --- Names ---

std::string SimDisk::FolderOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

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

// --- Bytes ---

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

// --- Batches in flight ---

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

// --- For tests ---

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

}  // namespace holdfast
