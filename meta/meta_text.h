// MetaText: the short values under /em/ as text: the version of their form, numbers, and one text
// to the end. An operator reads them with etcdctl. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/meta_store.h"
#include "journal/base/status.h"

namespace holdfast {

struct MetaText {
  std::vector<uint64_t> numbers;
  std::string text;
};

std::string EncodeMetaText(std::initializer_list<uint64_t> numbers, std::string_view text = {});
// Errors: kUnimplemented  of a version that this program does not know
//         kDataLoss       not so many numbers
StatusOr<MetaText> DecodeMetaText(const MetaEntry& entry, size_t numbers);

}  // namespace holdfast
