#include "tools/cli_dlq.h"

#include <gtest/gtest.h>

#include "tools/cli.h"
#include "tools/command.h"

namespace holdfast {
namespace {

using Action = DlqCommand::Action;
using Arguments = std::vector<std::string>;

DlqCommand Parsed(const Arguments& arguments) {
  const auto parsed = ParseCommandLine(arguments);
  if (const auto* answer = std::get_if<CommandLineAnswer>(&parsed)) {
    ADD_FAILURE() << answer->err;
    return {};
  }
  return std::get<DlqCommand>(std::get<AnyCommand>(parsed));
}

CommandLineAnswer Answered(const Arguments& arguments) {
  const auto parsed = ParseCommandLine(arguments);
  if (const auto* answer = std::get_if<CommandLineAnswer>(&parsed)) return *answer;
  ADD_FAILURE() << "taken: " << testing::PrintToString(arguments);
  return {};
}

TEST(CliDlqTest, OptionsArriveInTheStruct) {
  const DlqCommand redrive = Parsed({"dlq",
                                     "redrive",
                                     "d",
                                     "--all",
                                     "--topic",
                                     "t",
                                     "--client",
                                     "c",
                                     "--reason",
                                     "r",
                                     "--older-than",
                                     "36h",
                                     "--max",
                                     "7",
                                     "--rate",
                                     "50",
                                     "--not-redriven",
                                     "--dry-run",
                                     "--json",
                                     "--io",
                                     "posix",
                                     "--lock-wait",
                                     "5"});
  EXPECT_EQ(redrive.action, Action::kRedrive);
  EXPECT_EQ(redrive.directory, "d");
  EXPECT_TRUE(redrive.all);
  EXPECT_TRUE(redrive.ids.empty());
  EXPECT_EQ(redrive.filter.topic, "t");
  EXPECT_EQ(redrive.filter.client, "c");
  EXPECT_EQ(redrive.filter.reason, "r");
  EXPECT_EQ(redrive.filter.older_than, absl::Hours(36));
  EXPECT_EQ(redrive.filter.count_max, 7u);
  EXPECT_TRUE(redrive.filter.not_redriven);
  EXPECT_EQ(redrive.rate, 50u);
  EXPECT_TRUE(redrive.dry_run);
  EXPECT_TRUE(redrive.json);
  EXPECT_EQ(redrive.writer.io, IoBackend::kPosix);
  EXPECT_EQ(redrive.writer.lock_wait, absl::Milliseconds(5));

  const DlqCommand list = Parsed({"dlq", "list", "d"});
  EXPECT_EQ(list.action, Action::kList);
  EXPECT_EQ(list.filter.topic, std::nullopt);
  EXPECT_EQ(list.filter.older_than, std::nullopt);
  EXPECT_EQ(list.filter.count_max, std::nullopt);
  EXPECT_EQ(Parsed({"dlq", "show", "d", "a"}).ids, (Arguments{"a"}));
  const DlqCommand purge = Parsed({"dlq", "purge", "d", "b", "base64:AP8=", "b", "list"});
  EXPECT_EQ(purge.action, Action::kPurge);
  EXPECT_FALSE(purge.all);
  EXPECT_EQ(purge.ids, (Arguments{"b", std::string("\0\xff", 2), "list"}));
  EXPECT_EQ(Parsed({"dlq", "purge", "d", "--", "-x"}).ids, (Arguments{"-x"}));
}

// A shell variable that is not set must not widen what is purged.
TEST(CliDlqTest, AnEmptyWordIsNotTheSameAsNone) {
  const DeadLetterFilter filter =
      Parsed({"dlq", "purge", "d", "--all", "--topic", "", "--client", ""}).filter;
  EXPECT_EQ(filter.topic, "");
  EXPECT_EQ(filter.client, "");
  for (const char* option : {"--reason", "--older-than", "--max"}) {
    EXPECT_EQ(Answered({"dlq", "purge", "d", "--all", option, ""}).exit_code, kExitUsageOrIo)
        << option;
  }
  EXPECT_EQ(Parsed({"dlq", "purge", "d", ""}).ids, (Arguments{""}));
}

// Proves: W2
TEST(CliDlqTest, WhatMeansNothingIsRefused) {
  const std::pair<Arguments, std::string> kSaid[] = {
      {{"dlq", "list"}, "DIR"},
      {{"dlq", "list", "d", "an-id"}, "an-id"},
      {{"dlq", "list", "d", "--all"}, "--all"},
      {{"dlq", "list", "d", "--dry-run"}, "--dry-run"},
      {{"dlq", "list", "d", "--max", "0"}, "holdfast dlq list: --max: at least 1"},
      {{"dlq", "list", "d", "--max", "-1"}, "-1"},
      {{"dlq", "list", "d", "--older-than", "7"}, "no age such as 90m, 36h or 7d: 7"},
      {{"dlq", "list", "d", "--topic", "base64:?"}, "not valid base64"},
      {{"dlq", "list", "d", "--client", "base64:?"}, "not valid base64"},
      {{"dlq", "show", "d"}, "ID"},
      {{"dlq", "show", "d", "a", "b"}, "b"},
      {{"dlq", "show", "d", "base64:?"}, "not valid base64"},
      {{"dlq", "redrive", "d"}, "which ones? Give their IDs, or --all"},
      {{"dlq", "purge", "d"}, "which ones? Give their IDs, or --all"},
      {{"dlq", "purge", "d", "--older-than", "7d"}, "which ones?"},
      {{"dlq", "purge", "d", "a", "--all"}, "IDs and --all exclude each other"},
      {{"dlq", "purge", "d", "a", "--topic", "t"}, "--topic goes with --all"},
      {{"dlq", "redrive", "d", "a", "--max", "1"}, "--max goes with --all"},
      {{"dlq", "redrive", "d", "a", "--not-redriven"}, "--not-redriven goes with --all"},
      {{"dlq", "redrive", "d", "a", "--rate", "-1"}, "-1"},
      {{"dlq", "purge", "d", "a", "--rate", "1"}, "--rate"},
  };
  for (const auto& [arguments, said] : kSaid) {
    const CommandLineAnswer answer = Answered(arguments);
    EXPECT_EQ(answer.exit_code, kExitUsageOrIo) << testing::PrintToString(arguments);
    EXPECT_NE(answer.err.find(said), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find("--help"), std::string::npos) << answer.err;
    EXPECT_EQ(answer.out, "");
  }
}

TEST(CliDlqTest, AnUnknownActionIsNamedAndTheKnownOnesAreListed) {
  const std::string all = " The commands are: dlq list, dlq show, dlq redrive, dlq purge.\n";
  const std::pair<Arguments, std::string> kSaid[] = {
      {{"dlq"}, "holdfast: no command." + all},
      {{"dlq", "frob"}, "holdfast: dlq frob is not a command." + all},
      {{"dlq", "lst", "d"}, "holdfast: dlq lst is not a command. Did you mean dlq list?" + all},
      {{"dlq", "--frob"}, "holdfast: dlq --frob is not a command." + all},
  };
  for (const auto& [arguments, said] : kSaid) {
    const CommandLineAnswer answer = Answered(arguments);
    EXPECT_EQ(answer.exit_code, kExitUsageOrIo);
    EXPECT_TRUE(answer.err.starts_with(said)) << answer.err;
  }
}

TEST(CliDlqTest, EachActionHasHelpWithExamples) {
  for (const char* action : {"list", "show", "redrive", "purge"}) {
    const CommandLineAnswer answer = Answered({"dlq", action, "--help"});
    EXPECT_EQ(answer.exit_code, kExitOk);
    EXPECT_EQ(answer.err, "");
    EXPECT_NE(answer.out.find(std::string("  holdfast dlq ") + action + " /var/lib"),
              std::string::npos)
        << answer.out;
    EXPECT_NE(answer.out.find("Exit codes"), std::string::npos);
    EXPECT_NE(Answered({"dlq", "--help"}).out.find(action), std::string::npos);
  }
}

}  // namespace
}  // namespace holdfast
