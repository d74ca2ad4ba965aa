// ValueCache: the values of the slots used last, bounded by number and bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "index/shared_bytes.h"
#include "journal/base/strong.h"

namespace holdfast {

// Keyed by the slot number of a HashIndex; an entry is good for one version of the slot's value,
// named by the LSN of the record that holds it. LSNs never repeat, so an entry of an earlier
// version, or of an earlier key of the slot, can never be taken for a newer one.
// Threads: one at a time.
class ValueCache {
 public:
  struct Options {
    uint64_t entries_max = 10'000;  // 0: keeps nothing
    uint64_t bytes_max = uint64_t{64} << 20;
  };
  explicit ValueCache(const Options& options) : options_(options) {}
  ValueCache(const ValueCache&) = delete;
  ValueCache& operator=(const ValueCache&) = delete;

  // The value of `slot` as record `lsn` left it, and makes it the one used last; empty if it is not
  // here.
  SharedBytes Find(uint32_t slot, Lsn lsn);
  // Copies `value`; least recently used ones leave to make room. Does nothing for a value that
  // alone is over the bound, or if a newer version is here.
  void Insert(uint32_t slot, Lsn lsn, ByteView value);
  void Erase(uint32_t slot);

  uint64_t entries() const { return used_; }
  // Values and what keeping them costs.
  uint64_t bytes() const { return bytes_; }
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Entry {
    SharedBytes value;
    Lsn lsn;
    uint32_t slot = kNone;
    uint32_t newer = kNone;  // in order of use; of a free entry: the next free one
    uint32_t older = kNone;
  };
  static uint64_t CostOf(ByteView value) { return value.size() + sizeof(Entry) + 16; }

  size_t Home(uint32_t slot) const {
    return static_cast<size_t>((uint64_t{slot} * 0x9e3779b97f4a7c15) >> 32) & (table_.size() - 1);
  }
  // Where the table names the entry of `slot`, or would.
  size_t PlaceOf(uint32_t slot) const;
  void GrowTable();
  void Link(uint32_t entry);
  void Unlink(uint32_t entry);
  void EraseEntry(size_t place);

  const Options options_;
  std::vector<Entry> entries_;
  std::vector<uint32_t>
      table_;  // open addressing, at most half full: index into entries_, or kNone
  uint32_t free_ = kNone;
  uint32_t newest_ = kNone;
  uint32_t oldest_ = kNone;
  uint64_t used_ = 0;
  uint64_t bytes_ = 0;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

}  // namespace holdfast
