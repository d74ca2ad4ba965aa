// The core of the dispatcher: every decision, on a DeliveryBook in memory and the stores of an
// Engine. It has no thread and no clock of its own; dispatch_loop.h adds the thread.
//
// One lock guards the book. What must happen outside it (pushes, source ACKs, answers, waiting for
// durability) is collected as effects while it is held and run after it was released, by the thread
// that caused them. Ends become durable many at a time, so one callback of the engine's takes all
// that have: nothing is called, locked or woken up for each of them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "holdfast/dispatcher.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "runtime/delivery_book.h"
#include "runtime/timer_wheel.h"

namespace holdfast {

class DispatcherCore {
 public:
  DispatcherCore(Engine& engine, Rng& rng, const DispatcherOptions& options,
                 const DispatcherHost& host);
  // Waits until every completion has been called.
  ~DispatcherCore();
  DispatcherCore(const DispatcherCore&) = delete;
  DispatcherCore& operator=(const DispatcherCore&) = delete;

  Status Recover() ABSL_LOCKS_EXCLUDED(mu_);
  Status LetGo(const SourceKey& source) ABSL_LOCKS_EXCLUDED(mu_);
  Status Adopt(const SourceKey& source, std::optional<uint64_t> handed_in_before)
      ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<DeliverResult> Deliver(const SourceEvent& event, const std::vector<Target>& targets)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Ack(const Acknowledgement& ack, std::function<void(Status)> done) ABSL_LOCKS_EXCLUDED(mu_);
  Status Nack(const Acknowledgement& nack) ABSL_LOCKS_EXCLUDED(mu_);
  void Withdraw(std::string_view id, std::function<void(Status)> done) ABSL_LOCKS_EXCLUDED(mu_);
  void Resubscribe(const Resubscription& to, std::function<void(Status)> done)
      ABSL_LOCKS_EXCLUDED(mu_);
  void ChannelOpened(std::string_view client, std::shared_ptr<Channel> channel)
      ABSL_LOCKS_EXCLUDED(mu_);
  void ChannelClosed(std::string_view client, const Channel* channel) ABSL_LOCKS_EXCLUDED(mu_);
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t Pending(std::string_view client) ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<std::vector<PendingDelivery>> Pending(const PendingFilter& filter)
      ABSL_LOCKS_EXCLUDED(mu_);
  DispatcherStats Stats() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // How many slots a look at everything in flight visits before it lets others have the lock.
  static constexpr Slot kSlotsTogether = 4'096;

  using Done = std::function<void(Status)>;
  struct Push {
    std::shared_ptr<Channel> to;
    Delivery delivery;
    Slot slot = kNone;
    FlightKey id = 0;
  };
  struct Told {
    const SourceKey* source = nullptr;  // of the book, which keeps it
    std::optional<uint64_t> offset;
    uint64_t token = 0;
  };
  struct Answer {
    Done done;
    Status status;
  };
  // Run in this order.
  struct Effects {
    absl::InlinedVector<Push, 1> pushes;
    absl::InlinedVector<Told, 1> told;  // sources
    absl::InlinedVector<Answer, 1> answers;
    absl::InlinedVector<std::function<void()>, 1> others;  // commits to wait for, sinks to call
  };

  static Status NotReady();
  void Run(Effects& effects) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `then`, without the lock, once the outcome of `commit` is known.
  void After(const Commit& commit, Done then, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release() ABSL_LOCKS_EXCLUDED(mu_);

  // --- Recovery ---
  struct Found {
    Delivery delivery;  // without its event
    bool ledgered = false;
  };
  // Where a client's way through a source begins.
  struct Begun {
    SourceKey source;
    std::string client;
    uint64_t start = 0;
    uint64_t next = 0;
  };
  StatusOr<std::vector<Begun>> ReadBegun(const std::vector<StoredOffset>& offsets);
  void Begin(const Begun& begun) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StatusOr<std::vector<bool>> AreLedgered(const std::vector<std::string>& ids);
  StatusOr<std::vector<Found>> ReadPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Slot TakeOver(const Delivery& delivery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadProgress(Source& source) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Retire(Slot slot, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Deliver ---
  Status CheckTargets(const std::vector<Target>& targets) const;
  // Whether the source handed the event in before, for the client of this track.
  bool IsKnown(uint32_t source, uint32_t track, const SourceEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  DeliverResult::OfTarget Again(uint32_t source, uint64_t offset, const std::string& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StatusOr<DeliverResult> Accept(uint32_t source, const SourceEvent& event,
                                 const std::vector<Target>& targets, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Whose it is (dispatcher_owner.cc) ---
  bool Owns(const SourceKey& source) const {
    return host_.guard == nullptr || host_.guard->Owns(source);
  }
  static Status NotOwned();
  // Asks the guard, by one of its questions, about the source of a delivery that is in flight.
  using Question = bool (OwnershipGuard::*)(const SourceKey&);
  Status CheckOwned(std::string_view id, Question question) ABSL_LOCKS_EXCLUDED(mu_);
  void PushIfOwned(const Push& push) ABSL_LOCKS_EXCLUDED(mu_);
  void TellIfOwned(const Told& told) ABSL_LOCKS_EXCLUDED(mu_);
  void TellWithheld() ABSL_LOCKS_EXCLUDED(mu_);
  void WithholdDeadLetter(Slot slot, FlightKey id) ABSL_LOCKS_EXCLUDED(mu_);

  // --- Sources that move (dispatcher_move.cc) ---
  Status ReadRewound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status NoteRewound(const SourceKey& source) ABSL_LOCKS_EXCLUDED(mu_);
  Status EndMoved(uint32_t source, Slot from, Slot end) ABSL_LOCKS_EXCLUDED(mu_);

  // What Resubscribe named for a client.
  struct EpochFloor {
    uint64_t of_all = 0;           // topics
    StringMap<uint64_t> of_topic;  // if it is more
    Commit newest;                 // of the epochs that were raised
  };
  uint64_t FloorOf(uint32_t client, std::string_view topic) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsConcerned(Slot slot, uint32_t client, const std::optional<std::string_view>& topic)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Raises those of [from, end), as far as they are lower.
  Status RaiseEpochs(const Resubscription& to, uint32_t client, Slot from, Slot end)
      ABSL_LOCKS_EXCLUDED(mu_);
  Status RaiseEpoch(Slot slot, uint64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What raises it, but for its id; none: nothing needs to.
  StatusOr<std::optional<Reschedule>> ToRaise(Slot slot, uint64_t epoch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Raised(Slot slot, uint64_t epoch, const Commit& commit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- What is in flight (dispatcher_view.cc) ---
  PendingDelivery Show(Slot slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Pushing ---
  void PushOrWait(Slot slot, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void BeginPush(Slot slot, uint32_t channel, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishPush(Slot slot, FlightKey id, uint32_t attempt, const Status& durable)
      ABSL_LOCKS_EXCLUDED(mu_);
  void PushCounted(Slot slot, uint32_t channel, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Hand(Slot slot, uint32_t channel, Delivery delivery, absl::Duration now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountPush(Slot slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Arm(Slot slot, absl::Duration due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsWaiting(FlightKey id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Wait(Slot slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StatusOr<Delivery> Read(const Flight& flight) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Ending ---
  struct End {
    Reason reason = Reason::kAcked;
    std::optional<std::string_view> key;  // of the acknowledgement
    const DeadLetter* dead_letter = nullptr;
    bool moved = false;  // ends here only: another has its source, and it is not finished
  };
  // A flight whose end is on its way to the disk.
  struct Ending {
    Slot slot = kNone;
    Reason reason = Reason::kAcked;
    Commit commit;
    Done done;  // is told the outcome; may be null
    bool moved = false;
  };
  // Errors: it is not in flight, or with the dead letters already
  Status CheckEndable(Slot slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckOwner(const Acknowledgement& ack, Slot slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AckAgain(const Acknowledgement& ack, Done done, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // One batch that ends it; `done` (or nobody) gets the outcome. If its end is on its way already,
  // that of the earlier one.
  void EndIt(Slot slot, const End& end, Done done, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The oldest end that is on its way is durable, or failed.
  void FinishEnds(const Status& oldest) ABSL_LOCKS_EXCLUDED(mu_);
  void FinishEnd(Ending ending, const Status& durable, absl::Duration now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishTarget(uint32_t track, bool numbered, uint64_t offset, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellWhenDurable(uint32_t source, const SourceEvent& event, const Commit& commit,
                       Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellSource(uint32_t source, std::optional<uint64_t> offset, uint64_t token, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Dead letters: sink, ledger, one batch ---
  void BeginDeadLetter(Slot slot, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AfterSink(Slot slot, FlightKey id, std::shared_ptr<Delivery> delivery,
                 const StatusOr<DeadLetterPlace>& place) ABSL_LOCKS_EXCLUDED(mu_);
  void AfterLedger(Slot slot, FlightKey id, const Delivery& delivery, const DeadLetterPlace& place,
                   const Status& recorded) ABSL_LOCKS_EXCLUDED(mu_);
  void RetryDeadLetter(Slot slot, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void WriteCursors() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Duration Backoff(uint32_t attempts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Audit(std::string_view what, const Flight& flight) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AuditRefusal(std::string_view what, const Acknowledgement& ack, const Status& why);
  bool IsAudited(std::string_view id) const;

  Engine& engine_;  // Borrowed, as all in host_.
  const DispatcherOptions options_;
  const DispatcherHost host_;
  Clock& clock_;

  Mutex mu_;  // Taken before any lock of the engine.
  Rng& rng_ ABSL_GUARDED_BY(mu_);
  DeliveryBook book_ ABSL_GUARDED_BY(mu_);
  TimerWheel wheel_ ABSL_GUARDED_BY(mu_);
  std::deque<Ending> endings_ ABSL_GUARDED_BY(mu_);  // in the order of the journal
  bool ends_awaited_ ABSL_GUARDED_BY(mu_) = false;   // FinishEnds() will come
  // Who else wants to know the outcome of an end.
  absl::flat_hash_map<Slot, std::vector<Done>> joined_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint32_t, EpochFloor> floors_ ABSL_GUARDED_BY(mu_);  // by client
  std::vector<Told> withheld_ ABSL_GUARDED_BY(mu_);  // until the guard lets them go
  // Up to where what was handed in does not count: see LetGo.
  absl::btree_map<SourceKey, uint64_t> rewound_ ABSL_GUARDED_BY(mu_);
  DispatcherStats stats_ ABSL_GUARDED_BY(mu_);
  bool ready_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<TimerWheel::Timer> due_ ABSL_GUARDED_BY(mu_);
  uint64_t outstanding_ ABSL_GUARDED_BY(mu_) = 0;  // completions that come back to this object
  CondVar all_back_;
};

}  // namespace holdfast
