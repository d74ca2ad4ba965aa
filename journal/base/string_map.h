// A hash map keyed by std::string and looked up by std::string_view (the packaged Abseil's own maps
// take its own string_view only).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "journal/base/checksum.h"

namespace holdfast {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return Checksum(AsBytes(text), 0); }
};

template <typename Value>
using StringMap = absl::flat_hash_map<std::string, Value, StringHash, std::equal_to<>>;

}  // namespace holdfast
