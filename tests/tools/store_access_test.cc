// What every command does with a directory that it cannot use.
#include "tools/store_access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "journal/format/segment_header.h"
#include "journal/io/open_storage.h"
#include "journal/mark.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class StoreAccessTest : public SmallStoreTest {
 protected:
  std::vector<std::vector<std::string>> ReadCommands() const {
    return {{"inspect", store_},
            {"dump", store_},
            {"verify", store_},
            {"list", store_, "deliveries"},
            {"get", store_, "delivery", "1"},
            {"compact", store_, "--dry-run"},
            {"dlq", "list", store_},
            {"dlq", "show", store_, "1"},
            {"dlq", "redrive", store_, "1", "--dry-run"},
            {"dlq", "purge", store_, "--all", "--dry-run"},
            {"repair", store_}};
  }
  std::vector<std::vector<std::string>> WriteCommands() const {
    return {{"workload", store_, "--io", "posix"},
            {"check", store_, "--acks", acks_, "--io", "posix"},
            {"checkpoint", store_, "--io", "posix"},
            {"compact", store_, "--io", "posix"},
            {"dlq", "redrive", store_, "1", "--io", "posix"},
            {"dlq", "purge", store_, "--all", "--io", "posix"},
            {"repair", store_, "--apply"}};
  }
  // Of those, the ones that begin no store.
  std::vector<std::vector<std::string>> CareCommands() const {
    std::vector<std::vector<std::string>> commands = WriteCommands();
    commands.erase(commands.begin());
    return commands;
  }
  // Each command ends with 3, says why on the message stream, prints nothing and changes nothing.
  void ExpectRefused(const std::vector<std::vector<std::string>>& commands,
                     const std::string& word) {
    const auto before = Snapshot(directory_.path());
    for (const std::vector<std::string>& arguments : commands) {
      const ToolRun run = RunTool(arguments);
      const std::string command =
          arguments[0] == "dlq" ? arguments[0] + " " + arguments[1] : arguments[0];
      EXPECT_EQ(run.exit_code, kExitUsageOrIo) << command << ": " << run.out << run.err;
      EXPECT_EQ(run.out, "") << command;
      EXPECT_TRUE(run.err.starts_with("holdfast " + command + ": ")) << run.err;
      EXPECT_NE(run.err.find(word), std::string::npos) << command << ": " << run.err;
      EXPECT_EQ(Snapshot(directory_.path()), before) << command;
    }
  }
};

TEST_F(StoreAccessTest, AMissingDirectory) {
  WriteWholeFile(acks_, "");
  ExpectRefused(ReadCommands(), store_);
  ExpectRefused(CareCommands(), store_);
}

TEST_F(StoreAccessTest, AFileInItsPlace) {
  WriteWholeFile(acks_, "");
  WriteWholeFile(store_, "not a directory");
  ExpectRefused(ReadCommands(), store_);
  ExpectRefused(WriteCommands(), store_);
}

TEST_F(StoreAccessTest, AnEmptyDirectoryHoldsNoStore) {
  WriteWholeFile(acks_, "");
  std::filesystem::create_directory(store_);
  ExpectRefused(ReadCommands(), store_);
  ExpectRefused(CareCommands(), store_);
}

TEST_F(StoreAccessTest, AForeignDirectory) {
  WriteWholeFile(acks_, "");
  std::filesystem::create_directory(store_);
  WriteWholeFile(store_ + "/thesis.tex", "years of work");
  ExpectRefused(ReadCommands(), store_);
  ExpectRefused(WriteCommands(), store_);
}

// Proves: G13
TEST_F(StoreAccessTest, ANewerFormat) {
  Work();
  {
    ASSERT_OK_AND_ASSIGN(const auto storage, OpenStorage(store_, {.io = IoBackend::kPosix}));
    ASSERT_OK_AND_ASSIGN(const MarkView view, ReadMark(*storage));
    Mark mark = *view.mark;
    mark.format_version = kFormatVersion + 1;
    ASSERT_OK_AND_ASSIGN(const auto writer, MarkWriter::Open(*storage));
    ASSERT_OK(writer->Write(mark));
  }
  ExpectRefused(ReadCommands(), std::to_string(kFormatVersion + 1));
  ExpectRefused(WriteCommands(), std::to_string(kFormatVersion + 1));
}

// Proves: G7
TEST_F(StoreAccessTest, ReadersWriteNothingAndAReadOnlyDirectoryIsEnough) {
  Work();
  const auto before = Snapshot(directory_.path());
  for (const auto& path : {store_ + "/journal", store_}) {
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  }
  for (const std::vector<std::string>& arguments : ReadCommands()) {
    const ToolRun run = RunTool(arguments);
    EXPECT_TRUE(run.exit_code == kExitOk || run.exit_code == kExitNotFound)
        << arguments[0] << run.err;
  }
  for (const auto& path : {store_, store_ + "/journal"}) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  EXPECT_EQ(Snapshot(directory_.path()), before);
}

// Root may write anywhere: there it is tried as somebody else.
TEST_F(StoreAccessTest, AReadOnlyDirectoryIsRefusedForWriting) {
  Work();
  const bool is_root = geteuid() == 0;
  std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
  for (const char* folder : {"/journal", "/checkpoint", ""}) {
    if (!std::filesystem::exists(store_ + folder)) continue;
    std::filesystem::permissions(store_ + folder, std::filesystem::perms(0555));
  }
  for (const auto& [path, bytes] : Snapshot(directory_.path())) {
    if (std::filesystem::is_regular_file(path)) {
      std::filesystem::permissions(path, std::filesystem::perms(0444));
    }
  }
  if (is_root) {
    ASSERT_EQ(seteuid(65'534), 0);
  }
  ExpectRefused(CareCommands(), store_);
  if (is_root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  for (const char* folder : {"", "/journal", "/checkpoint"}) {
    if (!std::filesystem::exists(store_ + folder)) continue;
    std::filesystem::permissions(store_ + folder, std::filesystem::perms::owner_all);
  }
}

TEST_F(StoreAccessTest, AFailedWriteOfTheResultsIsAnError) {
  Work();
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  Console console{.out = out, .err = err, .clock = RealClock()};
  EXPECT_EQ(RunHoldfast({"list", store_, "deliveries"}, console), kExitUsageOrIo);
  EXPECT_NE(err.str(), "");
}

}  // namespace
}  // namespace holdfast
