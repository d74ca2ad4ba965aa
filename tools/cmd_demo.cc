// The demo: this program starts itself as a child that dispatches events to simulated clients,
// kills it again and again, recovers the store and audits it against what the child had told. The
// run ends when every event was acknowledged by every client or became a dead letter.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "stores/engine_options.h"
#include "tools/command.h"
#include "tools/demo_audit.h"
#include "tools/demo_tables.h"
#include "tools/demo_work.h"
#include "tools/event_source.h"
#include "tools/reporting_child.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "demo";
constexpr uint64_t kGeneratedEvents = 500;
constexpr uint64_t kEventsWanted = 2000;

StatusOr<DemoWork> PlanWork(const DemoCommand& options) {
  DemoWork work;
  if (options.events.empty()) {
    work.events = MakeCloudEvents(options.seed, kGeneratedEvents);
  } else {
    ASSIGN_OR_RETURN(work.events, ReadCloudEvents(options.events));
  }
  work.repeat = options.repeat;
  if (work.repeat == 0) work.repeat = (kEventsWanted + work.events.size() - 1) / work.events.size();
  work.clients = options.clients;
  work.seed = options.seed;
  return work;
}

// The child's half: works until it is killed or done, and tells over the pipe.
int RunChild(const DemoCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  const StatusOr<DemoWork> work = PlanWork(options);
  if (!work.ok()) return Fail(console, kCommand, work.status());
  const StatusOr<ToldOffsets> told = ToldOffsets::Parse(options.told);
  if (!told.ok()) return Fail(console, kCommand, told.status());
  StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Open(OptionsForWriting(options.directory, options.writer, log));
  if (!engine.ok()) return Fail(console, kCommand, engine.status());
  Mutex mu;  // One report at a time: a line longer than a pipe's buffer would mix with others.
  const auto tell = [&mu, descriptor = *options.report_to](const DemoReport& report) {
    const std::string line = FormatDemoReport(report);
    MutexLock lock(mu);
    for (size_t written = 0; written < line.size();) {
      const ssize_t wrote = ::write(descriptor, line.data() + written, line.size() - written);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        return Unavailable(Detail::kIo, "cannot report: {}",
                           std::generic_category().message(errno));
      }
      written += static_cast<size_t>(wrote);
    }
    return absl::OkStatus();
  };
  const Status worked = RunDemoWork(*work, **engine, console.clock, *told, tell);
  if (!worked.ok()) return Fail(console, kCommand, worked);
  const Status closed = (*engine)->Close();
  return closed.ok() ? kExitOk : Fail(console, kCommand, closed);
}

std::vector<std::string> ChildArguments(const DemoCommand& options, const DemoWork& work,
                                        const ToldOffsets& told) {
  std::vector<std::string> arguments = {
      "demo",
      "--report-to",
      std::to_string(ReportingChild::kReportDescriptor),
      "--told",
      told.Text(),
      "--dir",
      options.directory,
      "--clients",
      std::to_string(work.clients),
      "--repeat",
      std::to_string(work.repeat),
      "--seed",
      std::to_string(work.seed),
      "--durability",
      DurabilityName(options.writer.durability),
      "--commit-interval",
      std::to_string(absl::ToInt64Milliseconds(options.writer.commit_interval)),
      "--segment-bytes",
      std::to_string(options.writer.segment_bytes),
      "--io",
      options.writer.io == IoBackend::kAuto
          ? "auto"
          : (options.writer.io == IoBackend::kUring ? "uring" : "posix")};
  if (!options.events.empty()) arguments.insert(arguments.end(), {"--events", options.events});
  return arguments;
}

// The parent's half.
class Demo {
 public:
  Demo(const DemoCommand& options, const DemoWork& work, Console& console)
      : options_(options), work_(work), console_(console), audit_(work) {
    SeededRng rng(options.seed);
    // One per put and per ack; dead letters have none.
    const uint64_t reports = 2 * work.delivery_count();
    for (uint64_t i = 0; i < options.kills; ++i)
      kill_at_.push_back(reports / 20 + rng.Below(reports * 17 / 20 + 1));
    std::ranges::sort(kill_at_);
  }

  // Errors: the work could not be done. What the audit found is not an error.
  Status Run() {
    const absl::Duration start = console_.clock.Now();
    Progress progress(console_, "reports", 2 * work_.delivery_count());
    bool finished = false;
    while (!finished) {
      ASSIGN_OR_RETURN(finished, OneLife(progress));
      RETURN_IF_ERROR(RecoverAndAudit(finished));
      if (console_.stop_requested()) return Unavailable(Detail::kNone, "interrupted");
    }
    duration_ = console_.clock.Now() - start;
    return absl::OkStatus();
  }

  const DemoAudit& audit() const { return audit_; }
  uint64_t kills() const { return kills_; }
  absl::Duration duration() const { return duration_; }

 private:
  uint64_t Reports() const { return audit_.puts_told() + audit_.acks_told(); }

  // Runs a child until it ends or is killed. True if it finished all the work.
  StatusOr<bool> OneLife(Progress& progress) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<ReportingChild> child,
        ReportingChild::Start(console_.program, ChildArguments(options_, work_, audit_.told())));
    bool killed = false;
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<std::string> line, child->ReadLine());
      if (!line.has_value()) break;
      ASSIGN_OR_RETURN(const DemoReport report, ParseDemoReport(*line));
      audit_.Take(report);
      progress.Update(Reports());
      if (!killed && next_kill_ < kill_at_.size() && Reports() >= kill_at_[next_kill_]) {
        child->Kill();
        killed = true;
      }
    }
    ASSIGN_OR_RETURN(const ChildEnd end, child->Wait());
    // Moments that the child passed between the signal and its death are over.
    while (next_kill_ < kill_at_.size() && Reports() >= kill_at_[next_kill_]) ++next_kill_;
    if (end.signal == SIGKILL && killed) {
      ++kills_;
      return false;
    }
    if (end.signal != 0)
      return Unavailable(Detail::kNone, "the child died of signal {}", end.signal);
    if (end.exit_code != kExitOk) {
      return Unavailable(Detail::kNone, "the child ended with exit code {}", end.exit_code);
    }
    return true;
  }

  Status RecoverAndAudit(bool finished) {
    ConsoleLog log(console_, std::string(kCommand));
    ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                     Engine::Open(OptionsForWriting(options_.directory, options_.writer, log)));
    const uint64_t findings_before = audit_.findings().total();
    ASSIGN_OR_RETURN(const DemoAudit::Round round, audit_.Compare(*engine));
    if (finished) audit_.CheckFinished(round);
    const RecoveryReport& recovery = engine->recovery();
    console_.out << (finished ? std::string("all events finished\n")
                              : fmt::format("kill {} of {} after {} reports ({} puts, {} acks)\n",
                                            kills_, options_.kills, Reports(), audit_.puts_told(),
                                            audit_.acks_told()));
    console_.out << fmt::format(
        "  recovered in {:.1f} ms: {} records from {} segments, {} torn bytes cut, {} records in "
        "doubt kept\n",
        absl::ToDoubleMilliseconds(recovery.duration), recovery.records, recovery.segments,
        recovery.torn_bytes, recovery.copied_records);
    std::string offsets;
    for (size_t i = 0; i < round.offsets.size(); ++i) {
      offsets += fmt::format(" {}={}", DemoWork::ClientName(i), round.offsets[i]);
    }
    console_.out << fmt::format(
        "  the store holds {} pending deliveries and {} dead letters; source cursor {}; "
        "offsets{}\n",
        round.pending, round.dead_letters, round.cursor, offsets);
    console_.out << fmt::format(
        "  durable though the child could not tell any more: {} puts, {} acks; pushed before a put "
        "that the kill took: {}\n",
        round.untold_puts, round.untold_acks, round.unwritten);
    console_.out
        << (audit_.findings().total() == findings_before
                ? "  audit OK: what did not end is there byte for byte, what ended is gone and "
                  "covered, nothing is there twice, the source is not ahead\n"
                : fmt::format("  audit: {} FAULTS\n", audit_.findings().total() - findings_before));
    console_.out << std::flush;
    return engine->Close();
  }

  const DemoCommand& options_;
  const DemoWork& work_;
  Console& console_;
  DemoAudit audit_;
  std::vector<uint64_t> kill_at_;  // counts of reports, rising
  size_t next_kill_ = 0;
  uint64_t kills_ = 0;
  absl::Duration duration_;
};

// The same work in this process, without a kill.
StatusOr<absl::Duration> TimeWork(const DemoWork& work, const EngineOptions& engine_options,
                                  Console& console) {
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Open(engine_options));
  const absl::Duration start = console.clock.Now();
  RETURN_IF_ERROR(RunDemoWork(work, *engine, console.clock, {},
                              [](const DemoReport&) { return absl::OkStatus(); }));
  const absl::Duration duration = console.clock.Now() - start;
  RETURN_IF_ERROR(engine->Close());
  return duration;
}

Status PrintTables(const DemoCommand& options, const DemoWork& work, const Demo& demo,
                   Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  EngineOptions memory;
  memory.backend = Backend::kMemory;
  ASSIGN_OR_RETURN(const absl::Duration in_memory, TimeWork(work, memory, console));
  const std::string beside = options.directory + ".unkilled";
  const StatusOr<absl::Duration> unkilled =
      TimeWork(work, OptionsForWriting(beside, options.writer, log), console);
  std::error_code ignored;  // What is left over says so itself.
  std::filesystem::remove_all(beside, ignored);
  RETURN_IF_ERROR(unkilled.status());
  const std::string durability = DurabilityName(options.writer.durability);
  console.out << "\n"
              << ClientsTable(demo.audit().tallies()) << "\n"
              << TimesTable(work, {{"in-memory stores", in_memory},
                                   {fmt::format("journal, {}", durability), *unkilled},
                                   {fmt::format("journal, {}, {} kills, recoveries, audits",
                                                durability, demo.kills()),
                                    demo.duration()}})
              << "Much of each is waiting: for slow clients, and for the timeouts of poison.\n";
  return absl::OkStatus();
}

int RunParent(const DemoCommand& options, Console& console) {
  const StatusOr<DemoWork> work = PlanWork(options);
  if (!work.ok()) return Fail(console, kCommand, work.status());
  console.out << fmt::format("{} events ({}, {} times), {} clients: {} deliveries; store {}\n",
                             work->event_count(),
                             options.events.empty() ? "generated" : options.events, work->repeat,
                             work->clients, work->delivery_count(), options.directory);
  Demo demo(options, *work, console);
  const Status ran = demo.Run();
  const Findings& findings = demo.audit().findings();
  for (const std::string& finding : findings.shown()) console.out << "FAULT: " << finding << "\n";
  if (findings.total() > 0) {
    console.out << fmt::format("{} faults; the store is kept in {}\n", findings.total(),
                               options.directory);
    return kExitFault;
  }
  if (!ran.ok()) return Fail(console, kCommand, ran);
  if (const Status printed = PrintTables(options, *work, demo, console); !printed.ok()) {
    return Fail(console, kCommand, printed);
  }
  DemoTally all;
  for (const DemoTally& tally : demo.audit().tallies()) {
    all.acked += tally.acked;
    all.dead_letters += tally.dead_letters;
    all.duplicates += tally.duplicates;
  }
  if (demo.audit().crossed() > 0) {
    console.out << fmt::format("\n{} pushes met an acknowledgement that was on its way\n",
                               demo.audit().crossed());
  }
  console.out << fmt::format(
      "\nOK: {} deliveries, {} kills: {} acked, {} dead letters, {} redelivered; nothing lost, "
      "nothing back, each ended once\n",
      work->delivery_count(), demo.kills(), all.acked, all.dead_letters, all.duplicates);
  return kExitOk;
}

// Errors: there is something at `path` already
Status CheckIsFree(const std::string& path) {
  std::error_code error;
  const bool is_free =
      !std::filesystem::exists(path, error) ||
      (std::filesystem::is_directory(path, error) && std::filesystem::is_empty(path, error));
  if (error) return Unavailable(Detail::kIo, "{}: {}", path, error.message());
  if (!is_free) return AlreadyExists("{} is not empty; the demo wants a new directory", path);
  return absl::OkStatus();
}

}  // namespace

int RunDemo(const DemoCommand& options, Console& console) {
  if (options.report_to.has_value()) return RunChild(options, console);
  if (!options.directory.empty()) {
    for (const std::string& path : {options.directory, options.directory + ".unkilled"}) {
      if (const Status is_free = CheckIsFree(path); !is_free.ok())
        return Fail(console, kCommand, is_free);
    }
    return RunParent(options, console);
  }
  std::error_code error;
  std::string base =
      (std::filesystem::temp_directory_path(error) / "holdfast-demo-XXXXXX").string();
  if (error || ::mkdtemp(base.data()) == nullptr) {
    return Fail(console, kCommand,
                Unavailable(Detail::kIo, "cannot make a temporary directory {}", base));
  }
  DemoCommand in_base = options;
  in_base.directory = base + "/store";
  const int exit_code = RunParent(in_base, console);
  if (exit_code != kExitFault) std::filesystem::remove_all(base, error);
  return exit_code;
}

}  // namespace holdfast
