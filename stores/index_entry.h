// IndexEntry: one key of an index with its state, as a checkpoint holds it (FORMAT.md §8).
#pragma once

#include <string>
#include <string_view>

#include "index/hash_index.h"
#include "journal/base/status.h"
#include "journal/format/codec.h"

namespace holdfast {

struct IndexEntry {
  std::string_view key;  // borrowed
  IndexState state;
};

void EncodeIndexEntry(std::string_view key, const IndexState& state, std::string& out);
// Takes one entry from the front of `in`.
// Errors: kDataLoss  no entry stands there, or a field is out of the range of an index
StatusOr<IndexEntry> TakeIndexEntry(Decoder& in);

}  // namespace holdfast
