// BatchOverlay: what the records judged so far will make of the keys they touch, before any of them
// is applied.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "journal/base/bytes.h"

namespace holdfast {

// What one batch leaves of one key. `values` mean what the store that owns the space wants.
struct PendingState {
  bool live = false;
  uint64_t values[2] = {0, 0};
};

// Small batches are searched one by one, large ones through a table. Keys borrow the bytes of the
// batch.
// Threads: one at a time.
class BatchOverlay {
 public:
  // Of which kind a key is; the same bytes in two spaces are two keys.
  enum class Space : uint8_t { kDelivery, kOffset, kStart, kSeen, kCursor, kDeadLetter };

  // Null: no record of the batch has touched the key yet.
  PendingState* Find(Space space, std::string_view key) {
    if (entries_.size() > kSearchedMax) return FindInTable(space, key);
    for (Entry& entry : entries_) {
      if (entry.space == space && entry.key == key) return &entry.state;
    }
    return nullptr;
  }
  void Set(Space space, std::string_view key, const PendingState& state) {
    Set(Find(space, key), space, key, state);
  }
  // The same, where `found` is what Find gave for the key. What it gave before is no longer valid.
  void Set(PendingState* found, Space space, std::string_view key, const PendingState& state) {
    if (found != nullptr) {
      *found = state;
      return;
    }
    entries_.push_back({space, key, state});
    if (entries_.size() > kSearchedMax) NameNewest();
  }
  void Clear() {
    entries_.clear();
    if (!table_.empty()) table_.clear();
  }

 private:
  static constexpr size_t kSearchedMax = 16;
  struct Entry {
    Space space;
    std::string_view key;
    PendingState state;
  };
  struct Name {
    Space space;
    std::string_view key;
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    size_t operator()(const Name& name) const;
  };
  // Brings the entries that the table does not name yet into it.
  void NameNewest();
  PendingState* FindInTable(Space space, std::string_view key);

  std::vector<Entry> entries_;
  std::unordered_map<Name, size_t, NameHash> table_;  // index into entries_, once there are many
};

}  // namespace holdfast
