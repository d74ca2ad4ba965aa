#include "meta/meta_writer.h"

#include "journal/base/check.h"

namespace holdfast {
namespace {

// How often one write goes out before its outcome is called unknown.
constexpr int kSendsMax = 3;

Status ChangedSince() {
  return Unavailable(Detail::kUnknownOutcome,
                     "a write to the Meta was not answered, and its key was changed since: whether "
                     "it happened is unknown; read again");
}

}  // namespace

std::string MetaWriter::NewRequestId() {
  return fmt::format("{:016x}-{}", nonce_, requests_.fetch_add(1, std::memory_order_relaxed));
}

StatusOr<uint64_t> MetaWriter::Put(std::string_view key, uint64_t at, std::string_view value) {
  const MetaCondition condition{
      .key = std::string(key),
      .must = at == 0 ? MetaCondition::Must::kBeAbsent : MetaCondition::Must::kStandAt,
      .revision = at};
  return Transact({.conditions = {condition},
                   .changes = {{.kind = MetaChange::Kind::kPut,
                                .key = std::string(key),
                                .value = std::string(value)}}});
}

StatusOr<uint64_t> MetaWriter::Transact(const MetaTransaction& transaction) {
  CHECK(!transaction.changes.empty() && !transaction.conditions.empty());
  const std::string& key = transaction.changes.front().key;
  const MetaCondition* condition = nullptr;
  for (const MetaCondition& each : transaction.conditions) {
    if (each.key == key) condition = &each;
  }
  CHECK(condition != nullptr && condition->must != MetaCondition::Must::kExist);
  const uint64_t at = condition->must == MetaCondition::Must::kBeAbsent ? 0 : condition->revision;
  const std::string id = NewRequestId();
  for (int send = 1;; ++send) {
    const StatusOr<uint64_t> written = meta_.Transact(transaction, {.request_id = id});
    const MetaResult result = MetaResultOf(written.status());
    // A conflict with a write that was sent before may be one with that very write.
    if (result != MetaResult::kUnknown && (result != MetaResult::kConflict || send == 1)) {
      return written;
    }
    const StatusOr<MetaEntry> found = meta_.Get(key, {});
    if (!found.ok() && MetaResultOf(found.status()) != MetaResult::kNotFound) {
      return result == MetaResult::kUnknown ? written.status() : found.status();
    }
    if (found.ok() && found->request_id == id) return found->revision;
    const uint64_t stands_at = found.ok() ? found->revision : 0;
    if (stands_at == at && send < kSendsMax) continue;
    return ChangedSince();
  }
}

StatusOr<uint64_t> MetaWriter::Delete(std::string_view key, uint64_t at) {
  for (int send = 1;; ++send) {
    const StatusOr<uint64_t> deleted = meta_.DeleteAt(key, at, {});
    const MetaResult result = MetaResultOf(deleted.status());
    if (result == MetaResult::kNotFound && send > 1) return 0;
    if (result == MetaResult::kConflict && send > 1) return ChangedSince();
    if (result != MetaResult::kUnknown || send == kSendsMax) return deleted;
  }
}

}  // namespace holdfast
