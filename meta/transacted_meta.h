// TransactedMeta: a MetaStore whose writes of one key are transactions.
#pragma once

#include <cstdint>
#include <string_view>

#include "holdfast/meta_store.h"

namespace holdfast {

// Threads: any.
class TransactedMeta : public MetaStore {
 public:
  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                               const MetaWrite& write) override;
  absl::StatusOr<uint64_t> PutIfAbsent(std::string_view key, std::string_view value,
                                       const MetaWrite& write) override;
  absl::StatusOr<uint64_t> CompareAndSet(std::string_view key, uint64_t revision,
                                         std::string_view value, const MetaWrite& write) override;
};

}  // namespace holdfast
