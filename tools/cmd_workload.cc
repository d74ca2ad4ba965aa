// The workload: what a dispatcher does to the stores, without the clients. Each thread hands in
// events for random clients, ends deliveries in random order, retries and dead-letters some; about
// a quarter of the operations wait for their outcome, the others overlap.
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "journal/base/json.h"
#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "journal/format/records_text.h"
#include "stores/engine_options.h"
#include "tools/acks_file.h"
#include "tools/command.h"
#include "tools/in_flight.h"
#include "tools/source_ledger.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "workload";
constexpr uint64_t kPartitionsPerTopic = 256;
constexpr uint64_t kInFlightMax = 64;  // operations of one thread whose outcome is not known yet
constexpr uint64_t kIncarnation = 1;
constexpr absl::Duration kAckTimeout = absl::Seconds(30);

// Names that a careless key format would mix up.
const std::vector<std::string>& Topics() {
  static const auto& topics = *new std::vector<std::string>{
      "orders", "orders#eu", std::string("orders/eu|\0", 11), "\xff\xfe", "заказы"};
  return topics;
}
const std::vector<std::string>& Clients() {
  static const auto& clients = *new std::vector<std::string>{"billing", "", "billing/eu#1"};
  return clients;
}

// What all threads share: counters, and why the workload has to end.
class Tally {
 public:
  explicit Tally(uint64_t workers) : working_(workers) {}

  // The first reason wins; OK: somebody asked for the end.
  void Stop(const Status& why) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (why_.ok()) why_ = why;
    stopped_ = true;
  }
  void WorkerEnded() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    --working_;
    ended_.NotifyAll();
  }
  // False: some still work after `patience`.
  bool AwaitWorkers(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (working_ > 0) ended_.WaitFor(mu_, patience);
    return working_ == 0;
  }
  bool stopped() const { return stopped_; }
  Status why() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return why_;
  }

  std::atomic<uint64_t> done{0}, puts{0}, acks{0}, dead{0}, retries{0}, repeats{0}, reads{0},
      refused{0};

 private:
  std::atomic<bool> stopped_{false};
  Mutex mu_;
  CondVar ended_;
  uint64_t working_ ABSL_GUARDED_BY(mu_);
  Status why_ ABSL_GUARDED_BY(mu_);
};

bool IsFull(const Status& status) {
  return DetailOf(status) == Detail::kDiskFull || DetailOf(status) == Detail::kNotWritten;
}

// One caller and the sources that are its own, so its decisions depend on its seed alone.
class Worker {
 public:
  Worker(const WorkloadCommand& options, uint64_t number, Engine& engine, Clock& clock,
         AcksFile* acks, Tally& tally)
      : options_(options),
        pending_target_(options.pending / options.threads + 1),
        engine_(engine),
        clock_(clock),
        acks_(acks),
        tally_(tally),
        rng_(options.seed * 1'000'003 + number) {}

  void Own(SourceLedger ledger) { ledgers_.push_back(std::move(ledger)); }

  void Run(uint64_t operations) {
    for (uint64_t i = 0; i < operations && !tally_.stopped(); ++i) {
      Operate();
      tally_.done.fetch_add(1, std::memory_order_relaxed);
    }
    in_flight_.AwaitNone();
  }

 private:
  void Operate();
  void HandIn(SourceLedger& ledger);
  void End(SourceLedger& ledger, bool dead);
  void Retry(SourceLedger& ledger);
  void RepeatRemove();
  void ReadBack(SourceLedger& ledger);

  uint64_t PendingCount() const {
    uint64_t count = 0;
    for (const SourceLedger& ledger : ledgers_) count += ledger.pending_count();
    return count;
  }
  uint64_t ChooseEventBytes();
  bool Note(const AckLine& line);
  // Settles one operation: counts it, notes `lines` once it is durable, waits for it now and then.
  void Settle(const Commit& commit, std::atomic<uint64_t>& counter, std::vector<AckLine> lines);

  const WorkloadCommand& options_;
  const uint64_t pending_target_;
  Engine& engine_;
  Clock& clock_;
  AcksFile* const acks_;  // null: nobody asked for lines
  Tally& tally_;
  SeededRng rng_;
  std::vector<SourceLedger> ledgers_;
  bool full_ = false;     // the disk refuses puts: only end what is there
  std::string ended_id_;  // of a delivery that was ended, to end again
  InFlight in_flight_{kInFlightMax};
};

void Worker::Operate() {
  SourceLedger& ledger = ledgers_[rng_.Below(ledgers_.size())];
  const uint64_t choice = rng_.Below(100);
  if (full_ && PendingCount() == 0) {
    tally_.Stop(
        Exhausted(Detail::kDiskFull, "the disk is full, and nothing is left to acknowledge"));
  } else if (choice < 6) {
    Retry(ledger);
  } else if (choice < 8) {
    RepeatRemove();
  } else if (choice < 10) {
    ReadBack(ledger);
  } else if (!full_ && (PendingCount() < pending_target_ ? choice < 75 : choice < 40)) {
    HandIn(ledger);
  } else {
    End(ledger, /*dead=*/rng_.OneIn(16));
  }
}

uint64_t Worker::ChooseEventBytes() {
  if (rng_.OneIn(32)) return 0;
  if (rng_.OneIn(4)) return rng_.Below(options_.event_bytes + 1);
  return options_.event_bytes;
}

bool Worker::Note(const AckLine& line) {
  if (acks_ == nullptr) return true;
  const Status appended = acks_->Append(line);
  if (!appended.ok()) tally_.Stop(appended);
  return appended.ok();
}

void Worker::HandIn(SourceLedger& ledger) {
  const SourceKey& source = ledger.key();
  const uint64_t offset = ledger.next_source_offset();
  std::vector<Delivery> deliveries;
  for (const std::string& client : Clients()) {
    if (!deliveries.empty() && rng_.OneIn(2)) continue;
    Delivery delivery;
    delivery.id = WorkloadId(engine_.NewDeliveryId(), ChooseEventBytes());
    delivery.epoch = 1;
    delivery.topic = source.topic;
    delivery.incarnation = source.incarnation;
    delivery.partition = source.partition;
    delivery.offset = offset;
    delivery.client = client;
    delivery.due = engine_.EngineNow() + kAckTimeout;
    delivery.created = clock_.WallNow();
    StatusOr<std::string> event = WorkloadEvent(delivery.id);
    if (!event.ok()) return tally_.Stop(event.status());
    delivery.event = std::move(*event);
    deliveries.push_back(std::move(delivery));
  }
  const Commit commit = engine_.Transact([&](Transaction& transaction) {
    for (const Delivery& delivery : deliveries) transaction.PutDelivery(delivery);
    transaction.SourceSeen(source, offset);
  });
  if (!commit.refused().ok() && IsFull(commit.refused())) {
    full_ = true;
    tally_.refused.fetch_add(deliveries.size(), std::memory_order_relaxed);
    return;
  }
  std::vector<AckLine> lines;
  for (Delivery& delivery : deliveries) {
    lines.push_back({.kind = AckKind::kPut, .id = delivery.id});
    ledger.AddPending({.id = delivery.id, .client = delivery.client, .offset = offset, .epoch = 1});
  }
  ledger.MarkSeen(offset);
  Settle(commit, tally_.puts, std::move(lines));
}

void Worker::End(SourceLedger& ledger, bool dead) {
  const std::optional<OwedDelivery> ended = ledger.TakePending(rng_);
  if (!ended.has_value()) return;
  if (!Note({.kind = AckKind::kTry, .id = ended->id})) return;
  const SourceKey& source = ledger.key();
  const uint64_t next = ledger.NextFor(ended->client);
  DeadLetter dead_letter;
  if (dead) {
    dead_letter.delivery_id = ended->id;
    dead_letter.dlq_topic = "dead-letters";
    dead_letter.dlq_offset = ended->offset;
    dead_letter.reason = "workload";
    dead_letter.attempts = ended->attempt;
    dead_letter.epoch = ended->epoch;
    dead_letter.topic = source.topic;
    dead_letter.incarnation = source.incarnation;
    dead_letter.partition = source.partition;
    dead_letter.offset = ended->offset;
    dead_letter.client = ended->client;
    dead_letter.died = clock_.WallNow();
    StatusOr<std::string> event = WorkloadEvent(ended->id);
    if (!event.ok()) return tally_.Stop(event.status());
    dead_letter.event = std::move(*event);
  }
  const Commit commit = engine_.Transact([&](Transaction& transaction) {
    if (dead) transaction.RecordDeadLetter(dead_letter);
    transaction.RemoveDelivery({.id = ended->id,
                                .reason = dead ? Reason::kDeadLettered : Reason::kAcked,
                                .client = ended->client,
                                .idempotency_key = {},
                                .answer = {}});
    transaction.WriteOffset({source.topic, ended->client, source.partition},
                            OffsetPosition(next, source.incarnation));
  });
  if (!commit.refused().ok() && IsFull(commit.refused())) {
    return tally_.Stop(Annotate(
        commit.refused(), "the disk is full, and the reserve for acknowledgements is used up"));
  }
  ended_id_ = ended->id;
  if (dead) return Settle(commit, tally_.dead, {{.kind = AckKind::kDead, .id = ended->id}});
  Settle(commit, tally_.acks,
         {{.kind = AckKind::kAck,
           .id = ended->id,
           .topic = source.topic,
           .client = ended->client,
           .partition = source.partition,
           .next = next}});
}

void Worker::Retry(SourceLedger& ledger) {
  OwedDelivery* const pending = ledger.PickPending(rng_);
  if (pending == nullptr) return;
  ++pending->attempt;
  const Commit commit = engine_.deliveries().Update({.id = pending->id,
                                                     .epoch = pending->epoch,
                                                     .attempt = pending->attempt,
                                                     .due = engine_.EngineNow() + kAckTimeout});
  if (!commit.refused().ok() && IsFull(commit.refused())) return;
  Settle(commit, tally_.retries, {});
}

void Worker::RepeatRemove() {
  if (ended_id_.empty()) return;
  const Commit commit = engine_.deliveries().Remove({.id = ended_id_,
                                                     .reason = Reason::kAcked,
                                                     .client = {},
                                                     .idempotency_key = {},
                                                     .answer = {}});
  if (commit.refused().ok() && commit.changed()) {
    return tally_.Stop(DataLoss("delivery {} was ended and was there again", NameText(ended_id_)));
  }
  Settle(commit, tally_.repeats, {});
}

// A delivery that this thread put and did not end is there, with the bytes that it was put with.
void Worker::ReadBack(SourceLedger& ledger) {
  const OwedDelivery* const pending = ledger.PickPending(rng_);
  if (pending == nullptr) return;
  const StatusOr<StoredDelivery> stored = engine_.deliveries().Get(pending->id);
  const StatusOr<std::string> event = WorkloadEvent(pending->id);
  if (!stored.ok()) return tally_.Stop(Annotate(stored.status(), NameText(pending->id)));
  if (!event.ok()) return tally_.Stop(event.status());
  if (stored->delivery.event != *event) {
    return tally_.Stop(DataLoss("delivery {} was read with other bytes", NameText(pending->id)));
  }
  tally_.reads.fetch_add(1, std::memory_order_relaxed);
}

void Worker::Settle(const Commit& commit, std::atomic<uint64_t>& counter,
                    std::vector<AckLine> lines) {
  in_flight_.Begin();
  counter.fetch_add(std::max<uint64_t>(lines.size(), 1), std::memory_order_relaxed);
  commit.Then([this, lines = std::move(lines)](const Status& outcome) {
    if (!outcome.ok()) tally_.Stop(outcome);
    for (size_t i = 0; outcome.ok() && i < lines.size(); ++i) {
      if (!Note(lines[i])) break;
    }
    in_flight_.End();
  });
  if (!rng_.OneIn(4)) return;
  if (const Status outcome = commit.Wait(); !outcome.ok()) tally_.Stop(outcome);
}

// Gives each worker its sources, with what earlier runs left in them.
Status ShareSources(Engine& engine, const std::vector<std::unique_ptr<Worker>>& workers) {
  std::vector<SourceKey> sources;
  for (const std::string& topic : Topics()) {
    for (uint64_t partition = 0; partition < kPartitionsPerTopic; ++partition) {
      sources.push_back({topic, kIncarnation, partition});
    }
  }
  ASSIGN_OR_RETURN(auto ledgers, ReadLedgers(engine, sources));
  for (auto& [source, ledger] : ledgers) {
    const bool active = source.partition < workers.size();
    if (!active && ledger.pending_count() == 0) continue;
    workers[source.partition % workers.size()]->Own(std::move(ledger));
  }
  return absl::OkStatus();
}

void RunWorkers(const WorkloadCommand& options, const std::vector<std::unique_ptr<Worker>>& workers,
                Tally& tally, Console& console) {
  constexpr absl::Duration kLookInterval = absl::Milliseconds(50);
  Progress progress(console, std::string(kCommand), options.operations);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < workers.size(); ++i) {
    const uint64_t share =
        options.operations / workers.size() + (i < options.operations % workers.size() ? 1 : 0);
    threads.emplace_back([&worker = *workers[i], &tally, share] {
      worker.Run(share);
      tally.WorkerEnded();
    });
  }
  while (!tally.AwaitWorkers(kLookInterval)) {
    progress.Update(tally.done.load());
    if (console.stop_requested()) tally.Stop(absl::OkStatus());
  }
  for (std::thread& thread : threads) thread.join();
}

std::string Summary(const Tally& tally, const EngineStats& stats, absl::Duration duration,
                    bool json) {
  const double seconds = absl::ToDoubleSeconds(duration);
  std::string text;
  if (json) {
    JsonWriter(text)
        .BeginObject()
        .Field("ops", tally.done.load())
        .Field("puts", tally.puts.load())
        .Field("acks", tally.acks.load())
        .Field("dead", tally.dead.load())
        .Field("retries", tally.retries.load())
        .Field("repeats", tally.repeats.load())
        .Field("reads", tally.reads.load())
        .Field("refused", tally.refused.load())
        .Field("seconds", seconds)
        .Field("last_lsn", stats.appended_lsn)
        .Field("io", stats.io_backend)
        .Field("durability", DurabilityName(stats.durability))
        .EndObject();
    return text + "\n";
  }
  return fmt::format(
      "{} operations in {:.2f} s ({:.0f} a second): {} puts, {} acks, {} dead letters, {} retries, "
      "{} repeated removes, {} reads, {} puts refused; last LSN {}, {} over {}\n",
      tally.done.load(), seconds, static_cast<double>(tally.done.load()) / std::max(seconds, 1e-9),
      tally.puts.load(), tally.acks.load(), tally.dead.load(), tally.retries.load(),
      tally.repeats.load(), tally.reads.load(), tally.refused.load(), stats.appended_lsn,
      DurabilityName(stats.durability), stats.io_backend);
}

}  // namespace

int RunWorkload(const WorkloadCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  std::unique_ptr<AcksFile> acks;
  if (!options.acks.empty()) {
    StatusOr<std::unique_ptr<AcksFile>> opened = AcksFile::Open(options.acks);
    if (!opened.ok()) return Fail(console, kCommand, opened.status());
    acks = std::move(*opened);
  }
  SeededRng rng(options.seed);  // Also of the engine: ids of two boots differ by their epoch alone.
  EngineOptions engine_options = OptionsForWriting(options.directory, options.writer, log);
  engine_options.rng = &rng;
  StatusOr<std::unique_ptr<Engine>> opened = Engine::Open(engine_options);
  if (!opened.ok()) return Fail(console, kCommand, opened.status());
  Engine& engine = **opened;

  Tally tally(options.threads);
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t i = 0; i < options.threads; ++i) {
    workers.push_back(
        std::make_unique<Worker>(options, i, engine, console.clock, acks.get(), tally));
  }
  if (const Status shared = ShareSources(engine, workers); !shared.ok()) {
    return Fail(console, kCommand, shared);
  }
  const absl::Duration start = console.clock.Now();
  RunWorkers(options, workers, tally, console);
  const absl::Duration duration = console.clock.Now() - start;
  const EngineStats stats = engine.stats();
  const Status closed = engine.Close();
  console.out << Summary(tally, stats, duration, options.json);
  if (const Status why = tally.why(); !why.ok()) return Fail(console, kCommand, why);
  if (!closed.ok()) return Fail(console, kCommand, closed);
  if (tally.refused.load() == 0) return kExitOk;
  return Fail(
      console, kCommand,
      Exhausted(Detail::kDiskFull, "the disk is full: {} puts were refused", tally.refused.load()));
}

}  // namespace holdfast
