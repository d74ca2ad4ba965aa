// Hash maps with the keys of the local stores, looked up by views.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "holdfast/offset_store.h"
#include "journal/base/checksum.h"

namespace holdfast {

struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return Checksum(AsBytes(name), 0); }
};
struct NameEqual {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
};
template <typename Value>
using NameMap = absl::flat_hash_map<std::string, Value, NameHash, NameEqual>;

// An OffsetKey or a SourceKey: each is one or two names and one or two numbers.
struct PositionKeyView {
  std::string_view topic, client;
  uint64_t partition = 0, incarnation = 0;
  bool operator==(const PositionKeyView&) const = default;
};
inline PositionKeyView ViewOf(const OffsetKey& key) {
  return {key.topic, key.client, key.partition, 0};
}
inline PositionKeyView ViewOf(const SourceKey& key) {
  return {key.topic, {}, key.partition, key.incarnation};
}

struct PositionKey {
  std::string topic, client;
  uint64_t partition = 0, incarnation = 0;

  explicit PositionKey(const PositionKeyView& view)
      : topic(view.topic),
        client(view.client),
        partition(view.partition),
        incarnation(view.incarnation) {}
  operator PositionKeyView() const { return {topic, client, partition, incarnation}; }  // NOLINT
};
struct PositionKeyHash {
  using is_transparent = void;
  size_t operator()(const PositionKeyView& key) const {
    const uint64_t numbers = key.partition * 0x9e3779b97f4a7c15 ^ key.incarnation;
    return Checksum(AsBytes(key.client), Checksum(AsBytes(key.topic), numbers));
  }
};
struct PositionKeyEqual {
  using is_transparent = void;
  bool operator()(const PositionKeyView& a, const PositionKeyView& b) const { return a == b; }
};
template <typename Value>
using PositionMap = absl::flat_hash_map<PositionKey, Value, PositionKeyHash, PositionKeyEqual>;

}  // namespace holdfast
