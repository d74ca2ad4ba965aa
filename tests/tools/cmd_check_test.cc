#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "tests/tools/small_store.h"
#include "tools/acks_file.h"

namespace holdfast {
namespace {

class CheckTest : public SmallStoreTest {
 protected:
  ToolRun Check(const std::vector<std::string>& extra = {}) {
    std::vector<std::string> arguments = {"check", store_, "--acks", acks_, "--io", "posix"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return RunTool(arguments);
  }
};

// Proves: D1, D2
TEST_F(CheckTest, AWorkloadIsAllThere) {
  Work({{"--threads", "2"}, {"--event-bytes", "3000"}});
  const ToolRun check = Check();
  EXPECT_EQ(check.exit_code, kExitOk) << check.out << check.err;
  EXPECT_NE(check.out.find("OK: nothing is missing"), std::string::npos) << check.out;
  EXPECT_EQ(check.err, "");
}

TEST_F(CheckTest, WhatIsMissingIsListedAndCounted) {
  Work();
  {
    ASSERT_OK_AND_ASSIGN(const auto acks, AcksFile::Open(acks_));
    for (int i = 0; i < 100; ++i) {
      ASSERT_OK(acks->Append(
          {.kind = AckKind::kPut, .id = WorkloadId("9-never-" + std::to_string(i), 8)}));
    }
  }
  const ToolRun check = Check();
  EXPECT_EQ(check.exit_code, kExitFault);
  EXPECT_NE(check.out.find("missing: 9-never-"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("… and 50 more"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("FAULT: 100 findings"), std::string::npos) << check.out;
}

TEST_F(CheckTest, FindingsAreJsonObjects) {
  Work();
  {
    ASSERT_OK_AND_ASSIGN(const auto acks, AcksFile::Open(acks_));
    ASSERT_OK(acks->Append({.kind = AckKind::kPut, .id = "9-never.8"}));
  }
  const ToolRun check = Check({"--json"});
  EXPECT_EQ(check.exit_code, kExitFault);
  ASSERT_EQ(check.lines().size(), 2U);
  ASSERT_OK_AND_ASSIGN(const Json finding, Json::Parse(check.lines()[0]));
  EXPECT_EQ(*finding.Find("finding")->string(), "missing: 9-never.8 was put");
  ASSERT_OK_AND_ASSIGN(const Json summary, Json::Parse(check.lines()[1]));
  EXPECT_EQ(summary.Find("findings")->unsigned_integer(), 1U);
  EXPECT_EQ(*summary.Find("clean")->boolean(), true);
}

TEST_F(CheckTest, BadInputIsAnErrorAndMakesNothing) {
  EXPECT_EQ(Check().exit_code, kExitUsageOrIo) << "no acks file";
  WriteWholeFile(acks_, "");
  const ToolRun missing = Check();
  EXPECT_EQ(missing.exit_code, kExitUsageOrIo) << "no store";
  EXPECT_NE(missing.err.find(store_), std::string::npos) << missing.err;
  EXPECT_FALSE(std::filesystem::exists(store_));
  Work();
  WriteWholeFile(acks_, "put 1.1\nhello\n");
  const ToolRun bad = Check();
  EXPECT_EQ(bad.exit_code, kExitUsageOrIo);
  EXPECT_NE(bad.err.find("line 2"), std::string::npos) << bad.err;
}

}  // namespace
}  // namespace holdfast
