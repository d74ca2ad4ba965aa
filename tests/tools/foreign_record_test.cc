// A store with records of a later version: those that must be known refuse every open and change
// nothing; those that may be skipped keep their segment and all later ones.
#include "tests/support/foreign_record.h"

#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "journal/io/open_storage.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class ForeignRecordTest : public SmallStoreTest {
 protected:
  // The segment that holds it.
  std::string Append(uint16_t flags) {
    const auto storage = OpenPosixStorage(store_, {});
    CHECK_OK(storage.status());
    const auto segment = AppendForeignRecord(**storage, flags, uint64_t{64} << 10);
    CHECK_OK(segment.status());
    return store_ + "/" + SegmentFileName(*segment);
  }
  Json Compact() {
    const ToolRun run = RunTool({"compact", store_, "--io", "posix", "--json"});
    EXPECT_EQ(run.exit_code, kExitOk) << run.err;
    return Json::Parse(run.out).value();
  }
  static uint64_t Number(const Json& json, const char* name) {
    return json.Find(name)->unsigned_integer().value();
  }
};

// Proves: G13
TEST_F(ForeignRecordTest, OneThatMustBeKnownRefusesEveryOpenAndChangesNothing) {
  Work();
  Append(/*flags=*/0);
  const auto before = Snapshot(store_);
  const std::vector<std::vector<std::string>> commands = {
      {"list", store_, "deliveries"},
      {"get", store_, "delivery", "1"},
      {"workload", store_, "--io", "posix"},
      {"check", store_, "--acks", acks_, "--io", "posix"},
      {"checkpoint", store_, "--io", "posix"},
      {"compact", store_, "--io", "posix"},
      {"compact", store_, "--dry-run"},
      {"dlq", "list", store_},
      {"dlq", "purge", store_, "--all", "--io", "posix"}};
  for (const std::vector<std::string>& arguments : commands) {
    const ToolRun run = RunTool(arguments);
    EXPECT_EQ(run.exit_code, kExitUsageOrIo) << arguments[0] << ": " << run.out << run.err;
    EXPECT_NE(run.err.find("200"), std::string::npos) << arguments[0] << ": " << run.err;
    EXPECT_TRUE(Snapshot(store_) == before) << arguments[0];
  }
  RunTool({"repair", store_, "--apply"});  // nothing is damaged, so it has nothing to do
  EXPECT_TRUE(Snapshot(store_) == before);
}

// Proves: G13, R9
TEST_F(ForeignRecordTest, OneThatMayBeSkippedKeepsItsSegmentAndAllLaterOnes) {
  Work({{"--ops", "1500"}, {"--pending", "20"}});
  const std::string before = Segments().front();
  const std::string pinned = Append(kRecordMaySkip);
  Work({{"--ops", "1500"}, {"--pending", "20"}, {"--seed", "2"}});

  // Twice, so that the second knows of it from a checkpoint only.
  for (int round = 0; round < 2; ++round) {
    const Json report = Compact();
    EXPECT_GT(Number(report, "waiting_segments"), 0u);
    ASSERT_TRUE(std::filesystem::exists(pinned));
    EXPECT_EQ(Segments().front(), pinned) << "older ones went";
    EXPECT_FALSE(std::filesystem::exists(before));
    EXPECT_NE(ReadWholeFile(pinned).find("of a later version"), std::string::npos);
  }
  const ToolRun inspect = RunTool({"inspect", store_});
  EXPECT_EQ(inspect.exit_code, kExitOk) << inspect.err;
  EXPECT_NE(inspect.out.find("\nunknown       1 records of types"), std::string::npos)
      << inspect.out;
  EXPECT_EQ(RunTool({"check", store_, "--acks", acks_, "--io", "posix"}).exit_code, kExitOk);
  EXPECT_EQ(RunTool({"verify", store_}).exit_code, kExitOk);
  EXPECT_TRUE(std::filesystem::exists(pinned));
}

}  // namespace
}  // namespace holdfast
