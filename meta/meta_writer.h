// MetaWriter: conditional writes to a Meta whose outcome is known wherever it can be.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/meta_store.h"
#include "journal/base/status.h"

namespace holdfast {

// A write whose answer was lost is not sent again blindly. The key is read: it bears the id of the
// write, then it happened; it stands where the write wanted it, then the write goes out once more
// under the same id, because only one of the two can find it there; anything else stays UNKNOWN.
//
// Threads: any.
// Errors:  as MetaStore's; kConflict says that the write certainly did not happen
class MetaWriter {
 public:
  // `meta` is borrowed and outlives it. `nonce`: differs from that of every other writer, of other
  // processes and earlier boots too.
  MetaWriter(MetaStore& meta, uint64_t nonce) : meta_(meta), nonce_(nonce) {}

  // Puts `value` if the key stands at revision `at` (0: is absent). Returns the new revision.
  StatusOr<uint64_t> Put(std::string_view key, uint64_t at, std::string_view value);
  // Deletes the key if it stands at revision `at`. Returns the revision of that; 0 if only this is
  // known, that it is gone now. Errors: kNotFound  it was gone before
  StatusOr<uint64_t> Delete(std::string_view key, uint64_t at);
  // Needs: the first change is a put whose key has a condition of its own, which is not that it
  //        exists: by it the outcome is told
  StatusOr<uint64_t> Transact(const MetaTransaction& transaction);

 private:
  std::string NewRequestId();

  MetaStore& meta_;
  const uint64_t nonce_;
  std::atomic<uint64_t> requests_{0};
};

}  // namespace holdfast
