// The audit of the demo: what the child told before it was killed, against what its store holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/engine.h"
#include "journal/base/status.h"
#include "tools/demo_work.h"
#include "tools/findings.h"

namespace holdfast {

// Threads: one.
class DemoAudit {
 public:
  // Borrows the work, which outlives it.
  explicit DemoAudit(const DemoWork& work) : work_(work) {}

  void Take(const DemoReport& report);

  struct Round {
    uint64_t pending = 0;      // live in the store
    uint64_t untold_puts = 0;  // durable, though the child could not tell any more
    uint64_t untold_acks = 0;
    std::vector<uint64_t> offsets;  // committed, by client; 0 if none
  };
  // Compares with the recovered store: every durable put that was not acknowledged is live, byte
  // for byte; every durable ack is gone and its client's offset covers it; no event is there twice,
  // or again after its end, for one client; no offset has passed what is live. What the child could
  // not tell is taken from the store and must hold from now on.
  // Errors: as DeliveryStateStore::Iterate
  StatusOr<Round> Compare(Engine& store);

  // Everything was delivered to and acknowledged by every client exactly once, and nothing is left.
  // Needs: a Compare after the last report.
  void CheckFinished(const Round& last);

  uint64_t puts_told() const { return puts_told_; }
  uint64_t acks_told() const { return acks_told_; }
  const Findings& findings() const { return findings_; }

 private:
  struct Known {
    uint64_t client = 0;
    uint64_t offset = 0;
    bool put = false;  // durable
    bool tried = false;
    bool acked = false;  // durable
    bool live = false;   // in the comparison that is running
  };

  Known& Learn(const std::string& id, uint64_t client, uint64_t offset);
  // How many events the store says were handed in, by SourceSeen records that share a batch with
  // the puts.
  static StatusOr<uint64_t> HandedIn(Engine& store);
  // An ack may be tried before its put is durable; a kill may take both. The event then comes
  // again.
  void ForgetUnwritten(uint64_t handed_in);
  void CompareLive(const Delivery& delivery, Round& round);

  const DemoWork& work_;
  std::map<std::string, Known> known_;                                      // by delivery id
  std::map<std::pair<uint64_t, uint64_t>, std::string> ids_;                // by client and offset
  std::vector<uint64_t> committed_ = std::vector<uint64_t>(work_.clients);  // told, by client
  uint64_t puts_told_ = 0, acks_told_ = 0;
  Findings findings_;
};

}  // namespace holdfast
