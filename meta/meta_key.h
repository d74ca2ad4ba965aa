// MetaKey: names of any bytes as keys under /em/, the root of everything that Holdfast keeps in a
// Meta. Pure.
//
// /em/<kind>/<part>/<part>…, where each part has all but letters, digits and -._~ as %XX. So parts
// never collide, a prefix of whole parts is a prefix of bytes, and etcdctl shows what is meant.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/offset_store.h"
#include "journal/base/status.h"

namespace holdfast {

std::string MetaKey(std::string_view kind, std::initializer_list<std::string_view> parts);
// Of every key that begins with these parts and has more.
std::string MetaPrefix(std::string_view kind, std::initializer_list<std::string_view> parts);
// Of one partition of a source: /em/<kind>/<topic>/<incarnation>/<partition>.
std::string MetaSourceKey(std::string_view kind, const SourceKey& source);
// The parts behind the kind, as they were given.
// Errors: kDataLoss  no key of this kind, with other than `count` parts, or not as MetaKey writes
// it
StatusOr<std::vector<std::string>> ParseMetaKey(std::string_view kind, size_t count,
                                                std::string_view key);
// Errors: kDataLoss  as above, or a number is none
StatusOr<SourceKey> ParseSourceKey(std::string_view kind, std::string_view key);

}  // namespace holdfast
