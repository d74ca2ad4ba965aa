// Stores as earlier versions wrote them. They are never written again, so that nobody can change
// the format without saying so; `expected.txt` is what FORMAT.md makes of them
// (read_by_document.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "holdfast/clock.h"
#include "journal/base/seeded_rng.h"
#include "journal/format/records_text.h"
#include "journal/io/open_storage.h"
#include "recovery/opener.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace holdfast {
namespace {

namespace stdfs = std::filesystem;

// Takes every type, and keeps each record as a line.
class Witness final : public StateMachine {
 public:
  Witness() {
    for (int type = 1; type < 256; ++type) machines.Route(static_cast<RecordType>(type), *this);
  }
  void Apply(const RawRecord& record, Lsn lsn, const RecordRef&) override {
    lines.push_back(fmt::format("{} {}", lsn, RecordText(record, {.event = true})));
  }
  StateMachines machines;
  std::vector<std::string> lines;
};

std::vector<std::string> Expected(const stdfs::path& version) {
  std::vector<std::string> lines;
  std::ifstream file(version / "expected.txt");
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Proves: G13
TEST(GoldenTest, EveryVersionEverWrittenIsReadAndOpened) {
  size_t versions = 0;
  for (const auto& entry : stdfs::directory_iterator(HOLDFAST_GOLDEN)) {
    if (!entry.is_directory() || !entry.path().filename().string().starts_with("v")) continue;
    SCOPED_TRACE(entry.path());
    ++versions;
    TempDir copy;
    stdfs::copy(entry.path() / "store", copy.Sub("store"), stdfs::copy_options::recursive);
    const std::vector<std::string> expected = Expected(entry.path());
    ASSERT_FALSE(expected.empty());

    ASSERT_OK_AND_ASSIGN(const auto storage, OpenPosixStorage(copy.Sub("store"), {}));
    Witness read;
    ASSERT_OK(OpenReadOnly(*storage, read.machines));
    EXPECT_EQ(read.lines, expected);
    Witness opened;
    SeededRng rng(1);
    ASSERT_OK(OpenStore(*storage, RealClock(), rng, {}, opened.machines));
    EXPECT_EQ(opened.lines, expected);
  }
  EXPECT_GE(versions, 1u);
}

}  // namespace
}  // namespace holdfast
