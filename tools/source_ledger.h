// What a dispatcher has to know of one partition of a source: what was handed in, what each client
// still owes, and so which offset a client may commit. For the commands that make work.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "holdfast/engine.h"
#include "journal/base/seeded_rng.h"

namespace holdfast {

struct OwedDelivery {
  std::string id;
  std::string client;
  uint64_t offset = 0;
  uint64_t epoch = 0;
  uint32_t attempt = 0;
};

// Threads: one.
class SourceLedger {
 public:
  explicit SourceLedger(SourceKey key) : key_(std::move(key)) {}

  const SourceKey& key() const { return key_; }
  size_t pending_count() const { return pending_.size(); }
  // The offset that the source hands in next.
  uint64_t next_source_offset() const { return next_source_offset_; }

  // Every offset up to and including this one was handed in.
  void MarkSeen(uint64_t through);
  void AddPending(OwedDelivery delivery);
  // Takes out one at random, or none if there is none.
  std::optional<OwedDelivery> TakePending(SeededRng& rng);
  // Changes one in place at random, for a retry; null if there is none. Valid until the next call.
  OwedDelivery* PickPending(SeededRng& rng);

  // The offset that `client` may commit: the lowest that it still owes, or what comes next.
  uint64_t NextFor(const std::string& client) const;

 private:
  SourceKey key_;
  uint64_t next_source_offset_ = 0;
  std::vector<OwedDelivery> pending_;
  std::map<std::string, std::set<uint64_t>> owed_;  // by client
};

// The ledgers of every source that has something in `engine`, as they were left.
// Errors: as DeliveryStateStore::Iterate
absl::StatusOr<std::map<SourceKey, SourceLedger>> ReadLedgers(
    Engine& engine, const std::vector<SourceKey>& sources);

}  // namespace holdfast
