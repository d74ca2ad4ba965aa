#include "tools/demo_work.h"

#include <optional>
#include <set>
#include <utility>

#include "holdfast/dispatcher.h"
#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "tools/demo_clients.h"
#include "tools/demo_temper.h"
#include "tools/in_flight.h"

namespace holdfast {
namespace {

// Events that the source was not told the end of: enough that those which wait for a retry do not
// hold up the others.
constexpr size_t kOpenEventsMax = 128;
// Far more than any event takes.
constexpr absl::Duration kStuckAfter = absl::Seconds(20);

DispatcherOptions OptionsOf(Clock& clock) {
  DispatcherOptions options;
  options.ack_timeout = kDemoAckTimeout;
  options.attempts_max = kDemoAttemptsMax;
  options.backoff_min = absl::Milliseconds(10);
  options.backoff_max = absl::Milliseconds(40);
  options.recover_spread = absl::Milliseconds(20);
  options.tick_interval = absl::Milliseconds(10);
  options.clock = &clock;
  return options;
}

class Source final : public SourceAck {
 public:
  Source(const DemoWork& work, Engine& engine, Clock& clock, ToldOffsets told, const TellDemo& tell)
      : work_(work),
        engine_(engine),
        clock_(clock),
        tell_(tell),
        rng_(work.seed),
        told_(std::move(told)),
        finished_at_(clock.Now()) {
    for (uint64_t i = 0; i < work.clients; ++i) {
      targets_.push_back({.client = DemoWork::ClientName(i)});
    }
  }

  Status ToTheEnd() {
    DemoClientsOptions options;
    options.seed = work_.seed;
    options.tell = tell_;
    options.failed = [this](const Status& why) { Fail(why); };
    for (const Target& target : targets_) options.names.push_back(target.client);
    DemoClients clients(clock_, std::move(options));
    {
      ASSIGN_OR_RETURN(const std::unique_ptr<Dispatcher> dispatcher,
                       Dispatcher::Make(engine_, rng_, OptionsOf(clock_), {.source_ack = this}));
      RETURN_IF_ERROR(dispatcher->Recover());
      clients.Start(*dispatcher);
      dispatcher->Start();
      for (uint64_t offset = 0; offset < work_.event_count() && AwaitOpen(kOpenEventsMax - 1);
           ++offset) {
        HandIn(*dispatcher, offset);
      }
      in_flight_.AwaitNone();
      (void)AwaitOpen(0);  // It leaves its reason in why_.
      clients.Stop();
    }
    MutexLock lock(mu_);
    return why_;
  }

  void Finished(const SourceKey&, std::optional<uint64_t> offset, uint64_t) override {
    Tell({.step = DemoStep::kTold, .offset = *offset});
    MutexLock lock(mu_);
    told_.Add(*offset);
    open_.erase(*offset);
    finished_at_ = clock_.Now();
    changed_.NotifyAll();
  }

 private:
  // Waits until at most so many events are open. False: there is no point in going on.
  bool AwaitOpen(size_t open_max) ABSL_LOCKS_EXCLUDED(mu_) {
    std::optional<uint64_t> stuck_at;
    {
      MutexLock lock(mu_);
      while (open_.size() > open_max && why_.ok()) {
        const absl::Duration deadline = finished_at_ + kStuckAfter;
        if (clock_.Now() >= deadline) {
          why_ = MakeStatus(StatusCode::kDeadlineExceeded, Detail::kNone,
                            fmt::format("{} events are open and none is finished", open_.size()));
          stuck_at = *open_.begin();
          break;
        }
        changed_.WaitFor(mu_, clock_.Until(deadline));
      }
      if (!stuck_at.has_value()) return why_.ok();
    }
    Tell({.step = DemoStep::kStuck, .offset = *stuck_at});
    return false;
  }

  void HandIn(Dispatcher& dispatcher, uint64_t offset) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      MutexLock lock(mu_);
      if (told_.Has(offset)) return;
      open_.insert(offset);
    }
    SourceEvent event;
    event.source = {DemoWork::kTopic, DemoWork::kIncarnation, DemoWork::kPartition};
    event.offset = offset;
    event.event = work_.EventAt(offset);
    const StatusOr<DeliverResult> result = dispatcher.Deliver(event, targets_);
    if (!result.ok()) return Fail(result.status());
    std::vector<DemoReport> reports;
    for (uint64_t client = 0; client < targets_.size(); ++client) {
      reports.push_back(AnswerFor(result->targets[client], client, offset));
    }
    in_flight_.Begin();
    result->durable.Then([this, reports = std::move(reports)](const Status& outcome) {
      if (!outcome.ok()) Fail(outcome);
      for (size_t i = 0; outcome.ok() && i < reports.size(); ++i) Tell(reports[i]);
      in_flight_.End();
    });
  }

  static DemoReport AnswerFor(const DeliverResult::OfTarget& target, uint64_t client,
                              uint64_t offset) {
    DemoReport report{.step = DemoStep::kOver, .id = target.id, .client = client, .offset = offset};
    if (target.outcome == DeliverOutcome::kAccepted) report.step = DemoStep::kPut;
    if (target.outcome == DeliverOutcome::kAlreadyInFlight) report.step = DemoStep::kAgain;
    return report;
  }

  void Tell(const DemoReport& report) ABSL_LOCKS_EXCLUDED(mu_) {
    if (const Status told = tell_(report); !told.ok()) Fail(told);
  }

  void Fail(const Status& why) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (why_.ok()) why_ = why;
    changed_.NotifyAll();
  }

  const DemoWork& work_;
  Engine& engine_;
  Clock& clock_;
  const TellDemo& tell_;
  SeededRng rng_;  // the dispatcher's
  std::vector<Target> targets_;
  InFlight in_flight_{kOpenEventsMax};
  Mutex mu_;
  CondVar changed_;
  ToldOffsets told_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> open_ ABSL_GUARDED_BY(mu_);     // handed in, end not told
  absl::Duration finished_at_ ABSL_GUARDED_BY(mu_);  // the newest, or the start
  Status why_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::string DemoWork::ClientName(uint64_t number) {
  return fmt::format("{}-{}", TemperName(TemperOf(number)), number + 1);
}

Status RunDemoWork(const DemoWork& work, Engine& engine, Clock& clock, ToldOffsets told,
                   const TellDemo& tell) {
  return Source(work, engine, clock, std::move(told), tell).ToTheEnd();
}

}  // namespace holdfast
