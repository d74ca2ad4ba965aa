#include "tools/cli.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/command.h"

namespace holdfast {
namespace {

using Arguments = std::vector<std::string>;

template <typename Command>
Command Parsed(const Arguments& arguments) {
  const auto parsed = ParseCommandLine(arguments);
  if (const auto* answer = std::get_if<CommandLineAnswer>(&parsed)) {
    ADD_FAILURE() << answer->err;
    return {};
  }
  const auto* command = std::get_if<Command>(&std::get<AnyCommand>(parsed));
  EXPECT_NE(command, nullptr);
  return command == nullptr ? Command{} : *command;
}

CommandLineAnswer Answered(const Arguments& arguments) {
  const auto parsed = ParseCommandLine(arguments);
  if (const auto* answer = std::get_if<CommandLineAnswer>(&parsed)) return *answer;
  ADD_FAILURE() << "taken: " << testing::PrintToString(arguments);
  return {};
}

// Proves: W2
TEST(CliTest, UnknownWordsAndValuesFail) {
  for (const Arguments& arguments : std::vector<Arguments>{
           {},
           {"frobnicate"},
           {"inspect"},
           {"inspect", "d", "--frobnicate"},
           {"inspect", "d", "e"},
           {"dump", "d", "--from", "x"},
           {"dump", "d", "--from", "-1"},
           {"dump", "d", "--type", "delivery"},
           {"dump", "d", "--key", "base64:!"},
           {"dump", "d", "--follow", "--to", "7"},
           {"get", "d"},
           {"get", "d", "offset", "t", "c"},
           {"get", "d", "offset", "t", "c", "x"},
           {"get", "d", "offset", "t", "c", "1", "--payload"},
           {"get", "d", "offset", "base64:?", "c", "1"},
           {"get", "d", "delivery"},
           {"get", "d", "delivery", "a", "b"},
           {"get", "d", "task", "a"},
           {"list", "d"},
           {"list", "d", "everything"},
           {"workload", "d", "--io", "magic"},
           {"workload", "d", "--durability", "none"},
           {"workload", "d", "--threads", "0"},
           {"workload", "d", "--ops", "many"},
           {"workload", "d", "--seed", "-1"},
           {"workload", "d", "--segment-bytes", "-4096"},
           {"workload", "d", "--pending", "1.5"},
           {"workload", "d", "--commit-interval", "10001"},
           {"check", "d"},
           {"demo", "--clients", "0"},
           {"--frobnicate"},
       }) {
    const CommandLineAnswer answer = Answered(arguments);
    EXPECT_EQ(answer.exit_code, kExitUsageOrIo) << testing::PrintToString(arguments);
    EXPECT_FALSE(answer.err.empty());
    EXPECT_NE(answer.err.find("--help"), std::string::npos) << answer.err;
    EXPECT_TRUE(answer.out.empty());
  }
}

TEST(CliTest, AnUnknownCommandIsNamedAndTheKnownOnesAreListed) {
  const std::string all =
      "The commands are: inspect, dump, verify, get, list, repair, checkpoint, compact, dlq, "
      "workload, check, demo, meta-server, cluster.\n";
  const std::pair<Arguments, std::string> kSaid[] = {
      {{"frob"}, "holdfast: frob is not a command. " + all},
      {{"frob", "d", "--json"}, "holdfast: frob is not a command. " + all},
      {{"--json", "frob"}, "holdfast: frob is not a command. " + all},
      {{"verfy", "d"}, "holdfast: verfy is not a command. Did you mean verify? " + all},
      {{"--frob"}, "holdfast: --frob is not a command. " + all},
      {{}, "holdfast: no command. " + all},
  };
  for (const auto& [arguments, said] : kSaid) {
    const CommandLineAnswer answer = Answered(arguments);
    EXPECT_EQ(answer.exit_code, kExitUsageOrIo);
    EXPECT_EQ(answer.err, said + "Run `holdfast --help`, or `holdfast COMMAND --help`.\n");
    EXPECT_TRUE(answer.out.empty());
  }
}

TEST(CliTest, HelpGoesToStdoutAndShowsExamples) {
  for (const char* command : {"inspect", "dump", "verify", "get", "list", "repair", "workload",
                              "check", "demo", "meta-server", "cluster"}) {
    const CommandLineAnswer answer = Answered({command, "--help"});
    EXPECT_EQ(answer.exit_code, kExitOk);
    EXPECT_TRUE(answer.err.empty());
    EXPECT_NE(answer.out.find(std::string("holdfast ") + command), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("Examples:"), std::string::npos);
    EXPECT_EQ(answer.out.find("--report-to"), std::string::npos) << "is the child's alone";
  }
  const CommandLineAnswer all = Answered({"--help"});
  EXPECT_EQ(all.exit_code, kExitOk);
  for (const char* command : {"inspect", "workload", "Exit codes"}) {
    EXPECT_NE(all.out.find(command), std::string::npos);
  }
  EXPECT_NE(Answered({"--version"}).out.find("holdfast "), std::string::npos);
}

TEST(CliTest, OptionsArriveInTheStruct) {
  const auto workload = Parsed<WorkloadCommand>(
      {"workload",          "d",  "--seed",    "7",     "--ops",           "9",
       "--threads",         "3",  "--acks",    "f",     "--durability",    "written",
       "--commit-interval", "20", "--io",      "posix", "--segment-bytes", "65536",
       "--event-bytes",     "10", "--pending", "11",    "--json"});
  EXPECT_EQ(workload.directory, "d");
  EXPECT_EQ(workload.seed, 7U);
  EXPECT_EQ(workload.operations, 9U);
  EXPECT_EQ(workload.threads, 3U);
  EXPECT_EQ(workload.acks, "f");
  EXPECT_EQ(workload.writer.durability, Durability::kWritten);
  EXPECT_EQ(workload.writer.commit_interval, absl::Milliseconds(20));
  EXPECT_EQ(workload.writer.io, IoBackend::kPosix);
  EXPECT_EQ(workload.writer.segment_bytes, 65536U);
  EXPECT_EQ(workload.event_bytes, 10U);
  EXPECT_EQ(workload.pending, 11U);
  EXPECT_TRUE(workload.json);

  const auto dump = Parsed<DumpCommand>(
      {"dump", "d", "--from", "5", "--to", "6", "--type", "delivery-put", "--key", "k"});
  EXPECT_EQ(dump.from, 5U);
  EXPECT_EQ(dump.to, 6U);
  EXPECT_EQ(dump.type, "delivery-put");
  EXPECT_EQ(dump.key, "k");
  EXPECT_EQ(Parsed<CheckCommand>({"check", "d", "--acks", "f", "--io", "uring"}).writer.io,
            IoBackend::kUring);
  EXPECT_TRUE(Parsed<RepairCommand>({"repair", "d", "--apply"}).apply);
  EXPECT_EQ(Parsed<ListCommand>({"list", "d", "dead-letters"}).kind, ListKind::kDeadLetters);
  EXPECT_EQ(Parsed<DemoCommand>({"demo", "--kills", "2"}).kills, 2U);
}

// Proves: W1
TEST(CliTest, TheDefaultIsDurable) {
  const auto workload = Parsed<WorkloadCommand>({"workload", "d"});
  EXPECT_EQ(workload.writer.durability, Durability::kSynced);
  EXPECT_EQ(workload.writer.commit_interval, absl::ZeroDuration());
}

// Proves: O3
TEST(CliTest, NamesMayBeAnyBytes) {
  const auto offset =
      Parsed<GetCommand>({"get", "d", "offset", "", "base64:AP8=", "18446744073709551615"});
  EXPECT_EQ(offset.kind, ValueKind::kOffset);
  EXPECT_EQ(offset.topic, "");
  EXPECT_EQ(offset.client, std::string("\0\xff", 2));
  EXPECT_EQ(offset.partition, ~uint64_t{0});
  EXPECT_EQ(Parsed<GetCommand>({"get", "d", "--", "delivery", "-x"}).id, "-x");
  EXPECT_EQ(Parsed<GetCommand>({"get", "d", "dead-letter", "a b"}).kind, ValueKind::kDeadLetter);
}

}  // namespace
}  // namespace holdfast
