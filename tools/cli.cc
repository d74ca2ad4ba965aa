#include "tools/cli.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "journal/format/records_text.h"
#include "meta/http/transport.h"
#include "tools/cli_dlq.h"
#include "tools/cli_parts.h"
#include "tools/command.h"
#include "tools/nearest_name.h"

namespace holdfast {
namespace {

// The whole command line: options land in the structs, and `chosen` fetches the one that was asked
// for.
class CommandLine {
 public:
  CommandLine();
  std::variant<AnyCommand, CommandLineAnswer> Parse(const std::vector<std::string>& arguments);

 private:
  CLI::App& Command(const char* name, const char* what, const char* examples, Fetch fetch);

  void AddReadCommands();
  void AddWriteCommands();
  void AddServers();

  FetchedCommand FetchDump();
  FetchedCommand FetchGet();
  FetchedCommand FetchList();
  FetchedCommand FetchWorkload();
  FetchedCommand FetchDemo();
  FetchedCommand FetchMetaServer();

  CLI::App app_{
      "Holdfast keeps message-delivery state durable. This tool looks into a store and proves it."};
  CommandTable commands_;

  InspectCommand inspect_;
  DumpCommand dump_;
  VerifyCommand verify_;
  GetCommand get_;
  ListCommand list_;
  RepairCommand repair_;
  MaintenanceCommand checkpoint_{.kind = MaintenanceCommand::Kind::kCheckpoint};
  MaintenanceCommand compact_{.kind = MaintenanceCommand::Kind::kCompact};
  WorkloadCommand workload_;
  CheckCommand check_;
  DemoCommand demo_;
  MetaServerCommand meta_server_;
  ClusterCommand cluster_;
  WriterArguments writer_;
  DlqCommandLine dlq_{writer_};
  std::vector<std::string> get_words_;
  std::string list_word_;
};

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// As far as the line names a command that there is: `app` itself if it names none.
const CLI::App& Chosen(const CLI::App& app) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return *chosen;
}

// As it is typed after the program's name; empty for the whole command line.
std::string FullName(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string group = FullName(*app.get_parent());
  return group + (group.empty() ? "" : " ") + app.get_name();
}

// What is wrong with a line that ends in a group of commands and names none of them.
std::string WithoutCommand(const CLI::App& group, const std::vector<std::string>& arguments) {
  const std::string prefix = FullName(group) + (group.get_parent() == nullptr ? "" : " ");
  std::vector<std::string> names;
  std::string all;
  for (const CLI::App* command : Commands(group)) {
    names.push_back(command->get_name());
    all += (all.empty() ? "" : ", ") + prefix + names.back();
  }
  const auto first = group.get_parent() == nullptr
                         ? arguments.begin()
                         : std::next(std::ranges::find(arguments, group.get_name()));
  const auto word = std::find_if(first, arguments.end(),
                                 [](const std::string& one) { return !one.starts_with("-"); });
  if (word == arguments.end()) {
    const std::string what =
        first == arguments.end() ? "no command" : prefix + NameText(*first) + " is not a command";
    return what + ". The commands are: " + all + ".";
  }
  const std::string nearest = NearestName(*word, names);
  return prefix + NameText(*word) + " is not a command." +
         (nearest.empty() ? "" : " Did you mean " + prefix + nearest + "?") +
         " The commands are: " + all + ".";
}

bool IsRecordTypeName(std::string_view name) {
  for (int type = 1; type <= std::numeric_limits<uint8_t>::max(); ++type) {
    if (RecordTypeName(static_cast<uint8_t>(type)) == name) return true;
  }
  return false;
}

CommandLine::CommandLine() {
  app_.name("holdfast");
  app_.set_version_flag("--version", std::string("holdfast ") + HOLDFAST_VERSION);
  app_.require_subcommand(1);
  app_.footer(
      std::string("`holdfast COMMAND --help` has the options of a command, with examples.\n") +
      kExitCodes + "\n");
  AddReadCommands();
  AddWriteCommands();
  AddServers();
}

CLI::App& CommandLine::Command(const char* name, const char* what, const char* examples,
                               Fetch fetch) {
  CLI::App& command = AddCommand(app_, {.name = name, .what = what, .examples = examples});
  commands_[&command] = std::move(fetch);
  return command;
}

void CommandLine::AddReadCommands() {
  CLI::App& inspect = Command("inspect", "What the store holds and how it was left",
                              "  holdfast inspect /var/lib/app/state\n"
                              "  holdfast inspect /var/lib/app/state --json\n",
                              [this] { return AnyCommand(inspect_); });
  inspect.add_option("DIR", inspect_.directory, kDirectoryHelp)->required();
  inspect.add_flag("--json", inspect_.json, kJsonHelp);

  CLI::App& dump =
      Command("dump", "Every record, in order",
              "  holdfast dump /var/lib/app/state --from 1000 --to 1100\n"
              "  holdfast dump /var/lib/app/state --key orders --type offset-advance\n"
              "  holdfast dump /var/lib/app/state --follow --json | grep delivery-remove\n",
              [this] { return FetchDump(); });
  dump.add_option("DIR", dump_.directory, kDirectoryHelp)->required();
  dump.add_option("--from", dump_.from, "first LSN")->check(WholeNumber());
  dump.add_option("--to", dump_.to, "last LSN")->check(WholeNumber());
  dump.add_option("--type", dump_.type, "only records of this type, e.g. delivery-put");
  dump.add_option("--key", dump_.key,
                  "only records with this id, topic or client (base64:… for any bytes)");
  dump.add_flag("--follow", dump_.follow,
                "go on with what a live writer appends, until interrupted");
  dump.add_flag("--payload", dump_.payload, "print events too, not only their sizes");
  dump.add_flag("--json", dump_.json, kJsonHelp);

  CLI::App& verify = Command("verify", "Read and check every byte",
                             "  holdfast verify /var/lib/app/state\n"
                             "  holdfast verify /var/lib/app/state --json\n",
                             [this] { return AnyCommand(verify_); });
  verify.add_option("DIR", verify_.directory, kDirectoryHelp)->required();
  verify.add_flag("--json", verify_.json, kJsonHelp);

  CLI::App& get =
      Command("get", "One value",
              "  holdfast get /var/lib/app/state offset orders billing 3\n"
              "  holdfast get /var/lib/app/state delivery 1-9f0c2a77-42 --payload > event\n"
              "  holdfast get /var/lib/app/state dead-letter 1-9f0c2a77-42 --json\n"
              "  holdfast get /var/lib/app/state -- offset base64:/wA= -odd- 0\n",
              [this] { return FetchGet(); });
  get.add_option("DIR", get_.directory, kDirectoryHelp)->required();
  get.add_option(
         "WHAT", get_words_,
         "offset TOPIC CLIENT PARTITION, delivery ID or dead-letter ID (base64:… for any bytes)")
      ->required()
      ->expected(2, 4);
  get.add_flag("--payload", get_.payload, "the event itself; with --json beside the other fields");
  get.add_flag("--json", get_.json, kJsonHelp);

  CLI::App& list = Command("list", "All values, as recovered",
                           "  holdfast list /var/lib/app/state offsets\n"
                           "  holdfast list /var/lib/app/state deliveries --json | jq .client\n",
                           [this] { return FetchList(); });
  list.add_option("DIR", list_.directory, kDirectoryHelp)->required();
  list.add_option("WHAT", list_word_, "offsets, deliveries, dead-letters or tasks")
      ->required()
      ->check(CLI::IsMember({"offsets", "deliveries", "dead-letters", "tasks"}));
  list.add_flag("--json", list_.json, kJsonHelp);
}

void CommandLine::AddWriteCommands() {
  CLI::App& repair =
      Command("repair", "What would bring a damaged store back; with --apply does it",
              "  holdfast repair /var/lib/app/state\n"
              "  holdfast repair /var/lib/app/state --apply\n",
              [this] {
                repair_.lock_wait = writer_.Fetch().lock_wait;
                return AnyCommand(repair_);
              });
  repair.add_option("DIR", repair_.directory, kDirectoryHelp)->required();
  repair.add_flag("--apply", repair_.apply,
                  "do it: rename what is damaged to quarantine, never delete");
  writer_.AddLockWait(repair);
  repair.add_flag("--json", repair_.json, kJsonHelp);

  CLI::App& checkpoint =
      Command("checkpoint", "Take a checkpoint, so that the next start reads little",
              "  holdfast checkpoint /var/lib/app/state\n", [this] {
                checkpoint_.writer = writer_.Fetch();
                return AnyCommand(checkpoint_);
              });
  checkpoint.add_option("DIR", checkpoint_.directory, kDirectoryHelp)->required();
  writer_.AddOpenOptions(checkpoint);
  checkpoint.add_flag("--json", checkpoint_.json, kJsonHelp);

  CLI::App& compact =
      Command("compact", "State what is live again and give back the rest of the disk",
              "  holdfast compact /var/lib/app/state --dry-run\n"
              "  holdfast compact /var/lib/app/state\n",
              [this] {
                compact_.writer = writer_.Fetch();
                return AnyCommand(compact_);
              });
  compact.add_option("DIR", compact_.directory, kDirectoryHelp)->required();
  compact.add_flag("--dry-run", compact_.dry_run, "only say what it would do");
  writer_.AddOpenOptions(compact);
  compact.add_flag("--json", compact_.json, kJsonHelp);

  dlq_.AddTo(app_, commands_);

  CLI::App& workload =
      Command("workload", "A deterministic mixed workload, for kill tests",
              "  holdfast workload /tmp/s --seed 7 --ops 100000 --threads 4 --acks /tmp/acks\n"
              "  holdfast workload /tmp/s --seed 8 --ops 5000 --io posix --segment-bytes 65536\n",
              [this] { return FetchWorkload(); });
  workload.add_option("DIR", workload_.directory, kDirectoryHelp)->required();
  workload.add_option("--seed", workload_.seed, "chooses the operations")
      ->check(WholeNumber())
      ->capture_default_str();
  workload.add_option("--ops", workload_.operations, "operations to do")
      ->check(WholeNumber())
      ->capture_default_str();
  workload.add_option("--threads", workload_.threads, "callers")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  workload.add_option("--acks", workload_.acks, "append what became durable to this file");
  workload.add_option("--event-bytes", workload_.event_bytes, "size of most events")
      ->check(WholeNumber())
      ->capture_default_str();
  workload.add_option("--pending", workload_.pending, "deliveries in flight to aim at")
      ->check(WholeNumber())
      ->capture_default_str();
  writer_.AddWriterOptions(workload);
  workload.add_flag("--json", workload_.json, kJsonHelp);

  CLI::App& check = Command("check", "Recover a store and compare it with what a workload was told",
                            "  holdfast check /tmp/s --acks /tmp/acks\n", [this] {
                              check_.writer = writer_.Fetch();
                              return AnyCommand(check_);
                            });
  check.add_option("DIR", check_.directory, kDirectoryHelp)->required();
  check.add_option("--acks", check_.acks, "the file that the workload appended to")->required();
  writer_.AddOpenOptions(check);
  check.add_flag("--json", check_.json, kJsonHelp);

  CLI::App& demo = Command("demo", "Deliver events, be killed again and again, recover, audit",
                           "  holdfast demo\n"
                           "  holdfast demo --events webhooks.cloudevents.jsonl.zst --kills 8\n"
                           "  holdfast demo --dir /tmp/demo && holdfast inspect /tmp/demo\n",
                           [this] { return FetchDemo(); });
  demo.add_option("--events", demo_.events,
                  "CloudEvents, one JSON object per line, also zstd-compressed");
  demo.add_option("--dir", demo_.directory,
                  "a new directory for the store, kept; else a temporary one");
  demo.add_option("--kills", demo_.kills, "how often the child is killed")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  demo.add_option("--clients", demo_.clients,
                  "clients that each event goes to: fast, slow, nacking, dying, poison, fast, ...")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  demo.add_option("--repeat", demo_.repeat, "times through the events; 0: until there are 2000")
      ->capture_default_str();
  demo.add_option("--seed", demo_.seed, "chooses what the clients do, and kill moments")
      ->check(WholeNumber())
      ->capture_default_str();
  writer_.AddWriterOptions(demo);
  // Hidden: for the child.
  demo.add_option("--report-to", demo_.report_to)->group("");
  demo.add_option("--told", demo_.told)->group("");
}

void CommandLine::AddServers() {
  CLI::App& meta_server =
      Command("meta-server", "Serve shared values to clients of etcd's v3 JSON gateway",
              "  holdfast meta-server --data /var/lib/app/meta\n"
              "  holdfast meta-server --data /tmp/m --listen 127.0.0.1:0\n"
              "  holdfast meta-server --data /var/lib/app/meta --listen 0.0.0.0:2379 \\\n"
              "    --cert server.pem --key server.key --client-ca ca.pem\n",
              [this] { return FetchMetaServer(); });
  meta_server.add_option("--data", meta_server_.directory, kDirectoryHelp)->required();
  meta_server
      .add_option("--listen", meta_server_.listen,
                  "numeric address and port; with port 0 a free one, which is printed")
      ->capture_default_str();
  meta_server
      .add_option("--name", meta_server_.name,
                  "what this Meta is called; clients go on only with the one they know")
      ->capture_default_str();
  meta_server.add_option("--cert", meta_server_.cert,
                         "serve over TLS, with this certificate (a PEM file)");
  meta_server.add_option("--key", meta_server_.key, "its key, without a passphrase (a PEM file)");
  meta_server.add_option("--client-ca", meta_server_.client_ca,
                         "serve only clients with a certificate of these CAs (a PEM file)");
  writer_.AddOpenOptions(meta_server);

  CLI::App& cluster =
      Command("cluster", "Show the instances of a cluster and their partitions",
              "  holdfast cluster --meta http://127.0.0.1:2379\n"
              "  holdfast cluster --meta http://a:2379 --meta http://b:2379 --json\n",
              [this] { return AnyCommand(cluster_); });
  cluster
      .add_option("--meta", cluster_.meta, "http://HOST:PORT of a member of its Meta; repeatable")
      ->required();
  cluster.add_option("--user", cluster_.user, "of the Meta");
  cluster.add_option("--password", cluster_.password, "of that user");
  cluster.add_flag("--json", cluster_.json, kJsonHelp);
}

FetchedCommand CommandLine::FetchDump() {
  if (dump_.key.has_value()) {
    std::optional<std::string> key = ParseName(*dump_.key);
    if (!key.has_value()) return Refusal{"--key: not valid base64"};
    dump_.key = std::move(key);
  }
  if (!dump_.type.empty() && !IsRecordTypeName(dump_.type)) {
    return Refusal{"--type: no record type is called " + NameText(dump_.type)};
  }
  if (dump_.follow && dump_.to.has_value()) return Refusal{"--follow and --to exclude each other"};
  return AnyCommand(dump_);
}

FetchedCommand CommandLine::FetchGet() {
  const std::string& kind = get_words_.front();
  std::vector<std::string> names;
  for (size_t i = 1; i < get_words_.size(); ++i) {
    std::optional<std::string> name = ParseName(get_words_[i]);
    if (!name.has_value()) return Refusal{"not valid base64: " + NameText(get_words_[i])};
    names.push_back(std::move(*name));
  }
  if (kind == "offset") {
    get_.kind = ValueKind::kOffset;
    if (names.size() != 3) return Refusal{"offset needs TOPIC CLIENT PARTITION"};
    std::optional<uint64_t> partition = ParseNumber(names[2]);
    if (!partition.has_value()) return Refusal{"not a partition number: " + NameText(names[2])};
    if (get_.payload) return Refusal{"--payload: an offset has no event"};
    get_.topic = names[0];
    get_.client = names[1];
    get_.partition = *partition;
    return AnyCommand(get_);
  }
  if (kind != "delivery" && kind != "dead-letter") {
    return Refusal{"WHAT is offset, delivery or dead-letter, not " + NameText(kind)};
  }
  get_.kind = kind == "delivery" ? ValueKind::kDelivery : ValueKind::kDeadLetter;
  if (names.size() != 1) return Refusal{kind + " needs one ID"};
  get_.id = names[0];
  return AnyCommand(get_);
}

FetchedCommand CommandLine::FetchList() {
  const std::map<std::string, ListKind> kinds = {{"offsets", ListKind::kOffsets},
                                                 {"deliveries", ListKind::kDeliveries},
                                                 {"dead-letters", ListKind::kDeadLetters},
                                                 {"tasks", ListKind::kTasks}};
  list_.kind = kinds.at(list_word_);
  return AnyCommand(list_);
}

FetchedCommand CommandLine::FetchWorkload() {
  workload_.writer = writer_.Fetch();
  return AnyCommand(workload_);
}

FetchedCommand CommandLine::FetchDemo() {
  demo_.writer = writer_.Fetch();
  return AnyCommand(demo_);
}

FetchedCommand CommandLine::FetchMetaServer() {
  meta_server_.writer = writer_.Fetch();
  const auto listen = ParseEndpoint(meta_server_.listen);
  if (!listen.ok()) return Refusal{"--listen: " + std::string(Message(listen.status()))};
  if (!IsNumericAddress(listen->host)) {
    return Refusal{"--listen: " + listen->host + " is no numeric address"};
  }
  if (meta_server_.directory.empty()) return Refusal{"--data: it is empty"};
  if (meta_server_.name.empty()) return Refusal{"--name: it is empty"};
  if (meta_server_.cert.empty() != meta_server_.key.empty()) {
    return Refusal{"--cert and --key go together"};
  }
  if (meta_server_.cert.empty() && !meta_server_.client_ca.empty()) {
    return Refusal{"--client-ca: it goes with --cert and --key"};
  }
  return AnyCommand(meta_server_);
}

std::variant<AnyCommand, CommandLineAnswer> CommandLine::Parse(
    const std::vector<std::string>& arguments) {
  try {
    std::vector<std::string> reversed(arguments.rbegin(),
                                      arguments.rend());  // As the parser wants it.
    app_.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return CommandLineAnswer{.out = Chosen(app_).help()};
  } catch (const CLI::CallForVersion&) {
    return CommandLineAnswer{.out = app_.version() + "\n"};
  } catch (const CLI::Error& error) {
    const CLI::App& chosen = Chosen(app_);
    const std::string why =
        Commands(chosen).empty() ? std::string(error.what()) : WithoutCommand(chosen, arguments);
    return CommandLineAnswer{
        .exit_code = kExitUsageOrIo,
        .err = "holdfast: " + why + "\nRun `holdfast --help`, or `holdfast COMMAND --help`.\n"};
  }
  const CLI::App& command = Chosen(app_);
  FetchedCommand fetched = commands_.at(&command)();
  if (auto* refusal = std::get_if<Refusal>(&fetched)) {
    const std::string name = FullName(command);
    return CommandLineAnswer{.exit_code = kExitUsageOrIo,
                             .err = "holdfast " + name + ": " + refusal->why + "\nRun `holdfast " +
                                    name + " --help`.\n"};
  }
  return std::get<AnyCommand>(std::move(fetched));
}

}  // namespace

std::variant<AnyCommand, CommandLineAnswer> ParseCommandLine(
    const std::vector<std::string>& arguments) {
  return CommandLine().Parse(arguments);
}

}  // namespace holdfast
