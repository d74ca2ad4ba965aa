// The audit of the demo: what the child told before it was killed, against what its store holds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/engine.h"
#include "journal/base/status.h"
#include "tools/demo_report.h"
#include "tools/demo_work.h"
#include "tools/findings.h"
#include "tools/told_offsets.h"

namespace holdfast {

// How far one client has come.
struct DemoTally {
  uint64_t acked = 0;
  uint64_t dead_letters = 0;
  uint64_t pushes = 0;
  uint64_t duplicates = 0;  // pushes of an event beyond its first
};

// Threads: one.
class DemoAudit {
 public:
  // Borrows the work, which outlives it.
  explicit DemoAudit(const DemoWork& work)
      : work_(work), tallies_(work.clients), committed_(work.clients) {}

  // While the child lives.
  void Take(const DemoReport& report);

  struct Round {
    uint64_t pending = 0;       // live in the store
    uint64_t dead_letters = 0;  // in the store
    uint64_t untold_puts = 0;   // durable, though the child could not tell any more
    uint64_t untold_acks = 0;
    uint64_t unwritten = 0;         // pushed, but the put did not become durable
    std::vector<uint64_t> offsets;  // committed, by client; 0 if none
    uint64_t cursor = 0;            // of the source
  };
  // When the child is dead: compares with the recovered store. Every delivery whose put is durable
  // is live byte for byte, or acknowledged, or a dead letter with the same bytes, and never two of
  // these; no event has two deliveries for one client; each client's offset covers what is finished
  // and passes nothing that is live; the source was told the end of nothing that is live, and its
  // cursor passes nothing either. What the child could not tell is taken from the store and must
  // hold from now on.
  // Errors: as DeliveryStateStore::Iterate
  StatusOr<Round> Compare(Engine& store);

  // Everything was pushed to every client and acknowledged, or is a dead letter; the source was
  // told; nothing is left.
  // Needs: a Compare after the last report.
  void CheckFinished(const Round& last);

  uint64_t puts_told() const { return puts_told_; }
  uint64_t acks_told() const { return acks_told_; }
  // Pushes that were told after the acknowledgement in the life of one child: they were on their
  // way already. A second one of an id is a fault.
  uint64_t crossed() const { return crossed_; }
  const std::vector<DemoTally>& tallies() const { return tallies_; }  // by client
  const ToldOffsets& told() const { return told_; }                   // what the source knows
  const Findings& findings() const { return findings_; }

 private:
  struct Known {
    uint64_t client = 0;
    uint64_t offset = 0;
    bool put = false;                   // told, or seen in the store
    bool tried = false;                 // an acknowledgement is on its way
    bool acked = false;                 // durable
    uint64_t acked_in = 0;              // number of the life
    bool crossed = false;               // pushed beside its acknowledgement
    bool ended = false;                 // said to be finished for its client
    bool ended_untried = false;         // ... before it was acknowledged: it must be a dead letter
    bool dead = false;                  // a dead letter
    uint64_t attempts = 0;              // one bit each
    bool live = false, in_dlq = false;  // in the comparison that is running
  };
  using Place = std::pair<uint64_t, uint64_t>;  // client, offset

  template <typename... Args>
  void Fault(fmt::format_string<Args...> format, Args&&... args) {
    findings_.Add(fmt::format(format, std::forward<Args>(args)...));
  }
  Known& Learn(const std::string& id, const Place& place);
  void TakePush(const DemoReport& report, Known& known);
  void TakeAck(const std::string& id, Known& known);
  // The child says that the event is finished for the client.
  void TakeEnd(const Place& place);
  // The delivery, if it is one of the work's and has the bytes of its event.
  Known* Recognise(const std::string& id, const std::string& client, const std::string& topic,
                   const std::optional<uint64_t>& offset, const std::string& event);
  void CompareLive(const Delivery& delivery, Round& round);
  void CompareDead(const DeadLetter& letter, Round& round);
  void ForgetUnwritten(uint64_t handed_in, Round& round);
  void CompareKnown(const std::string& id, Known& known, Round& round);
  void CheckEachHandedIn(uint64_t handed_in);
  Status CompareOffsets(Engine& store, uint64_t handed_in, Round& round);

  const DemoWork& work_;
  std::map<std::string, Known> known_;  // by delivery id
  std::map<Place, std::string> ids_;    // of the delivery
  std::map<Place, uint64_t> pushes_;    // under whatever id
  std::vector<DemoTally> tallies_;      // by client
  std::vector<uint64_t> committed_;     // by client
  uint64_t cursor_ = 0;                 // of the source
  ToldOffsets told_;
  uint64_t life_ = 1;  // of a child
  uint64_t puts_told_ = 0, acks_told_ = 0, crossed_ = 0;
  Findings findings_;
};

}  // namespace holdfast
