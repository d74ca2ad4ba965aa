#include "tools/reporting_child.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

StatusOr<std::unique_ptr<ReportingChild>> Shell(const std::string& script) {
  return ReportingChild::Start("/bin/sh", {"-c", script});
}

TEST(ReportingChildTest, ReadsLinesUntilItEnds) {
  ASSERT_OK_AND_ASSIGN(const auto child, Shell("printf 'one\\n\\nhalf' >&3; exit 7"));
  ASSERT_OK_AND_ASSIGN(const auto one, child->ReadLine());
  EXPECT_EQ(one, "one");
  ASSERT_OK_AND_ASSIGN(const auto empty, child->ReadLine());
  EXPECT_EQ(empty, "");
  ASSERT_OK_AND_ASSIGN(const auto end, child->ReadLine());
  EXPECT_EQ(end, std::nullopt) << "a line without its end was cut";
  ASSERT_OK_AND_ASSIGN(const ChildEnd ended, child->Wait());
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_EQ(ended.signal, 0);
}

TEST(ReportingChildTest, WhatItSaidBeforeItsDeathIsRead) {
  ASSERT_OK_AND_ASSIGN(const auto child, Shell("echo a >&3; echo b >&3; kill -STOP $$"));
  ASSERT_OK_AND_ASSIGN(const auto first, child->ReadLine());
  EXPECT_EQ(first, "a");
  ASSERT_OK_AND_ASSIGN(const auto second, child->ReadLine());
  EXPECT_EQ(second, "b");
  child->Kill();
  ASSERT_OK_AND_ASSIGN(const auto end, child->ReadLine());
  EXPECT_EQ(end, std::nullopt);
  ASSERT_OK_AND_ASSIGN(const ChildEnd ended, child->Wait());
  EXPECT_EQ(ended.signal, SIGKILL);
}

TEST(ReportingChildTest, OneThatCannotStartIsAnError) {
  EXPECT_FAILS(ReportingChild::Start("/no/such/program", {}), kUnavailable, kIo);
}

TEST(ReportingChildTest, OneThatStillRunsEndsWithItsOwner) {
  ASSERT_OK_AND_ASSIGN(auto child, Shell("echo a >&3; kill -STOP $$"));
  ASSERT_OK(child->ReadLine());
  child.reset();
}

}  // namespace
}  // namespace holdfast
