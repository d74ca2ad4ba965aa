// A small store on disk, made by the workload in process.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/engine.h"
#include "journal/format/frame.h"
#include "journal/segment.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/tool_run.h"

namespace holdfast {

// Every test works on its own directory below $TMPDIR; POSIX, so that the kernel does not matter.
class SmallStoreTest : public testing::Test {
 protected:
  static constexpr char kSegmentBytes[] = "65536";
  // A byte that says something: of the first record of a segment.
  static constexpr size_t kInFirstRecord =
      kFirstGroupOffset + kGroupHeaderBytes + kBatchHeaderBytes + 2;

  // A workload that ends cleanly, with some options of its own.
  void Work(const std::map<std::string, std::string>& own = {}) {
    std::map<std::string, std::string> options = own;
    options.insert({{"--acks", acks_},
                    {"--io", "posix"},
                    {"--segment-bytes", kSegmentBytes},
                    {"--ops", "300"},
                    {"--pending", "50"},
                    {"--event-bytes", "200"}});
    std::vector<std::string> arguments = {"workload", store_};
    for (const auto& [name, value] : options) arguments.insert(arguments.end(), {name, value});
    const ToolRun run = RunTool(arguments);
    ASSERT_EQ(run.exit_code, kExitOk) << run.err;
    ASSERT_EQ(run.err, "");
  }
  // A high `space_ratio` keeps compaction away: what was written stays where it is.
  StatusOr<std::unique_ptr<Engine>> OpenForWriting(
      double space_ratio = EngineOptions().space_ratio) {
    EngineOptions options;
    options.space_ratio = space_ratio;
    options.directory = store_;
    options.io = IoBackend::kPosix;
    options.segment_bytes = uint64_t{64} << 10;
    options.lock_wait = absl::ZeroDuration();
    return Engine::Open(options);
  }
  // Files of segments that are part of the store, oldest first.
  std::vector<std::string> Segments() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(store_ + "/journal")) {
      if (entry.path().extension() == ".seg") names.push_back(entry.path().string());
    }
    std::ranges::sort(names);
    return names;
  }
  void FlipByte(const std::string& path, size_t offset) {
    std::string bytes = ReadWholeFile(path);
    ASSERT_LT(offset, bytes.size());
    bytes[offset] = static_cast<char>(bytes[offset] ^ 0x20);
    WriteWholeFile(path, bytes);
  }

  const TempDir directory_;
  const std::string store_ = directory_.Sub("store");
  const std::string acks_ = directory_.Sub("acks");
};

}  // namespace holdfast
