#include "tools/source_ledger.h"

#include <utility>

#include "journal/base/status.h"
#include "journal/format/records_text.h"

namespace holdfast {

void SourceLedger::MarkSeen(uint64_t through) {
  if (through >= next_source_offset_) next_source_offset_ = through + 1;
}

void SourceLedger::AddPending(OwedDelivery delivery) {
  owed_[delivery.client].insert(delivery.offset);
  pending_.push_back(std::move(delivery));
}

std::optional<OwedDelivery> SourceLedger::TakePending(SeededRng& rng) {
  OwedDelivery* picked = PickPending(rng);
  if (picked == nullptr) return std::nullopt;
  std::swap(*picked, pending_.back());
  OwedDelivery taken = std::move(pending_.back());
  pending_.pop_back();
  owed_[taken.client].erase(taken.offset);
  return taken;
}

OwedDelivery* SourceLedger::PickPending(SeededRng& rng) {
  if (pending_.empty()) return nullptr;
  return &pending_[rng.Below(pending_.size())];
}

uint64_t SourceLedger::NextFor(const std::string& client) const {
  const auto owed = owed_.find(client);
  if (owed == owed_.end() || owed->second.empty()) return next_source_offset_;
  return *owed->second.begin();
}

StatusOr<std::map<SourceKey, SourceLedger>> ReadLedgers(Engine& engine,
                                                        const std::vector<SourceKey>& sources) {
  std::map<SourceKey, SourceLedger> ledgers;
  for (const SourceKey& key : sources) {
    SourceLedger& ledger = ledgers.try_emplace(key, key).first->second;
    StatusOr<SourceProgress> progress = engine.offsets().ReadSource(key);
    if (!progress.ok()) {
      if (progress.status().code() == StatusCode::kNotFound) continue;
      return progress.status();
    }
    if (progress->has_seen) ledger.MarkSeen(progress->seen);
  }
  Status unexpected;
  RETURN_IF_ERROR(engine.deliveries().Iterate([&](const StoredDelivery& stored) {
    const Delivery& delivery = stored.delivery;
    const auto ledger = ledgers.find({delivery.topic, delivery.incarnation, delivery.partition});
    if (ledger == ledgers.end() || !delivery.offset.has_value()) {
      unexpected = Invalid("the store holds delivery {}, which this command did not make",
                           NameText(delivery.id));
      return false;
    }
    ledger->second.AddPending({.id = delivery.id,
                               .client = delivery.client,
                               .offset = *delivery.offset,
                               .epoch = delivery.epoch,
                               .attempt = delivery.attempt});
    return true;
  }));
  RETURN_IF_ERROR(unexpected);
  return ledgers;
}

}  // namespace holdfast
