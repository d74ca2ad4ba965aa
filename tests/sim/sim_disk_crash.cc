// What a crash leaves of a simulated disk: a power cut, a kill, writes that land late.
#include <algorithm>
#include <utility>

#include "tests/sim/sim_disk.h"

namespace holdfast {

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
