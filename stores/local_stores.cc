#include "stores/local_stores.h"

namespace holdfast {

LocalStores::LocalStores(Mutex& sequencer, Rng& rng, const EngineOptions& options)
    : offsets_(sequencer, live_),
      deliveries_(
          sequencer, live_, rng.Next(),
          {.entries_max = options.value_cache_entries, .bytes_max = options.value_cache_bytes}),
      dead_letters_(sequencer, live_, rng.Next()) {
  const auto route = [&](auto& store) {
    for (const RecordType type : store.kTypes) machines_.Route(type, store);
  };
  route(offsets_);
  route(deliveries_);
  route(dead_letters_);
}

void LocalStores::Attach(RecordSink& sink, const ForkGuard& fork_guard, const StoreLimits& limits) {
  writer_ = std::make_unique<StoreWriter>(sink, fork_guard, limits);
  const auto attach = [&](auto& store) {
    for (const RecordType type : store.kTypes) writer_->Route(type, store);
    store.Attach(*writer_);
  };
  attach(offsets_);
  attach(deliveries_);
  attach(dead_letters_);
}

Commit LocalStores::Transact(const std::function<void(Transaction&)>& fill) {
  BatchLease batch(writer_->limits());
  fill(*batch);
  return writer_->Write(*batch);
}

void LocalStores::AddTo(RecoveryReport& report) {
  report.deliveries = deliveries_.Count();
  report.offsets = offsets_.Count();
  report.dead_letters = dead_letters_.Count();
}

}  // namespace holdfast
