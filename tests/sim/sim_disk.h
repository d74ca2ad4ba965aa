// SimDisk: the state of one simulated directory, as a value. It has two views: the cache view is
// what reads see and what survives a process kill; the disk view is what certainly survives a power
// cut. What stands between them is a list of loose writes, and a power cut keeps any subset of
// those.
//
//   plain write     loose, sector by sector, until a sync of its file that began after it completed
//   durable write   on disk when it completes, its own ranges only
//   file size       loose until a sync of the file
//   create, rename, remove, new folder
//                   loose until a sync of the folder
//   batch in flight loose as a whole and not yet seen by reads
//
// Pages are shared between copies, and zeros cost nothing: a copy is cheap, so a test takes one
// before each operation and makes every crash from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "journal/base/bytes.h"
#include "journal/base/seeded_rng.h"
#include "journal/io/storage.h"
#include "tests/sim/sim_content.h"

namespace holdfast {

// One thing that a power cut may keep or lose.
struct LooseWrite {
  enum class Kind { kData, kSize, kEntry };
  Kind kind = Kind::kData;
  uint64_t sequence = 0;  // in the order of issue
  std::string name;       // of the file or entry, for people
  uint64_t place = 0;     // kData: offset of the sector; kSize: the size
};

struct SimDiskOptions {
  uint32_t sector_bytes = 512;             // written whole or not at all; 512 or 4096
  uint64_t bytes_max = uint64_t{1} << 50;  // of all files together
};

class SimDisk {
 public:
  explicit SimDisk(const SimDiskOptions& options = {});

  // --- Crashes ---
  // What a cut at this moment may keep or lose, in the order of issue.
  std::vector<LooseWrite> Loose() const;
  // The disk after a power cut that kept exactly those (`kept` is as long as Loose()), besides a
  // size that a later kept size of the same file implies. The host has booted anew; no lock is
  // left.
  SimDisk PowerCut(const std::vector<bool>& kept) const;

  // The disk after the process was killed: the cache view lives on. Of the batches in flight the
  // seed lets some land wholly, some in part, some never; with `late` on, some land only later and
  // pin the locks of their files until then.
  SimDisk Kill(uint64_t seed, bool late) const;
  size_t late_count() const { return late_.size(); }
  // One late batch lands: the oldest that pins `inode`, or any for 0. False: there is none.
  bool LandLate(uint64_t inode);

  // --- What a test may look at and damage ---
  // Full names of all files in the cache view, sorted.
  std::vector<std::string> Names() const;
  bool Exists(const std::string& name) const { return names_.contains(name); }
  std::string Contents(const std::string& name) const;
  // Changes both views at once, as decay or a careless person would.
  void Damage(const std::string& name, uint64_t offset, ByteView bytes);
  void SetContents(const std::string& name, ByteView bytes);
  void SetSize(const std::string& name, uint64_t bytes);
  void Erase(const std::string& name);
  // Names and bytes of the cache view.
  uint64_t Fingerprint() const;

  // --- What SimStorage does ---
  uint64_t Find(const std::string& name) const;  // inode; 0: none
  bool HasFolder(const std::string& folder) const { return folders_.contains(folder); }
  uint64_t Create(const std::string& name);
  void MakeFolder(const std::string& folder);
  void Rename(const std::string& from, const std::string& to);
  void Remove(const std::string& name);
  void SyncFolder(const std::string& folder);
  std::vector<std::string> List(const std::string& folder) const;

  const SimContent& Cache(uint64_t inode) const;
  // False: over bytes_max, nothing happened.
  bool Write(uint64_t inode, uint64_t offset, ByteView bytes);
  bool Resize(uint64_t inode, uint64_t bytes);
  void Sync(uint64_t inode);
  // A sync failed: what it should have covered is seen by reads, but no later sync brings it to
  // disk.
  void LoseUnsynced(uint64_t inode);
  uint64_t free_bytes() const;

  struct FlightWrite {
    uint64_t inode = 0;
    uint64_t handle = 0;
    uint64_t offset = 0;
    std::shared_ptr<const std::vector<std::byte>> bytes;  // Shared by copies of the disk.
  };
  struct Flight {
    uint64_t id = 0;  // given by Launch
    WriteKind kind = WriteKind::kPlain;
    std::vector<FlightWrite> writes;  // kFlush: one, without bytes
    uint64_t covers = 0;              // given by Launch; kFlush: loose writes with a lower sequence
  };
  // Starts a batch and gives it its id; 0: over bytes_max, nothing happened.
  uint64_t Launch(Flight flight);
  // It completes as it should.
  void Land(uint64_t id);
  // It completes without having become durable: as a plain write (a lie), or with an error after
  // only some of its sectors were written (torn).
  void LandUnsynced(uint64_t id);
  void LandTorn(uint64_t id, uint64_t seed);
  const std::vector<Flight>& flights() const { return flights_; }

  // Numbers an open file. Locks belong to it; they die with it, or with the process.
  uint64_t NewHandle() { return ++handle_last_; }
  bool TryLock(uint64_t inode, uint64_t handle);
  void Unlock(uint64_t handle);

  uint64_t boot() const { return boot_; }
  const SimDiskOptions& options() const { return options_; }

 private:
  struct Loosened {  // one sector or one size
    uint64_t sequence = 0;
    bool is_size = false;
    bool lost = false;    // no sync covers it any more
    uint64_t place = 0;   // offset, or size
    uint64_t flight = 0;  // in flight; 0: completed
    std::shared_ptr<const std::vector<std::byte>> bytes;
  };
  struct FileState {
    SimContent cache, disk;
    std::vector<Loosened> loose;
    bool any_lost = false;
  };
  struct LooseEntry {
    uint64_t sequence = 0;
    std::string folder;  // whose sync makes it durable
    std::string added;   // full name; empty: none
    uint64_t added_inode = 0;
    bool added_is_folder = false;
    std::string removed;  // full name; empty: none
    uint64_t removed_inode = 0;
    uint64_t needs = 0;  // the other half of a rename between folders
  };

  static std::string FolderOf(const std::string& name);
  FileState& Mutable(uint64_t inode);
  void Loosen(FileState& file, uint64_t offset, ByteView bytes, uint64_t flight);
  void MakeDurable(FileState& file, uint64_t sequence_end);
  void MakeRangeDurable(FileState& file, const FlightWrite& write, uint64_t flight);
  void ApplyEntry(const LooseEntry& entry);
  Flight TakeFlight(uint64_t id);
  void LandPart(const Flight& flight, SeededRng& rng);
  uint64_t UsedBytes() const;

  SimDiskOptions options_;
  uint64_t boot_ = 1;
  uint64_t sequence_ = 1;
  uint64_t inode_last_ = 0;
  uint64_t handle_last_ = 0;
  std::map<std::string, uint64_t> names_, disk_names_;
  std::set<std::string> folders_, disk_folders_;
  std::map<uint64_t, std::shared_ptr<FileState>> files_;  // Shared with copies until one writes.
  std::vector<LooseEntry> entries_;
  std::vector<Flight> flights_;
  std::vector<Flight> late_;
  std::map<uint64_t, uint64_t> locks_;  // inode to handle
};

// Choices of what a power cut keeps: every subset where there are few loose writes, otherwise none,
// all, each alone, each missing, prefixes, and random ones; at most `count_max`.
std::vector<std::vector<bool>> CutChoices(size_t loose_count, size_t count_max, uint64_t seed);

}  // namespace holdfast
