// What must stand in a store after a workload, by what the workload was told; and the comparison.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "holdfast/engine.h"
#include "journal/base/status.h"
#include "tools/acks_file.h"
#include "tools/findings.h"

namespace holdfast {

// Threads: one.
class AcksAudit {
 public:
  // Takes the lines in the order of the file.
  void Take(const AckLine& line);

  // Compares with what the store holds now:
  //  - a durable put without a try, ack or dead line is live, byte for byte
  //  - a durable ack is gone, and its client's offset covers it
  //  - a durable dead letter is gone and recorded, byte for byte
  //  - nothing ended that was never tried; nothing was put, ended or is live twice
  //  - everything live is byte for byte what its id says, and no client's offset has passed it
  // Errors: as DeliveryStateStore::Iterate
  Status Compare(Engine& store);

  const Findings& findings() const { return findings_; }
  uint64_t puts() const { return puts_; }
  uint64_t acks() const { return acks_; }
  uint64_t dead() const { return dead_; }
  uint64_t live() const { return live_; }
  // Live, or ended, though nobody was told so: the outcome was open when the writer died.
  uint64_t untold() const { return untold_; }

 private:
  struct Told {
    bool put = false;
    bool tried = false;
    bool acked = false;
    bool dead = false;
    bool seen_live = false;
    bool seen_dead = false;
    bool ended() const { return acked || dead; }
  };

  Status CompareLive(Engine& store);
  Status CompareDead(Engine& store);
  Status CompareOffsets(Engine& store);
  void CompareTold();
  void CheckEvent(std::string_view what, const std::string& id, const std::string& event);

  std::unordered_map<std::string, Told> told_;  // by delivery id
  std::map<OffsetKey, uint64_t> committed_;     // the highest offset that a durable ack carried
  std::map<OffsetKey, uint64_t> lowest_live_;   // the lowest offset that is still owed
  Findings findings_;
  uint64_t puts_ = 0, acks_ = 0, dead_ = 0, live_ = 0, untold_ = 0;
};

}  // namespace holdfast
