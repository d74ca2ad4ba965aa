// RecoveryStore: a store on disk as the recovery benchmark needs it. Holdfast and its peers are
// filled, killed, opened and read through this one interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/stopwatch.h"
#include "bench/subject.h"
#include "holdfast/options.h"
#include "journal/base/status.h"

namespace holdfast::bench {

inline constexpr int64_t kSyncNanos = 100'000'000;  // all of them sync each 100 ms

// Whether it is time to sync again.
class SyncTimer {
 public:
  bool Due() {
    const int64_t now = NowNanos();
    if (now - synced_ < kSyncNanos) return false;
    synced_ = now;
    return true;
  }

 private:
  int64_t synced_ = NowNanos();
};

// Threads: one at a time.
class RecoveryStore {
 public:
  // Closing is not measured: a store that was filled is killed.
  virtual ~RecoveryStore() = default;

  // Puts, removes (unless the id is empty) and moves the offset on, as one atomic change.
  // Durable: within 100 ms, together with what came before.
  virtual Status Run(const Cycle& cycle) = 0;
  // Durable: everything, when it returns.
  virtual Status Confirm() = 0;

  // Shows id and event of everything that is live.
  using Visit = std::function<void(std::string_view id, std::string_view event)>;
  virtual Status ReadAll(const Visit& visit) = 0;
};

struct RecoverySetup {
  std::string directory;  // made by the store
  IoBackend io = IoBackend::kAuto;
  uint64_t live_bytes = 0;  // about; for stores that want to know how large they may become
};

struct RecoveryKind {
  std::string name;
  std::string settings;  // for the report: what differs from its defaults
  std::function<StatusOr<std::unique_ptr<RecoveryStore>>(const RecoverySetup&)> open;
};

RecoveryKind HoldfastKind();
// Those whose libraries were found when this was built.
std::vector<RecoveryKind> PeerKinds();
// One each, or none.
std::vector<RecoveryKind> RocksDbKinds();
std::vector<RecoveryKind> LmdbKinds();

// A delivery as the peers keep it: about the fields and bytes that the journal keeps, in one value.
void EncodeForPeer(const Delivery& delivery, std::string& value);
// Errors: kDataLoss  not a value of EncodeForPeer
StatusOr<std::string_view> EventOfPeer(std::string_view value);
// Keys: deliveries and offsets have a letter each in front.
inline constexpr char kDeliveryLetter = 'd';
inline constexpr char kOffsetLetter = 'o';
void MakePeerKey(std::string_view id, std::string& key);
void MakePeerKey(const OffsetKey& offset, std::string& key);

}  // namespace holdfast::bench
