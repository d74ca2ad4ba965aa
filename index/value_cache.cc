#include "index/value_cache.h"

#include <algorithm>

namespace holdfast {

SharedBytes ValueCache::Find(uint32_t slot, Lsn lsn) {
  if (used_ != 0) {
    const uint32_t entry = table_[PlaceOf(slot)];
    if (entry != kNone && entries_[entry].lsn == lsn) {
      ++hits_;
      Unlink(entry);
      Link(entry);
      return entries_[entry].value;
    }
  }
  ++misses_;
  return SharedBytes();
}

void ValueCache::Insert(uint32_t slot, Lsn lsn, ByteView value) {
  if (options_.entries_max == 0 || CostOf(value) > options_.bytes_max) return;
  if (used_ != 0) {
    const size_t place = PlaceOf(slot);
    if (const uint32_t entry = table_[place]; entry != kNone) {
      if (entries_[entry].lsn >= lsn) return;
      EraseEntry(place);
    }
  }
  while (used_ != 0 &&
         (used_ == options_.entries_max || bytes_ + CostOf(value) > options_.bytes_max)) {
    EraseEntry(PlaceOf(entries_[oldest_].slot));
  }
  if ((used_ + 1) * 2 > table_.size()) GrowTable();

  uint32_t entry = free_;
  if (entry != kNone) {
    free_ = entries_[entry].newer;
  } else {
    entry = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
  }
  entries_[entry].value = SharedBytes(value);
  entries_[entry].lsn = lsn;
  entries_[entry].slot = slot;
  table_[PlaceOf(slot)] = entry;
  Link(entry);
  ++used_;
  bytes_ += CostOf(value);
}

void ValueCache::Erase(uint32_t slot) {
  if (used_ == 0) return;
  if (const size_t place = PlaceOf(slot); table_[place] != kNone) EraseEntry(place);
}

size_t ValueCache::PlaceOf(uint32_t slot) const {
  size_t place = Home(slot);
  while (table_[place] != kNone && entries_[table_[place]].slot != slot) {
    place = (place + 1) & (table_.size() - 1);
  }
  return place;
}

void ValueCache::GrowTable() {
  table_.assign(std::max<size_t>(64, table_.size() * 2), kNone);
  for (uint32_t entry = newest_; entry != kNone; entry = entries_[entry].older) {
    table_[PlaceOf(entries_[entry].slot)] = entry;
  }
}

void ValueCache::Link(uint32_t entry) {
  entries_[entry].newer = kNone;
  entries_[entry].older = newest_;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = entry;
  newest_ = entry;
}

void ValueCache::Unlink(uint32_t entry) {
  const uint32_t newer = entries_[entry].newer;
  const uint32_t older = entries_[entry].older;
  (newer == kNone ? newest_ : entries_[newer].older) = older;
  (older == kNone ? oldest_ : entries_[older].newer) = newer;
}

void ValueCache::EraseEntry(size_t place) {
  const uint32_t entry = table_[place];
  bytes_ -= CostOf(entries_[entry].value.view());
  --used_;
  entries_[entry].value = SharedBytes();
  Unlink(entry);
  entries_[entry].newer = free_;
  free_ = entry;

  // Closes the hole, as HashIndex::Erase does.
  const size_t mask = table_.size() - 1;
  size_t hole = place;
  for (size_t i = (hole + 1) & mask; table_[i] != kNone; i = (i + 1) & mask) {
    const size_t displaced = (i - Home(entries_[table_[i]].slot)) & mask;
    if (displaced >= ((i - hole) & mask)) {
      table_[hole] = table_[i];
      hole = i;
    }
  }
  table_[hole] = kNone;
}

}  // namespace holdfast
