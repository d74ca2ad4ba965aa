// A small store to damage, and the question what became of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "holdfast/options.h"
#include "tests/sim/history.h"
#include "tests/sim/sim_disk.h"

namespace holdfast {

struct BuildOptions {
  uint64_t seed = 1;
  bool clean = true;  // false: the last boot is killed, with everything that it wrote synced
  // Calls of each boot, a group of several calls each few. Every boot begins a segment; 18 calls
  // fill more than one.
  std::vector<size_t> boots = {24, 24, 24};
  absl::Duration commit_interval = absl::Seconds(1);
};

// What stands where in one segment of the chain.
struct GroupPlace {
  uint64_t offset = 0, bytes = 0;
  uint64_t synced = 0;  // what its header says
  std::vector<std::pair<uint64_t, uint64_t>>
      batches;  // offset in the file, length; empty for a Link
};

struct BuiltStore {
  SimDisk disk;
  History history;
  std::map<std::string, std::vector<GroupPlace>> groups;  // by file name
  uint64_t end(const std::string& segment) const;         // behind the last group

  // The state that was confirmed: everything.
  const Model& model() const { return history.After(history.begun()); }
};
BuiltStore BuildStore(const BuildOptions& options);

// So small that every place in it can be tried: a chain of three boots in the smallest segments.
inline const std::vector<size_t> kFewCalls = {6, 6, 6};
// And one with a full segment, a rotation and segments made ahead of need.
inline const std::vector<size_t> kOneRotation = {6, 18};

// Opens a damaged copy and judges.
struct Verdict {
  bool opened = false;
  bool told = false;      // refused with kDataLoss
  size_t count = 0;       // if opened: how many calls are there
  std::string complaint;  // empty: no crash, no wrong value, and a refusal changed no byte
};
// `required`: how many calls must be there if it opens.
Verdict OpenDamaged(const BuiltStore& store, const SimDisk& damaged, size_t required);

}  // namespace holdfast
