#include "meta/memory_meta.h"

namespace holdfast {

MemoryMeta::MemoryMeta(Clock& clock, uint64_t id_seed, const MvccMetaOptions& options)
    : MvccMeta(own_mutex, clock, id_seed, options) {
  MutexLock lock(mu_);
  Serve({});
}

MemoryMeta::~MemoryMeta() { Stop(); }

Status MemoryMeta::Reserve(const std::vector<MvccChange>&) { return absl::OkStatus(); }

uint64_t MemoryMeta::Append(const std::vector<MvccChange>& changes) {
  mu_.AssertHeld();
  const absl::Duration now = clock_.Now();
  for (const MvccChange& change : changes) state_.Apply(change, now);
  return ++appended_;
}

void MemoryMeta::Kick() {}

void MemoryMeta::WhenDurable(uint64_t, std::function<void(Status)> callback) {
  callback(absl::OkStatus());
}

Status MemoryMeta::WaitDurable(uint64_t, absl::Duration) { return absl::OkStatus(); }

}  // namespace holdfast
