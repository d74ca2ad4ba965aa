// What Holdfast keeps in a config of Nacos: an entry of a MetaStore as text, and its key as the
// name of the config. PURE.
//
// Nacos counts nothing that a MetaStore needs, so the content carries the numbers itself. A config
// is never removed: a deleted entry stays as a tombstone, so that its numbers go on and the next
// write compares with something. Each content stands only once in the life of its config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "journal/base/status.h"

namespace holdfast {

struct NacosRecord {
  bool there = true;             // false: a tombstone
  uint64_t revision = 0;         // of this write
  uint64_t create_revision = 0;  // as MetaEntry's; of a tombstone 0
  uint64_t version = 0;          // as MetaEntry's; of a tombstone 0
  uint64_t writes = 0;           // of the config, this one included: its place in their sequence
  std::string write_id;          // of this write and no other: letters, digits and '-'
  std::string request_id;        // that the caller gave
  std::string value;

  bool operator==(const NacosRecord&) const = default;
};

// ASCII, and nothing in it that an HTML form writes longer, but a few spaces.
std::string EncodeNacosRecord(const NacosRecord& record);
// Errors: kDataLoss  it is not one
//         kUnimplemented  of a version that this program does not know
StatusOr<NacosRecord> DecodeNacosRecord(std::string_view content);

inline constexpr size_t kNacosDataIdBytesMax = 255;
// A name takes letters, digits and ".:-_" only, so a key is written with '/' as ':' and all other
// bytes but letters, digits and '.' as -XX. A prefix of a key is a prefix of its name.
std::string NacosDataId(std::string_view key);
// None: no key has this name.
std::optional<std::string> KeyOfNacosDataId(std::string_view data_id);

}  // namespace holdfast
