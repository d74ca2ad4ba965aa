#include "tools/demo_work.h"

#include <atomic>
#include <charconv>
#include <map>
#include <optional>

#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "tools/in_flight.h"
#include "tools/source_ledger.h"

namespace holdfast {
namespace {

constexpr uint64_t kInFlightMax = 256;  // transactions whose outcome is open
constexpr uint64_t kPendingPerClient =
    64;  // deliveries to keep waiting, so that their order can be random
constexpr absl::Duration kAckTimeout = absl::Seconds(30);

const char* StepName(DemoStep step) {
  switch (step) {
    case DemoStep::kPut:
      return "put";
    case DemoStep::kTry:
      return "try";
    case DemoStep::kAck:
      break;
  }
  return "ack";
}

// The next word of `line` as a number.
std::optional<uint64_t> TakeNumber(std::string_view& line) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  if (line.starts_with(' ')) line.remove_prefix(1);
  return number;
}

class Run {
 public:
  Run(const DemoWork& work, Engine& engine, Clock& clock,
      const std::function<Status(const DemoReport&)>& tell, SourceLedger ledger)
      : work_(work),
        engine_(engine),
        clock_(clock),
        tell_(tell),
        ledger_(std::move(ledger)),
        rng_(work.seed + ledger_.next_source_offset()) {
    for (uint64_t i = 0; i < work.clients; ++i) client_numbers_[DemoWork::ClientName(i)] = i;
  }

  Status ToTheEnd() {
    while (!failed_ && !(AllHandedIn() && ledger_.pending_count() == 0)) {
      const bool room = ledger_.pending_count() < kPendingPerClient * work_.clients;
      if (!AllHandedIn() && (room || rng_.OneIn(2 * work_.clients))) {
        HandIn();
      } else {
        Acknowledge();
      }
    }
    in_flight_.AwaitNone();
    MutexLock lock(mu_);
    return why_;
  }

 private:
  bool AllHandedIn() const { return ledger_.next_source_offset() >= work_.event_count(); }

  void HandIn() {
    const uint64_t offset = ledger_.next_source_offset();
    std::vector<DemoReport> reports;
    const Commit commit = engine_.Transact([&](Transaction& transaction) {
      Delivery delivery;
      delivery.epoch = 1;
      delivery.topic = DemoWork::kTopic;
      delivery.incarnation = DemoWork::kIncarnation;
      delivery.partition = DemoWork::kPartition;
      delivery.offset = offset;
      delivery.created = clock_.WallNow();
      delivery.due = engine_.EngineNow() + kAckTimeout;
      delivery.event = work_.EventAt(offset);
      for (const auto& [name, number] : client_numbers_) {
        delivery.id = engine_.NewDeliveryId();
        delivery.client = name;
        transaction.PutDelivery(delivery);
        reports.push_back(
            {.step = DemoStep::kPut, .id = delivery.id, .client = number, .offset = offset});
        ledger_.AddPending({.id = delivery.id, .client = name, .offset = offset, .epoch = 1});
      }
      transaction.SourceSeen(ledger_.key(), offset);
    });
    ledger_.MarkSeen(offset);
    Settle(commit, std::move(reports));
  }

  void Acknowledge() {
    const std::optional<PendingDelivery> ended = ledger_.TakePending(rng_);
    const uint64_t next = ledger_.NextFor(ended->client);
    DemoReport report{.step = DemoStep::kTry,
                      .id = ended->id,
                      .client = client_numbers_.at(ended->client),
                      .offset = ended->offset};
    if (const Status told = tell_(report); !told.ok()) return Stop(told);
    const Commit commit = engine_.Transact([&](Transaction& transaction) {
      transaction.RemoveDelivery(ended->id, Reason::kAcked);
      transaction.WriteOffset({DemoWork::kTopic, ended->client, DemoWork::kPartition},
                              OffsetPosition(next, DemoWork::kIncarnation));
    });
    report.step = DemoStep::kAck;
    report.next = next;
    Settle(commit, {report});
  }

  void Settle(const Commit& commit, std::vector<DemoReport> reports) {
    in_flight_.Begin();
    commit.Then([this, reports = std::move(reports)](const Status& outcome) {
      Status status = outcome;
      for (size_t i = 0; status.ok() && i < reports.size(); ++i) status = tell_(reports[i]);
      if (!status.ok()) Stop(status);
      in_flight_.End();
    });
  }

  void Stop(const Status& why) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (why_.ok()) why_ = why;
    failed_ = true;
  }

  const DemoWork& work_;
  Engine& engine_;
  Clock& clock_;
  const std::function<Status(const DemoReport&)>& tell_;
  SourceLedger ledger_;
  SeededRng rng_;
  std::map<std::string, uint64_t> client_numbers_;
  InFlight in_flight_{kInFlightMax};
  std::atomic<bool> failed_{false};
  Mutex mu_;
  Status why_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::string DemoWork::ClientName(uint64_t number) { return fmt::format("client-{}", number + 1); }

std::string FormatDemoReport(const DemoReport& report) {
  return fmt::format("{} {} {} {} {}\n", StepName(report.step), report.client, report.offset,
                     report.next, report.id);
}

StatusOr<DemoReport> ParseDemoReport(std::string_view line) {
  for (const DemoStep step : {DemoStep::kPut, DemoStep::kTry, DemoStep::kAck}) {
    const std::string_view name = StepName(step);
    if (!line.starts_with(name) || line.size() <= name.size()) continue;
    std::string_view rest = line.substr(name.size() + 1);
    const std::optional<uint64_t> client = TakeNumber(rest);
    const std::optional<uint64_t> offset = TakeNumber(rest);
    const std::optional<uint64_t> next = TakeNumber(rest);
    if (!client.has_value() || !offset.has_value() || !next.has_value() || rest.empty()) break;
    return DemoReport{
        .step = step, .id = std::string(rest), .client = *client, .offset = *offset, .next = *next};
  }
  return Invalid("not a report of the demo's child");
}

Status RunDemoWork(const DemoWork& work, Engine& engine, Clock& clock,
                   const std::function<Status(const DemoReport&)>& tell) {
  const SourceKey source{DemoWork::kTopic, DemoWork::kIncarnation, DemoWork::kPartition};
  ASSIGN_OR_RETURN(auto ledgers, ReadLedgers(engine, {source}));
  return Run(work, engine, clock, tell, std::move(ledgers.at(source))).ToTheEnd();
}

}  // namespace holdfast
