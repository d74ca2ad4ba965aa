// Commit: what a mutation answers at once, and how to learn that it is durable.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"

namespace holdfast {

// Implemented by the engine's journal. Hosts only meet it behind a Commit.
class CommitSource {
 public:
  virtual ~CommitSource() = default;
  virtual absl::Status WaitFor(uint64_t lsn) = 0;
  virtual void CallWhenReached(uint64_t lsn, std::function<void(absl::Status)> callback) = 0;
  // True once the level in force has reached `lsn`.
  virtual bool Reached(uint64_t lsn) const = 0;
};

// The outcome of one mutation, or of one transaction: a small value to copy and keep. It borrows
// the Engine and must not be used after the Engine is destroyed.
//
// A mutation is visible to reads at once. It is *confirmed* when Wait() or Then() says OK: from
// then on it survives what EngineOptions::durability promises. A mutation that changed nothing (an
// offset that was not higher, a repeated remove) carries the number of the record that made it so,
// and is confirmed when that record is: a no-op never claims more than the disk holds.
class [[nodiscard]] Commit {
 public:
  // Nothing to wait for.
  Commit() = default;
  // Refused before anything was written: it will never appear.
  explicit Commit(absl::Status refused) : refused_(std::move(refused)) {}
  Commit(CommitSource* source, uint64_t lsn, bool changed)
      : source_(source), lsn_(lsn), changed_(changed) {}
  // Refused because of what record `lsn` did ("not found" after a removal): Wait() and Then() give
  // the refusal away only when that record is confirmed.
  Commit(CommitSource* source, uint64_t lsn, absl::Status refused)
      : source_(source), lsn_(lsn), refused_(std::move(refused)) {}

  // Number of the newest record that this answer depends on; 0 if there is none.
  uint64_t lsn() const { return lsn_; }
  // False if the mutation left the state as it was (or was refused).
  bool changed() const { return changed_; }
  // OK, or why the mutation was refused at once. Says nothing about durability.
  const absl::Status& refused() const { return refused_; }
  // True if Wait() would return without blocking and with OK.
  bool confirmed() const { return refused_.ok() && (source_ == nullptr || source_->Reached(lsn_)); }

  // Blocks until the level in force has reached lsn(). Does not shorten the commit interval.
  // Threads: any, but never inside a Then() callback.
  // Errors:  what refused() says  it was not written, and never will be
  //          kUnavailable         a write or sync failed: the outcome is unknown until the store is
  //                               reopened
  absl::Status Wait() const {
    if (source_ == nullptr) return refused_;
    absl::Status reached = source_->WaitFor(lsn_);
    return reached.ok() ? refused_ : reached;
  }

  // Calls `callback` once with what Wait() would return: inline if that is known already, otherwise
  // on the engine's callback thread, in LSN order. The callback may start mutations; it must not
  // Wait.
  void Then(std::function<void(absl::Status)> callback) const {
    if (source_ == nullptr) {
      callback(refused_);
    } else if (refused_.ok()) {
      source_->CallWhenReached(lsn_, std::move(callback));
    } else {
      source_->CallWhenReached(
          lsn_, [refused = refused_, callback = std::move(callback)](absl::Status reached) {
            callback(reached.ok() ? refused : reached);
          });
    }
  }

 private:
  CommitSource* source_ = nullptr;
  uint64_t lsn_ = 0;
  bool changed_ = false;
  absl::Status refused_;
};

}  // namespace holdfast
