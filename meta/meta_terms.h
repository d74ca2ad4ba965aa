// From the terms of MetaStore to those of the embedded Meta and back. PURE.
#pragma once

#include <string_view>

#include "holdfast/meta_store.h"
#include "journal/base/status.h"
#include "meta/mvcc_types.h"

namespace holdfast {

// The request id is taken out of the value.
MetaEntry ToMetaEntry(const MvccEntry& entry);
MetaEvent ToMetaEvent(const MvccEvent& event);

// Errors: kInvalidArgument    it is empty
//         kResourceExhausted  kLimit: it is longer than kMetaKeyBytesMax
Status CheckMetaKey(std::string_view key);

// A transaction whose success branch has one operation for each change, and no failure branch.
// Errors: kInvalidArgument, kResourceExhausted  as CheckMetaKey; a request id that is too long
//         kAborted  kConflict: a condition that cannot hold
StatusOr<MvccTxn> ToMvccTxn(const MetaTransaction& transaction, std::string_view request_id);

// kAborted, kConflict.
Status MetaConflict(std::string_view what);

}  // namespace holdfast
