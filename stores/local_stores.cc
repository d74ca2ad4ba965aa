#include "stores/local_stores.h"

#include <algorithm>

#include "stores/engine_options.h"

namespace holdfast {
namespace {

// What one batch holds, less its header.
MvccMetaOptions MetaOptions(const EngineOptions& options) {
  const StoreLimits limits = LimitsOf(options);
  MvccMetaOptions meta;
  meta.erase.bytes_max = std::min(meta.erase.bytes_max, limits.batch_bytes_max / 2);
  return meta;
}

}  // namespace

LocalStores::LocalStores(Mutex& sequencer, Rng& rng, const EngineOptions& options)
    : sequencer_(sequencer),
      answers_(sequencer, live_, options.remembered_answers),
      offsets_(sequencer, live_),
      deliveries_(
          sequencer, live_, answers_, rng.Next(),
          {.entries_max = options.value_cache_entries, .bytes_max = options.value_cache_bytes}),
      dead_letters_(sequencer, live_, rng.Next()),
      meta_(sequencer, live_, options.clock != nullptr ? *options.clock : RealClock(), rng.Next(),
            MetaOptions(options)) {
  const auto route = [&](auto& store) {
    for (const RecordType type : store.kTypes) machines_.Route(type, store);
  };
  route(offsets_);
  route(deliveries_);
  route(dead_letters_);
  route(answers_);
  route(meta_);
}

void LocalStores::Attach(RecordSink& sink, const ForkGuard& fork_guard, const StoreLimits& limits,
                         const AttachOptions& options) {
  writer_ = std::make_unique<StoreWriter>(sink, fork_guard, limits);
  const auto attach = [&](auto& store) {
    for (const RecordType type : store.kTypes) writer_->Route(type, store);
    store.Attach(*writer_);
  };
  attach(offsets_);
  attach(deliveries_);
  attach(dead_letters_);
  meta_.Attach(sink, {.clean = options.clean,
                      .writable = options.writable,
                      .threads = options.threads,
                      .may_call = [&fork_guard] { return fork_guard.Check(); }});
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

void LocalStores::AddTo(EngineStats& stats) {
  deliveries_.AddTo(stats);
  MutexLock lock(sequencer_);
  stats.remembered_answers = answers_.size();
}

}  // namespace holdfast
