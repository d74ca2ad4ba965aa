// SlotMap: a hash map of positions whose entries have numbers, so that a walk over them goes on
// across inserts and erases.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "journal/base/check.h"
#include "stores/key_maps.h"

namespace holdfast {

// An entry keeps its slot, and its place in memory, until it is erased; the slot is then used
// again. Threads: one at a time.
template <typename Value>
class SlotMap {
 public:
  using Slot = uint32_t;
  struct Entry {
    PositionKey key;
    Value value;
    bool live = true;
  };

  SlotMap() = default;
  SlotMap(const SlotMap&) = delete;
  SlotMap& operator=(const SlotMap&) = delete;

  // Null if there is no such key.
  Value* Find(const PositionKeyView& key) { return Has(key) ? &found_->value : nullptr; }
  const Value* Find(const PositionKeyView& key) const {
    return Has(key) ? &found_->value : nullptr;
  }
  // A new entry has an empty Value.
  Value& FindOrInsert(const PositionKeyView& key) {
    if (Value* found = Find(key); found != nullptr) return *found;
    Slot slot;
    if (free_.empty()) {
      slot = static_cast<Slot>(entries_.size());
      entries_.push_back({PositionKey(key), Value()});
    } else {
      slot = free_.back();
      free_.pop_back();
      entries_[slot] = {PositionKey(key), Value()};
    }
    slots_.insert(slot);
    return entries_[slot].value;
  }
  // Needs: there is such a key.
  void Erase(const PositionKeyView& key) {
    const auto found = slots_.find(key);
    CHECK(found != slots_.end());
    const Slot slot = *found;
    slots_.erase(found);
    entries_[slot] = {PositionKey(PositionKeyView()), Value(), false};
    free_.push_back(slot);
  }
  void Clear() {
    found_ = nullptr;
    slots_.clear();
    entries_.clear();
    free_.clear();
  }

  size_t size() const { return slots_.size(); }
  void Reserve(size_t keys) { slots_.reserve(keys); }
  // By slot; those that are not live hold nothing.
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  // Then found_ is its entry.
  bool Has(const PositionKeyView& key) const {
    if (found_ != nullptr && found_->live && PositionKeyView(found_->key) == key) return true;
    const auto found = slots_.find(key);
    if (found == slots_.end()) return false;
    found_ = const_cast<Entry*>(&entries_[*found]);
    return true;
  }

  struct Hash {
    using is_transparent = void;
    const std::deque<Entry>* entries;
    size_t operator()(Slot slot) const { return (*this)((*entries)[slot].key); }
    size_t operator()(const PositionKeyView& key) const { return PositionKeyHash()(key); }
  };
  struct Equal {
    using is_transparent = void;
    const std::deque<Entry>* entries;
    bool operator()(Slot a, Slot b) const { return a == b; }
    bool operator()(Slot slot, const PositionKeyView& key) const {
      return PositionKeyView((*entries)[slot].key) == key;
    }
    bool operator()(const PositionKeyView& key, Slot slot) const { return (*this)(slot, key); }
  };

  std::deque<Entry> entries_;
  absl::flat_hash_set<Slot, Hash, Equal> slots_{0, Hash{&entries_}, Equal{&entries_}};
  std::vector<Slot> free_;
  mutable Entry* found_ = nullptr;  // the last one found: a record is judged, then applied
};

}  // namespace holdfast
