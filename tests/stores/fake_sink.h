// FakeSink: a journal that is a map, for tests of what stands above: it says yes or no as a test
// wants, and shows what it was asked.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "journal/record_sink.h"
#include "journal/state_machine.h"

namespace holdfast {

// Threads: one at a time; a hook runs in the thread that it is called by.
class FakeSink final : public RecordSink {
 public:
  FakeSink(Mutex& sequencer, const StateMachines& machines)
      : RecordSink(sequencer), machines_(machines) {}

  Status Reserve(uint64_t batch_bytes, Claim claim) override {
    reserved_ = batch_bytes;
    reserved_by_ = std::this_thread::get_id();
    claim_ = claim;
    return refuse_;
  }
  bool HasRoom(uint64_t, Claim) const override { return refuse_.ok(); }
  Lsn Append(const BatchDraft& draft) override {
    if (const auto hook = std::exchange(on_append_, nullptr)) hook();
    appended_by_.push_back(std::this_thread::get_id());
    CHECK(draft.count() > 0);
    CHECK(draft.batch_bytes() <= reserved_);
    const Lsn first = last_ + 1;
    const RecordRef ref{.segment = segment_,
                        .offset = static_cast<uint32_t>(8 * first.value()),
                        .length = static_cast<uint32_t>(draft.batch_bytes())};
    for (size_t i = 0; i < draft.count(); ++i) {
      last_ = last_ + 1;
      machines_.Apply(draft.raw(i), last_, ref);
      records_[last_] = {ref, std::string(AsText(draft.record(i)))};
    }
    ++batches_;
    return first;
  }
  Lsn appended() const override { return last_; }
  void Kick() override { ++kicks_; }
  StatusOr<std::string> ReadRecord(const RecordRef& ref, Lsn lsn) override {
    ++reads_;
    if (const auto hook = std::exchange(on_read_, nullptr)) hook();
    const auto found = records_.find(lsn);
    CHECK(found != records_.end());
    CHECK(found->second.ref == ref);
    if (!read_fails_.ok()) return read_fails_;
    return found->second.bytes;
  }
  bool poisoned() const override { return poisoned_; }

  // Waiting brings the disk up to `lsn`, unless the journal failed.
  Status WaitFor(uint64_t lsn) override {
    if (Reached(lsn)) return absl::OkStatus();
    if (poisoned_) return Unavailable(Detail::kUnknownOutcome, "a write failed");
    reached_ = Lsn(lsn);
    return absl::OkStatus();
  }
  void CallWhenReached(uint64_t lsn, std::function<void(Status)> callback) override {
    callback(WaitFor(lsn));
  }
  bool Reached(uint64_t lsn) const override { return lsn <= reached_.value(); }

  // --- The test's side
  Lsn last() const { return last_; }
  void Confirm(Lsn lsn) { reached_ = lsn; }
  void Poison() { poisoned_ = true; }
  // The next records lie in the next segment.
  void Rotate() { ++segment_; }
  // What Reserve answers from now on.
  void Refuse(Status why) { refuse_ = std::move(why); }
  Claim claim() const { return claim_; }
  uint64_t batches() const { return batches_; }
  uint64_t kicks() const { return kicks_; }
  uint64_t reads() const { return reads_; }
  // Which thread asked for room last, and which appended each batch.
  std::thread::id reserved_by() const { return reserved_by_; }
  const std::vector<std::thread::id>& appended_by() const { return appended_by_; }
  // Called once, at the start of the next append, with the sequencer held.
  void OnNextAppend(std::function<void()> hook) { on_append_ = std::move(hook); }
  // Called once, at the start of the next read.
  void OnNextRead(std::function<void()> hook) { on_read_ = std::move(hook); }
  void FailReads(Status why) { read_fails_ = std::move(why); }
  void ReplaceRecord(Lsn lsn, std::string bytes) { records_.at(lsn).bytes = std::move(bytes); }
  const std::string& record(Lsn lsn) const { return records_.at(lsn).bytes; }
  uint32_t segment_of(Lsn lsn) const { return records_.at(lsn).ref.segment; }
  // Every record, in order.
  template <typename Visit>  // void(const RawRecord&, uint32_t segment)
  void ForEach(Visit visit) const {
    for (const auto& [lsn, record] : records_) {
      ByteView bytes = AsBytes(record.bytes);
      visit(*TakeRecord(bytes), record.ref.segment);
    }
  }
  // Applies everything again to `machines`, as recovery does; of the segments from `oldest` on.
  void Replay(const StateMachines& machines, uint32_t oldest = 0) const {
    for (const auto& [lsn, record] : records_) {
      if (record.ref.segment < oldest) continue;
      ByteView bytes = AsBytes(record.bytes);
      machines.Apply(*TakeRecord(bytes), lsn, record.ref);
    }
  }

 private:
  struct Placed {
    RecordRef ref;
    std::string bytes;
  };

  const StateMachines& machines_;
  std::map<Lsn, Placed> records_;
  Lsn last_, reached_;
  bool poisoned_ = false;
  Status refuse_, read_fails_;
  uint64_t reserved_ = 0, batches_ = 0, reads_ = 0;
  std::atomic<uint64_t> kicks_ = 0;
  Claim claim_ = Claim::kGrow;
  uint32_t segment_ = 1;
  std::function<void()> on_append_, on_read_;
  std::thread::id reserved_by_;
  std::vector<std::thread::id> appended_by_;
};

}  // namespace holdfast
