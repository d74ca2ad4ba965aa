// History: what a workload did to an engine, in append order, and what the engine has answered so
// far. After a crash it judges what came back (G1, G2): the state must equal the model after some
// prefix of the history, and that prefix holds everything that was confirmed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/model.h"

namespace holdfast {

class History {
 public:
  // --- The run
  // ------------------------------------------------------------------------------------- Begins a
  // call; returns its index. From here on a crash may leave it, or not.
  size_t Begin(std::vector<Change> changes);
  // The call returned. Gives a complaint if the engine judged otherwise than the model; empty:
  // fine.
  std::string End(size_t index, const Commit& commit);
  // The call was refused for want of room or because the store failed. Refused for certain: it
  // never happened. Otherwise a reopening decides.
  void EndRefused(size_t index, bool may_appear);
  // The answer says that it is durable.
  void Confirm(size_t index);
  // Asks every Commit that is still open, and confirms those that are.
  void Poll();
  // The engine is gone: its Commits are not asked any more.
  void CloseCommits();

  // --- What a crash at this moment may leave
  // ------------------------------------------------------- How many calls have begun, and how many
  // must be there.
  size_t begun() const { return entries_.size(); }
  size_t required() const { return required_; }
  size_t confirmed_count() const { return confirmed_count_; }
  // Whether every call that changed something is confirmed.
  bool AllConfirmed() const;
  // How many must be there by their numbers: those at or below `lsn`.
  size_t CountThrough(uint64_t lsn) const;
  uint64_t lsn_max() const { return lsn_max_; }

  // --- The verdict
  // --------------------------------------------------------------------------------- The state
  // after the first `count` calls.
  const Model& After(size_t count) const { return states_[count]; }
  // Which prefix `found` is, between `required` and `begun`: the longest that equals it. Otherwise
  // a complaint.
  struct Verdict {
    size_t count = 0;
    std::string complaint;  // empty: fine
  };
  Verdict Judge(const Model& found, uint64_t last_lsn, size_t required, size_t begun) const;
  // The crash kept the first `count` calls; the rest never happened.
  void CutTo(size_t count);

  const ModelNames& names() const { return names_; }
  // Delivery ids handed out so far, by all boots; each once.
  bool IssueId(const std::string& id) { return ids_.insert(id).second; }
  const std::set<std::string>& ids() const { return ids_; }

 private:
  struct Entry {
    std::vector<Change> changes;
    uint64_t lsn = 0;  // of its last record; 0: it wrote none
    bool changed = false;
    bool refused = false;
    bool ended = false;
    bool may_appear = false;  // ended without a known number
    bool confirmed = false;
    Commit commit;
    bool commit_open = false;
  };

  size_t NeededFor(size_t index) const;

  std::vector<Entry> entries_;
  std::vector<Model> states_{Model()};  // states_[n] after n calls
  std::vector<size_t> open_;            // entries with a Commit to ask
  size_t required_ = 0;
  size_t confirmed_count_ = 0;
  uint64_t lsn_max_ = 0;
  ModelNames names_;
  std::set<std::string> ids_;
};

}  // namespace holdfast
