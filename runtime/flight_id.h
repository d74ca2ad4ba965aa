// FlightIds: the ids of deliveries in flight, in 8 bytes each. With millions in flight their text
// would be a good part of what they take, and the engine has it already.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "journal/base/string_map.h"

namespace holdfast {

// Of one id, and never of another.
using FlightKey = uint64_t;

// The text of an id.
class FlightId {
 public:
  std::string_view view() const { return {text_.data(), text_.size()}; }

 private:
  friend class FlightIds;
  absl::InlinedVector<char, 48> text_;
};

// What an engine makes, <bootEpoch>-<salt>-<seq>, is kept as the number at its end and the number
// of what stands before it: a boot has one of those. Ids that end otherwise, and those beyond
// kPrefixesMax, are kept as they are.
// Threads: one at a time.
class FlightIds {
 public:
  static constexpr size_t kPrefixesMax = 4'096;

  // The id comes into flight. Needs: it is not
  FlightKey Add(std::string_view id);
  // Its key, if it is in flight; none, or the key of none that is, if it is not.
  std::optional<FlightKey> Find(std::string_view id) const;
  FlightId TextOf(FlightKey key) const;
  // It is not in flight any more.
  void Remove(FlightKey key);

 private:
  static constexpr uint32_t kNumberBits = 48;
  static constexpr size_t kDigitsMax = 14;
  static constexpr FlightKey kKept = std::numeric_limits<FlightKey>::max() << kNumberBits;
  static_assert(100'000'000'000'000 < uint64_t{1} << kNumberBits);
  static_assert(kPrefixesMax < kKept >> kNumberBits);

  struct Parts {
    std::string_view prefix, digits;
  };
  static Parts Split(std::string_view id);
  static uint64_t NumberIn(std::string_view digits);
  std::optional<uint64_t> PrefixOf(std::string_view prefix) const;

  std::vector<std::string> prefixes_;  // by number
  StringMap<uint64_t> prefix_of_;
  mutable uint64_t found_ = 0;  // the prefix found last: nearly always the next one's too
  absl::flat_hash_map<FlightKey, std::string> kept_;
  StringMap<FlightKey> kept_of_;
  FlightKey next_kept_ = kKept;
};

}  // namespace holdfast
