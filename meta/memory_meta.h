// MemoryMeta: the Meta of one process, gone with it. For tests, and for engines in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "holdfast/clock.h"
#include "journal/base/mutex.h"
#include "meta/mvcc_meta.h"

namespace holdfast {

namespace internal {
// Made before, and gone after, the base that borrows it.
struct OwnedMutex {
  Mutex own_mutex;  // Guards the state of the Meta above it.
};
}  // namespace internal

// Threads: any, except the destructor, which needs every other call to have returned.
class MemoryMeta final : private internal::OwnedMutex, public MvccMeta {
 public:
  // `clock` is borrowed and outlives it. `id_seed`: lease ids follow from it.
  MemoryMeta(Clock& clock, uint64_t id_seed, const MvccMetaOptions& options = {});
  ~MemoryMeta() override;

 private:
  Status Reserve(const std::vector<MvccChange>& changes) override;
  uint64_t Append(const std::vector<MvccChange>& changes) override;
  void Kick() override;
  void WhenDurable(uint64_t position, std::function<void(Status)> callback) override;
  Status WaitDurable(uint64_t position, absl::Duration deadline) override;

  uint64_t appended_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace holdfast
