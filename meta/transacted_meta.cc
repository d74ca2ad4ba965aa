#include "meta/transacted_meta.h"

#include <string>

namespace holdfast {
namespace {

MetaChange PutOf(std::string_view key, std::string_view value, const MetaWrite& write) {
  return {.kind = MetaChange::Kind::kPut,
          .key = std::string(key),
          .value = std::string(value),
          .lease = write.lease};
}

}  // namespace

absl::StatusOr<uint64_t> TransactedMeta::Put(std::string_view key, std::string_view value,
                                             const MetaWrite& write) {
  return Transact({.conditions = {}, .changes = {PutOf(key, value, write)}}, write);
}

absl::StatusOr<uint64_t> TransactedMeta::PutIfAbsent(std::string_view key, std::string_view value,
                                                     const MetaWrite& write) {
  return Transact(
      {.conditions = {{.key = std::string(key), .must = MetaCondition::Must::kBeAbsent}},
       .changes = {PutOf(key, value, write)}},
      write);
}

absl::StatusOr<uint64_t> TransactedMeta::CompareAndSet(std::string_view key, uint64_t revision,
                                                       std::string_view value,
                                                       const MetaWrite& write) {
  return Transact({.conditions = {{.key = std::string(key),
                                   .must = MetaCondition::Must::kStandAt,
                                   .revision = revision}},
                   .changes = {PutOf(key, value, write)}},
                  write);
}

}  // namespace holdfast
