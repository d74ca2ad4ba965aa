// holdfast-bench: figures of this machine, always as ratios inside one run.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "bench/backlog_bench.h"
#include "bench/dispatcher_report.h"
#include "bench/machine.h"
#include "bench/pending_bench.h"
#include "bench/recovery_report.h"
#include "bench/stores_bench.h"
#include "bench/stores_report.h"

namespace holdfast::bench {
namespace {

constexpr int kExitUsageOrIo = 3;

struct CommandLine {
  StoresOptions stores;
  PendingOptions pending;
  RecoveryOptions recovery;
  BacklogOptions backlog;
  DispatcherBenchOptions dispatcher;
  std::string directory = "holdfast-bench.data";
  IoBackend io = IoBackend::kAuto;
  bool json = false;
};

int Fail(const Status& status) {
  fmt::print(stderr, "holdfast-bench: {}\n", status.ToString());
  return kExitUsageOrIo;
}

int RunStores(const CommandLine& line, const RunFacts& facts) {
  const StatusOr<StoresReport> report = RunStoresBench(line.stores);
  if (!report.ok()) return Fail(report.status());
  fmt::print("{}", line.json ? StoresJson(*report, facts) : StoresMarkdown(*report, facts));
  return 0;
}

int RunPending(const CommandLine& line) {
  const StatusOr<PendingReport> report = RunPendingBench(line.pending);
  if (!report.ok()) return Fail(report.status());
  fmt::print("{}", line.json ? PendingJson(*report, line.pending)
                             : PendingMarkdown(*report, line.pending));
  return report->found == line.pending.count && report->intact == line.pending.count ? 0 : 2;
}

int RunBacklog(const CommandLine& line, const RunFacts& facts) {
  const StatusOr<BacklogReport> report = RunBacklogBench(line.backlog);
  if (!report.ok()) return Fail(report.status());
  fmt::print("{}", line.json ? BacklogJson(*report, line.backlog, facts)
                             : BacklogMarkdown(*report, line.backlog, facts));
  return report->found == BacklogExpected(line.backlog) ? 0 : 2;
}

int RunDispatcher(const CommandLine& line, const RunFacts& facts) {
  const StatusOr<DispatcherReport> report = RunDispatcherBench(line.dispatcher);
  if (!report.ok()) return Fail(report.status());
  fmt::print("{}", line.json ? DispatcherJson(*report, line.dispatcher, facts)
                             : DispatcherMarkdown(*report, line.dispatcher, facts));
  for (const std::string& fault : report->faults) {
    fmt::print(stderr, "holdfast-bench: {}\n", fault);
  }
  return report->faults.empty() ? 0 : 2;
}

CLI::App* AddDispatcher(CLI::App& app, DispatcherBenchOptions& dispatcher) {
  CLI::App* command = app.add_subcommand(
      "dispatcher", "deliver, push, acknowledge: on the journal and on the in-memory stores");
  command->add_option("--cases", dispatcher.cases, "closed, open, pending or all")
      ->capture_default_str()
      ->check(CLI::IsMember({"closed", "open", "pending", "all"}));
  command->add_option("--seconds", dispatcher.seconds, "of each measurement")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3'600.0));
  command->add_option("--rounds", dispatcher.rounds, "the median of this many is reported")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000));
  command->add_option("--threads", dispatcher.threads, "clients of the closed loop, as 1,2,4")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  command
      ->add_option("--in-flight", dispatcher.in_flight, "deliveries that are out, of all clients")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{256}, uint64_t{10'000'000}));
  command->add_option("--rate", dispatcher.rate, "of the open loop, acknowledgements a second")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e7));
  command->add_option("--pending", dispatcher.pending, "deliveries that wait while it ticks")
      ->capture_default_str();
  command->add_option("--retries", dispatcher.retries, "share of deliveries that is nacked once")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.5));
  command->add_option("--dlq", dispatcher.dlq, "share that is never acknowledged: dead letters")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.5));
  command->footer(
      "Examples:\n"
      "  holdfast-bench dispatcher --dir /mnt/disk/bench\n"
      "      everything: two minutes\n"
      "  holdfast-bench dispatcher --cases closed --threads 1 --rounds 5\n"
      "      what the journal adds to a cycle\n"
      "  holdfast-bench dispatcher --cases open --rate 50000 --seconds 10 --json >>open.jsonl\n"
      "      latency at a fixed rate\n"
      "  holdfast-bench dispatcher --cases pending --pending 10000000\n"
      "      what the targets are meant for: 6 GB of disk and 3 GB of memory\n"
      "  holdfast-bench dispatcher --cases closed --retries 0.05 --dlq 0.01\n"
      "      five of a hundred are nacked once, one never acknowledged\n"
      "Exit code 2: a delivery was lost, or came to more than one end.");
  return command;
}

CLI::App* AddBacklog(CLI::App& app, BacklogOptions& backlog) {
  CLI::App* command = app.add_subcommand(
      "backlog", "many deliveries that stay pending, and a flow of short-lived ones beside them");
  command->add_option("--pending", backlog.pending, "deliveries that stay")->capture_default_str();
  command->add_option("--event-bytes", backlog.event_bytes, "size of each event")
      ->capture_default_str();
  command->add_option("--seconds", backlog.seconds, "of each turn of the flow")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3'600.0));
  command->add_option("--turns", backlog.turns, "of the flow beside the backlog")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  command->footer(
      "Examples:\n"
      "  holdfast-bench backlog --dir /mnt/disk/bench\n"
      "      a million pending: a minute\n"
      "  holdfast-bench backlog --pending 10000000 --turns 20\n"
      "      what the targets are meant for: 17 GB of disk and 1 GB of memory\n"
      "Exit code 2: another number of deliveries was pending at the end than should be.");
  return command;
}

int RunRecovery(const CommandLine& line, const RunFacts& facts) {
  const StatusOr<RecoveryReport> report = RunRecoveryBench(line.recovery);
  if (!report.ok()) return Fail(report.status());
  fmt::print("{}", line.json ? RecoveryJson(*report, line.recovery, facts)
                             : RecoveryMarkdown(*report, line.recovery, facts));
  return report->intact() ? 0 : 2;
}

CLI::App* AddRecovery(CLI::App& app, RecoveryOptions& recovery) {
  CLI::App* command = app.add_subcommand(
      "recovery", "opening a store whose process was killed, cold, beside RocksDB and LMDB");
  command->add_option("--live", recovery.plan.live, "deliveries that are live at the end")
      ->capture_default_str();
  command->add_option("--cycles", recovery.plan.cycles, "deliveries put in all")
      ->capture_default_str();
  command->add_option("--event-bytes", recovery.plan.event_bytes, "size of each event")
      ->capture_default_str();
  const std::map<std::string, RemovalOrder> orders = {{"fifo", RemovalOrder::kFifo},
                                                      {"random", RemovalOrder::kRandom}};
  command
      ->add_option("--order", recovery.plan.order,
                   "which one a cycle removes: fifo (the oldest, the default) or random")
      ->transform(CLI::CheckedTransformer(orders));
  command->add_option("--rounds", recovery.rounds, "the median of this many is reported")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000));
  using Peers = RecoveryOptions::Peers;
  const std::map<std::string, Peers> peers = {{"auto", Peers::kFound},
                                              {"none", Peers::kNone},
                                              {"rocksdb", Peers::kRocksDb},
                                              {"lmdb", Peers::kLmdb}};
  command
      ->add_option(
          "--peers", recovery.peers,
          "auto (those whose libraries were found when this was built, the default), none, "
          "rocksdb or lmdb")
      ->transform(CLI::CheckedTransformer(peers));
  command->footer(
      "Examples:\n"
      "  holdfast-bench recovery --dir /mnt/disk/bench\n"
      "      1 million live of 5 million cycles: 4 GB of disk, about five minutes with both peers\n"
      "  holdfast-bench recovery --live 100000 --cycles 500000 --rounds 1 --peers none\n"
      "      Holdfast alone, in seconds\n"
      "  holdfast-bench recovery --order random --json >>recovery.jsonl\n"
      "      what is live lies all over the journal\n"
      "Exit code 2: a store did not give back what was put into it.");
  return command;
}

std::string Join(int count, char** words) {
  std::string line = "holdfast-bench";
  for (int index = 1; index < count; ++index) line += std::string(" ") + words[index];
  return line;
}

int Main(int count, char** words) {
  CommandLine line;
  CLI::App app("Measures Holdfast on this machine, as ratios inside one run.", "holdfast-bench");
  app.require_subcommand(1);
  const std::map<std::string, IoBackend> backends = {
      {"auto", IoBackend::kAuto}, {"uring", IoBackend::kUring}, {"posix", IoBackend::kPosix}};
  auto add_common = [&](CLI::App* command) {
    command->add_option("--dir", line.directory, "where to write; made if missing")
        ->capture_default_str();
    command->add_option("--io", line.io, "auto, uring or posix")
        ->transform(CLI::CheckedTransformer(backends));
    command->add_flag("--json", line.json, "one JSON object a line instead of markdown");
  };
  CLI::App* stores = app.add_subcommand(
      "stores", "the cycle on the journal stores, the floor, the in-memory stores and bare maps");
  add_common(stores);
  stores->add_option("--seconds", line.stores.seconds, "of each measurement")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3'600.0));
  stores->add_option("--rounds", line.stores.rounds, "the median of this many is reported")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000));
  std::string cases = "all";
  stores->add_option("--cases", cases, "batched, synced or all")
      ->capture_default_str()
      ->check(CLI::IsMember({"batched", "synced", "all"}));
  CLI::App* pending = app.add_subcommand(
      "pending", "memory of many pending deliveries, and whether all come back after a kill");
  add_common(pending);
  pending->add_option("--count", line.pending.count, "deliveries")->capture_default_str();
  pending->add_option("--event-bytes", line.pending.event_bytes, "size of each event")
      ->capture_default_str();
  CLI::App* recovery = AddRecovery(app, line.recovery);
  add_common(recovery);
  CLI::App* backlog = AddBacklog(app, line.backlog);
  add_common(backlog);
  CLI::App* dispatcher = AddDispatcher(app, line.dispatcher);
  add_common(dispatcher);
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsageOrIo;
  }

  std::error_code error;
  std::filesystem::create_directories(line.directory, error);
  if (error) return Fail(Unavailable(Detail::kIo, "{}: {}", line.directory, error.message()));
  line.stores.directory = line.pending.directory = line.directory;
  line.recovery.directory = line.backlog.directory = line.dispatcher.directory = line.directory;
  line.stores.io = line.pending.io = line.recovery.io = line.backlog.io = line.io;
  line.dispatcher.io = line.io;
  line.stores.batched = cases != "synced";
  line.stores.synced = cases != "batched";
  const RunFacts facts{.machine = DescribeMachine(line.directory),
                       .command_line = Join(count, words)};
  if (stores->parsed()) return RunStores(line, facts);
  if (backlog->parsed()) return RunBacklog(line, facts);
  if (dispatcher->parsed()) return RunDispatcher(line, facts);
  return recovery->parsed() ? RunRecovery(line, facts) : RunPending(line);
}

}  // namespace
}  // namespace holdfast::bench

int main(int count, char** words) { return holdfast::bench::Main(count, words); }
