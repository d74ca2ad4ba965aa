// Dispatcher: delivers events to clients until they are acknowledged, dead-lettered or withdrawn,
// and keeps in an Engine what a restart needs to go on.
//
//   deliver      one batch {a put for each target, SourceSeen}, then the first push
//   acknowledge  owner check, one batch {remove, offset of the client}, durable, then success and,
//                after the last target of an event, SourceAck
//   not acked    pushed again when ack_timeout is over (or its backoff, after a nack), under the
//                same id; a second and later push only once its count is durable
//   given up     after attempts_max pushes: sink, ledger, one batch {dead letter, remove, offset}
//   restart      every delivery is armed with the time that was left to it
//
// At least once: a client may see an id again, never an event lost that Deliver confirmed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/clock.h"
#include "holdfast/commit.h"
#include "holdfast/delivery_state_store.h"
#include "holdfast/engine.h"
#include "holdfast/log_sink.h"
#include "holdfast/offset_store.h"
#include "holdfast/rng.h"

namespace holdfast {

struct DispatcherOptions {
  absl::Duration ack_timeout = absl::Seconds(30);  // from a push to the next; > 0
  uint32_t attempts_max = 6;                       // pushes in all; >= 1
  // After a nack, and between attempts to dead-letter: this, doubled for each attempt up to the
  // maximum, spread by ± jitter.
  absl::Duration backoff_min = absl::Seconds(1);
  absl::Duration backoff_max = absl::Seconds(16);
  double backoff_jitter = 0.2;  // 0 .. 1
  // What was overdue at a restart is spread over this time instead of coming all at once.
  absl::Duration recover_spread = absl::Seconds(1);
  // How often a running dispatcher looks for what is due.
  absl::Duration tick_interval = absl::Milliseconds(500);
  // More deliveries than this are refused with kLimit until some end.
  uint64_t in_flight_per_client = 1'000'000;
  uint64_t in_flight_total = 20'000'000;
  std::string dlq_topic = "dead-letters";  // what a dead letter of the built-in sink names
  LogSink* audit = nullptr;                // one line for each push, ack, refusal, end; borrowed
  // Of so many deliveries one has audit lines, then all of its lines. By its id: the same ones in
  // every process. 1: all; >= 1
  uint64_t audit_one_in = 1;
  LogSink* log = nullptr;  // borrowed
  Clock* clock = nullptr;  // borrowed; null: RealClock(). Wall time for people
};

// One event from a source.
struct SourceEvent {
  SourceKey source;
  // Its number in the source. A source hands in its numbers in order; one that is left out was
  // decided for nobody. None: the event has no number and is not covered by any offset.
  std::optional<uint64_t> offset;
  std::string event;
  uint64_t token = 0;  // of the host, for SourceAck; kept for events without a number only
};

struct Target {
  std::string client;
  // Of the subscription: rises when it is taken over; >= 1. If it is higher than that of a delivery
  // which is in flight already, that one's is raised to it. If it is lower than what Resubscribe
  // named in this process, that holds.
  uint64_t epoch = 1;
};

enum class DeliverOutcome {
  kAccepted,             // a new delivery
  kAlreadyInFlight,      // this client has it pending: the source handed it in again
  kAlreadyAcknowledged,  // finished for this client, durably; here or at an owner before
  kOutOfRange,           // below the client's first offset: never meant for it
};

struct DeliverResult {
  struct OfTarget {
    DeliverOutcome outcome = DeliverOutcome::kAccepted;
    std::string id;  // of the delivery; empty if there is none
  };
  std::vector<OfTarget> targets;  // in the order of the request
  Commit durable;                 // of the puts; a source may forget the event after it
};

struct Acknowledgement {
  std::string_view id;
  std::string_view client;
  uint64_t epoch = 0;
  std::string_view idempotency_key = {};  // empty: the id serves as one
};

// A client's subscriptions begin anew, or have another owner.
struct Resubscription {
  std::string_view client;
  std::optional<std::string_view> topic = {};  // none: all of its topics
  uint64_t epoch = 0;                          // from now on; >= 1
};

// What is done about a delivery at a moment.
enum class DeliveryPhase {
  kWaiting,        // due; its client has no channel
  kScheduled,      // pushed next when it is due; pushed before, if attempt says so
  kCounting,       // its next push is being counted, durably
  kEnding,         // acknowledged, withdrawn or dead-lettered; not durable yet
  kDeadLettering,  // with the sink or the ledger, or waits to be tried there again
};
// "waiting", "scheduled", "counting", "ending", "dead-lettering".
std::string_view DeliveryPhaseName(DeliveryPhase phase);

struct PendingDelivery {
  std::string id;
  std::string client;
  SourceKey source;
  std::optional<uint64_t> offset;
  uint64_t epoch = 0;
  uint32_t attempt = 0;  // pushes counted
  DeliveryPhase phase = DeliveryPhase::kWaiting;
  absl::Duration due_in;  // until it is looked at next; zero: now, or nothing waits for a time
  absl::Duration age;     // since its put, to a hundredth of a second
};

struct PendingFilter {
  std::optional<std::string_view> client = {}, topic = {};  // none: all
  size_t limit = 100;                                       // at most so many; 1 .. 10,000
};

struct ClientStats {
  std::string client;
  uint64_t channels = 0;   // open
  uint64_t in_flight = 0;  // pending deliveries, those that wait for a channel too
  // Since this dispatcher was made.
  uint64_t pushed = 0, redelivered = 0, acked = 0;
  absl::Duration oldest_age;      // of what is in flight, since its put; zero: nothing is
  absl::Duration since_last_ack;  // infinite: there was none
};

struct DispatcherStats {
  uint64_t in_flight = 0;  // pending deliveries, those that wait for a channel too
  uint64_t waiting = 0;    // among them: due, without a channel of their client
  uint64_t pushed = 0, redelivered = 0;
  uint64_t acked = 0, nacked = 0, withdrawn = 0, dead_lettered = 0;
  uint64_t refused_acks = 0, refused_deliveries = 0;
  uint64_t withheld = 0;  // pushes, source ACKs and dead letters that the guard held back
  uint64_t source_acks = 0;
  uint64_t moved_away = 0;    // deliveries that ended because their source is another's: see LetGo
  uint64_t redispatched = 0;  // that were made again because their source came here: see Adopt
  uint64_t recovered = 0, unreadable = 0;  // at Recover()
  std::vector<ClientStats> clients;        // every client that was ever named
};

// The same in the text format of Prometheus (version 0.0.4), with counters and gauges whose names
// begin with holdfast_dispatcher_. Names of clients become labels; bytes that a label cannot show
// come as \xHH.
std::string MetricsText(const DispatcherStats& stats);

// --- What the host plugs in. Calls come from any thread, outside the dispatcher's lock unless it
// is said, and may call the dispatcher. ---

// A connection to one client.
class Channel {
 public:
  virtual ~Channel() = default;
  // Hands over a delivery; `delivery.attempt` counts this push. Must not block. A channel that
  // cannot take it calls ChannelClosed or Nack. A push that was on its way already may come just
  // after an acknowledgement of the same delivery was answered.
  virtual void Push(const Delivery& delivery) = 0;
};

// Told once per event when its last target has finished, durably. A kill before it, or the end of
// the dispatcher while a guard holds it back, makes the source hand the event in again.
class SourceAck {
 public:
  virtual ~SourceAck() = default;
  // `token` is that of an event without a number, 0 otherwise.
  virtual void Finished(const SourceKey& source, std::optional<uint64_t> offset,
                        uint64_t token) = 0;
};

// Whether this process may still act for a source: in a cluster another instance takes over, and
// whoever was stopped meanwhile does not know. Asked just before each push, each SourceAck and each
// dead-lettering, and before Deliver, Ack, Nack and Withdraw take effect. No: a call is refused
// with kStaleOwner and changes nothing; a push or a SourceAck is held back and tried again later,
// without spending another attempt.
class OwnershipGuard {
 public:
  virtual ~OwnershipGuard() = default;
  // Neither may block.
  virtual bool Owns(const SourceKey& source) = 0;
  // Asked before an acknowledgement takes effect. Stricter where what was acknowledged must be
  // known elsewhere too before more of it is.
  virtual bool MayAcknowledge(const SourceKey& source) { return Owns(source); }
};

struct DeadLetterPlace {
  std::string topic;
  uint64_t offset = 0;
};

// Where the bodies of dead letters go. The built-in one keeps them in the engine's journal.
class DeadLetterSink {
 public:
  virtual ~DeadLetterSink() = default;
  // Writes the body; `done` says where it is once it is durable. Idempotent by id: the same id
  // gives the same place. Called for one id at a time; must call `done` exactly once.
  virtual void Write(const Delivery& delivery, std::string_view reason,
                     std::function<void(absl::StatusOr<DeadLetterPlace>)> done) = 0;
};

// Which ids are dead letters. The built-in one is the engine's dead-letter store.
class DeadLetterLedger {
 public:
  virtual ~DeadLetterLedger() = default;
  // `done` is OK once the entry of delivery.id is durable; the first entry of an id wins. Must call
  // `done` exactly once.
  virtual void Record(const Delivery& delivery, const DeadLetterPlace& place,
                      std::function<void(absl::Status)> done) = 0;
  // These are asked at Recover() only. `HasAll`: of many at once, in their order; for ledgers that
  // are far away.
  virtual absl::StatusOr<bool> Has(std::string_view id) = 0;
  virtual absl::StatusOr<std::vector<bool>> HasAll(const std::vector<std::string>& ids) {
    std::vector<bool> has;
    for (const std::string& id : ids) {
      const absl::StatusOr<bool> one = Has(id);
      if (!one.ok()) return one.status();
      has.push_back(*one);
    }
    return has;
  }
};

// All borrowed; they outlive the dispatcher. Null: the built-in one, or none.
struct DispatcherHost {
  SourceAck* source_ack = nullptr;
  DeadLetterSink* sink = nullptr;
  DeadLetterLedger* ledger = nullptr;
  OwnershipGuard* guard = nullptr;  // null: all sources are this process's
  // Asked before each push after the first and each dead-lettering; false withdraws the delivery.
  // Called with the dispatcher's lock held: must not call it, nor block.
  std::function<bool(const Delivery&)> still_wanted;
};

// Threads: any, unless a function says otherwise.
class Dispatcher {
 public:
  // `engine` and `rng` are borrowed and outlive it. Does nothing by itself before Start(): a host
  // with a loop of its own calls Tick().
  // Errors: kInvalidArgument  an option is out of range
  static absl::StatusOr<std::unique_ptr<Dispatcher>> Make(Engine& engine, Rng& rng,
                                                          const DispatcherOptions& options,
                                                          const DispatcherHost& host);
  // Ends the thread, if there is one, and waits until every completion has been called. What is in
  // flight stays in the engine. Needs: every other call has returned
  virtual ~Dispatcher() = default;

  // Takes over what the engine holds: comes first, once. Ledgered ids are retired; the others are
  // armed with the time that was left to them, or due at once if they were never pushed. Again it
  // does nothing. Records that cannot be read are left out, counted and logged.
  // Errors: kUnavailable  the ledger could not be asked: nothing was armed, try again
  virtual absl::Status Recover() = 0;
  // Another process has the source now, or is about to: its numbered deliveries end here, without
  // their clients' offsets moving and without a SourceAck, because whoever has it has its events
  // handed in again. From here on its events are refused with kStaleOwner, and what was handed in
  // here so far does not count as finished if the source comes back. Those without a number stay:
  // nobody else has them. Returns when all that is durable. Again it does nothing.
  // Needs: the guard says that the source is not this process's
  // Errors: kFailedPrecondition  kNotReady; kResourceExhausted, kUnavailable  as Ack: try again
  virtual absl::Status LetGo(const SourceKey& source) = 0;
  // Looks again at the offsets of a source that this process has come to own since Recover(), once
  // they were brought up to what its owner before had made known. What is handed in again and was
  // finished for a client there is not delivered to it once more; what is in flight here and was
  // finished there is withdrawn. If another owned it since, LetGo comes first. `handed_in_before`:
  // the newest event that is known to have been handed in there, for DispatcherStats::redispatched.
  // Errors: kFailedPrecondition  kNotReady; kUnavailable  the journal failed
  virtual absl::Status Adopt(const SourceKey& source, std::optional<uint64_t> handed_in_before) = 0;
  // Ticks in a thread of its own, every tick_interval.
  // Needs: Recover() succeeded
  virtual void Start() = 0;

  // Delivers an event to each of `targets`, one batch for all. Returns when it is in the journal,
  // not when it is durable: see DeliverResult::durable.
  // Errors: kFailedPrecondition  kNotReady: Recover() comes first
  //         kResourceExhausted   kLimit: too many in flight; or as DeliveryStateStore::Put.
  //                              Nothing was written
  //         kPermissionDenied    kStaleOwner: the source is another's
  //         kInvalidArgument     a name or the event is too large; two targets are one client
  virtual absl::StatusOr<DeliverResult> Deliver(const SourceEvent& event,
                                                const std::vector<Target>& targets) = 0;

  // Ends the delivery. `done` is called once, with OK when that is durable. The same
  // acknowledgement again gets the answer of the first, after a restart too, as long as it is among
  // the EngineOptions::remembered_answers newest.
  // Errors (in `done`; without effect):
  //   kNotFound            no delivery of this id is in flight here
  //   kPermissionDenied    kWrongClient; kStaleOwner: the epoch is not the delivery's, or its
  //   source
  //                        is another's
  //   kFailedPrecondition  kTerminal: it is being dead-lettered; kNotReady
  //   kResourceExhausted   not written, it is still in flight and comes again
  //   kUnavailable         the outcome is unknown: the journal failed
  virtual void Ack(const Acknowledgement& ack, std::function<void(absl::Status)> done) = 0;
  // Brings the next push forward, to its backoff. Not an attempt of its own.
  // Errors: as Ack
  virtual absl::Status Nack(const Acknowledgement& nack) = 0;
  // Ends the delivery without an acknowledgement or a dead letter. Errors: as Ack
  virtual void Withdraw(std::string_view id, std::function<void(absl::Status)> done) = 0;

  // Raises the epoch of what is in flight for the client: an acknowledgement with an older one is
  // refused from now on, later pushes carry the new one, and so do deliveries that are handed in
  // with a lower one. Epochs that are as high already stay. `done` is called once, with OK when the
  // epoch of every delivery concerned is durable; after an error it may have been raised for some,
  // and the call can be made again.
  // Errors (in `done`):
  //   kInvalidArgument     epoch 0
  //   kFailedPrecondition  kNotReady
  //   kResourceExhausted, kUnavailable  as Ack
  virtual void Resubscribe(const Resubscription& to, std::function<void(absl::Status)> done) = 0;

  // A client has one more connection; what waited for one goes out, what is due longest first.
  // Needs: `channel` is not null
  virtual void ChannelOpened(std::string_view client, std::shared_ptr<Channel> channel) = 0;
  // One of them is gone: what was pushed over it and not acknowledged is due at once for another.
  // Unknown ones change nothing.
  virtual void ChannelClosed(std::string_view client, const Channel* channel) = 0;

  // Does what is due. Cost: what is due, not what is pending.
  virtual void Tick() = 0;

  // Deliveries of `client` in flight.
  virtual uint64_t Pending(std::string_view client) = 0;
  // Some of what is in flight, in no particular order; each as it was at some moment of the call.
  // For people: looks at everything that is in flight, a piece at a time.
  // Errors: kInvalidArgument  the limit is out of range
  virtual absl::StatusOr<std::vector<PendingDelivery>> Pending(const PendingFilter& filter) = 0;
  virtual DispatcherStats Stats() = 0;
};

}  // namespace holdfast
