// StoreBatch: the changes of one mutation or transaction, checked against the limits and encoded
// while no lock is held.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/transaction.h"
#include "journal/base/status.h"
#include "journal/batch_draft.h"
#include "stores/store_limits.h"

namespace holdfast {

// The first call that breaks a limit decides refused(); what comes after it is not collected.
// Threads: one at a time. Reusable: Begin() keeps the memory, up to a bound.
class StoreBatch final : public Transaction {
 public:
  // Starts a new, empty batch.
  void Begin(const StoreLimits& limits);

  using Transaction::RemoveDelivery;
  void PutDelivery(const Delivery& delivery) override;
  void UpdateDelivery(const Reschedule& reschedule) override;
  void RemoveDelivery(const Removal& removal) override;
  void WriteOffset(const OffsetKey& key, OffsetPosition position) override;
  void WriteStart(const OffsetKey& key, OffsetPosition start) override;
  void ForgetOffset(const OffsetKey& key) override;
  void SourceSeen(const SourceKey& key, uint64_t through) override;
  void SourceCursor(const SourceKey& key, uint64_t cursor) override;
  void RecordDeadLetter(const DeadLetter& dead_letter) override;
  void PurgeDeadLetter(std::string_view delivery_id) override;

  // The two halves of a redrive: a put that is refused if its id is live, and the count of replays,
  // which must be the one after what the dead letter shows.
  void Redrive(const DeliveryPut& put, const DeadLetterRedriven& redriven);

  const Status& refused() const { return refused_; }
  BatchDraft& draft() { return draft_; }
  // Adds state: refused first when space is short. Reschedules count: they only add to the journal,
  // and a client that fails for ever must not eat the reserve of those that acknowledge.
  bool grows() const { return grows_; }
  // The put of this batch must be of a new id.
  bool put_must_be_new() const { return put_must_be_new_; }

 private:
  template <typename Record>
  void Add(const Status& checked, bool grows, const Record& record);
  // `event` as it is stored; large ones are compressed where that pays.
  StoredEvent Pack(std::string_view event);

  StoreLimits limits_;
  BatchDraft draft_;
  Status refused_;
  bool grows_ = false;
  bool put_must_be_new_ = false;
  std::string scratch_;  // of the compression
};

// The batch of this thread, for the life of the lease. A lease taken while another one of the same
// thread is out gets a batch of its own.
class BatchLease {
 public:
  explicit BatchLease(const StoreLimits& limits);
  ~BatchLease();
  BatchLease(const BatchLease&) = delete;
  BatchLease& operator=(const BatchLease&) = delete;
  StoreBatch* operator->() { return batch_; }
  StoreBatch& operator*() { return *batch_; }

 private:
  StoreBatch* batch_;
  bool* leased_ = nullptr;  // of this thread's batch; null: the batch is the lease's own
};

}  // namespace holdfast
