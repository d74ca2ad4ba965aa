// Stores as earlier versions wrote them. They are never written again, so that nobody can change
// the format without saying so; `expected.txt` is what FORMAT.md makes of them
// (read_by_document.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "holdfast/clock.h"
#include "journal/base/seeded_rng.h"
#include "journal/format/records_text.h"
#include "journal/io/open_storage.h"
#include "recovery/opener.h"
#include "tests/golden/state_text.h"
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

std::vector<std::string> LinesOf(const stdfs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
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
    const std::vector<std::string> expected = LinesOf(entry.path() / "expected.txt");
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
  EXPECT_GE(versions, 3u);
}

// A store that housekeeping has been at, in a directory of its own.
struct KeptStore {
  const char* version;
  bool has_all_sections;  // its checkpoints have all that this version keeps
};
class KeptStoreTest : public testing::TestWithParam<KeptStore> {
 protected:
  void SetUp() override {
    stdfs::copy(stdfs::path(HOLDFAST_GOLDEN) / GetParam().version / "store", store_,
                stdfs::copy_options::recursive);
    for (int i = 0; i < 300; ++i) {
      ids_.push_back("delivery-" + std::to_string(i));
      const std::string_view client = i % 2 == 0 ? "billing" : std::string_view("au\0dit", 6);
      for (const std::string_view key : {std::string_view(ids_.back()), std::string_view()}) {
        names_.answers.push_back(
            {.id = ids_.back(), .epoch = 3, .client = client, .idempotency_key = key});
      }
    }
  }
  EngineOptions Options() const {
    EngineOptions options;
    options.directory = store_;
    options.io = IoBackend::kPosix;
    options.segment_bytes = uint64_t{64} << 10;
    options.remembered_answers = 150;
    options.space_ratio = 100;  // so that nothing is stated again while it is looked at
    return options;
  }
  // What an open finds, for writing or not.
  std::vector<std::string> Open(bool read_only, bool from_checkpoint) {
    EngineOptions options = Options();
    options.read_only = read_only;
    const auto engine = Engine::Open(options);
    EXPECT_OK(engine.status());
    if (!engine.ok()) return {};
    EXPECT_EQ((*engine)->recovery().checkpoint_lsn > 0, from_checkpoint);
    EXPECT_EQ((*engine)->recovery().bad_checkpoints, 0u);
    const auto lines = StateText(**engine, names_);
    EXPECT_OK(lines.status());
    return lines.value_or(std::vector<std::string>());
  }
  std::vector<std::string> Segments() const {
    std::vector<std::string> names;
    for (const auto& entry : stdfs::directory_iterator(store_ + "/journal")) {
      if (entry.path().extension() == ".seg") names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const TempDir directory_;
  const std::string store_ = directory_.Sub("store");
  const std::vector<std::string> expected_ =
      LinesOf(stdfs::path(HOLDFAST_GOLDEN) / GetParam().version / "state.txt");
  std::deque<std::string> ids_;  // viewed by names_
  StateNames names_{.sources = {{"orders", 2, 5}},
                    .starts = {{"orders", "billing", 5},
                               {"orders", std::string("au\0dit", 6), 5},
                               {"orders", "\xff\xfe", 0},
                               {"gone", "billing", 0}}};
};
INSTANTIATE_TEST_SUITE_P(Versions, KeptStoreTest,
                         testing::Values(KeptStore{"v1-kept", false},
                                         KeptStore{"v1-answers", true}));

// Proves: G13
TEST_P(KeptStoreTest, ItsCheckpointsAndAFullScanGiveTheSameState) {
  ASSERT_GT(expected_.size(), 10u);
  const bool used = GetParam().has_all_sections;
  EXPECT_EQ(Open(/*read_only=*/true, used), expected_);
  const std::string scanned = directory_.Sub("scanned");
  stdfs::copy(store_, scanned, stdfs::copy_options::recursive);
  EXPECT_EQ(Open(/*read_only=*/false, used), expected_);

  // And each checkpoint by itself, then none.
  stdfs::remove_all(store_);
  stdfs::copy(scanned, store_, stdfs::copy_options::recursive);
  std::vector<stdfs::path> checkpoints;
  for (const auto& entry : stdfs::directory_iterator(store_ + "/checkpoint")) {
    checkpoints.push_back(entry.path());
  }
  ASSERT_EQ(checkpoints.size(), 2u);
  std::sort(checkpoints.begin(), checkpoints.end());
  stdfs::remove(checkpoints[1]);
  EXPECT_EQ(Open(/*read_only=*/true, used), expected_);
  stdfs::remove(checkpoints[0]);
  EXPECT_EQ(Open(/*read_only=*/true, /*from_checkpoint=*/false), expected_);
  EXPECT_EQ(Open(/*read_only=*/false, /*from_checkpoint=*/false), expected_);
}

// Proves: G13, R9
TEST_P(KeptStoreTest, TheRecordOfALaterVersionKeepsItsSegment) {
  if (GetParam().version != std::string_view("v1-kept")) return;  // it is in that one
  EXPECT_NE(Segments().front(), "0000000000000001.seg") << "the first ones were retired";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(Options()));
  ASSERT_OK(engine->Compact());
  const std::vector<std::string> left = Segments();
  ASSERT_OK_AND_ASSIGN(const CompactionReport again, engine->Compact());
  EXPECT_GT(again.waiting_segments, 0u);
  EXPECT_EQ(Segments().front(), left.front());
  ASSERT_OK(engine->Close());
  bool found = false;
  for (const std::string& name : Segments()) {
    std::ifstream file(store_ + "/journal/" + name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    found = found || bytes.find("of a later version") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace holdfast
