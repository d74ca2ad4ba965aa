// Boots of a small store on the simulated disk, for the tests of this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "journal/torn_tail.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"
#include "tests/support/store_builder.h"

namespace holdfast {

inline std::vector<uint64_t> UpTo(uint64_t last) {
  std::vector<uint64_t> lsns(last);
  std::iota(lsns.begin(), lsns.end(), 1);
  return lsns;
}

// One process's life with a store: everything goes when it does.
struct Boot {
  explicit Boot(const SimDisk& disk, uint64_t seed = 1)
      : storage(std::make_unique<SimStorage>(disk)) {
    StatusOr<StoreBuilder> built = StoreBuilder::Open(*storage, machine, seed);
    status = built.status();
    if (built.ok()) builder.emplace(*std::move(built));
  }
  StoreBuilder& store() { return *builder; }
  SimDisk Killed() { return storage->disk().Kill(1, /*late=*/false); }
  // Power is cut: what was not synced is lost, or all of it got to the disk in time.
  SimDisk PowerCut() { return Cut(false); }
  SimDisk PowerCutKeepingAll() { return Cut(true); }

  std::unique_ptr<SimStorage> storage;
  RecordingMachine machine;
  Status status;
  std::optional<StoreBuilder> builder;

 private:
  SimDisk Cut(bool keep) const {
    const SimDisk disk = storage->disk();
    return disk.PowerCut(std::vector<bool>(disk.Loose().size(), keep));
  }
};

// 3 groups in one segment, two more in the next; everything synced. 12 records.
inline SimDisk TwoSegments(bool clean) {
  Boot boot{SimDisk()};
  CHECK_OK(boot.status);
  boot.store().AppendSynced({1, 2});
  boot.store().AppendSynced({3});
  boot.store().AppendSynced({1});
  boot.store().Rotate(*boot.storage);
  boot.store().AppendSynced({2, 1});
  boot.store().AppendSynced({1, 1});
  if (clean) boot.store().CloseClean();
  return boot.Killed();
}

inline std::string Name(uint64_t id) { return SegmentFileName(SegmentId(id)); }
inline void Flip(SimDisk& disk, const std::string& name, uint64_t offset) {
  const std::string byte(1, static_cast<char>(disk.Contents(name).at(offset) ^ 0x10));
  disk.Damage(name, offset, AsBytes(byte));
}

}  // namespace holdfast
