// MetaPages: every entry under a prefix, a page at a time, all as of one revision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/meta_store.h"
#include "journal/base/status.h"

namespace holdfast {

// Calls `visit` with each entry, in order of keys, until it answers an error. Returns the revision
// as of which they were read. `page_entries`: how many are asked for together.
// Errors: as MetaStore::List; what `visit` answers
template <typename Visit>
StatusOr<uint64_t> ForEachEntry(MetaStore& meta, std::string_view prefix, size_t page_entries,
                                const Visit& visit) {
  MetaPage page{.limit = page_entries};
  std::string after;
  for (;;) {
    page.after = after;
    ASSIGN_OR_RETURN(const MetaList list, meta.List(prefix, page));
    for (const MetaEntry& entry : list.entries) RETURN_IF_ERROR(visit(entry));
    if (!list.more) return list.revision;
    page.revision = list.revision;
    after = list.entries.back().key;
  }
}

}  // namespace holdfast
