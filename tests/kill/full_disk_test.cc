// A small disk that fills up, for real: a 16 MiB tmpfs in a mount namespace of this process.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/kill/tool_process.h"
#include "tests/support/seeds.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/tool_run.h"

namespace holdfast {
namespace {

// Empty, or why no file system can be mounted here. Root may; others may in a namespace of their
// own, where the system allows those. The mounts end with this process.
std::string OwnMounts() {
  static const auto& reason = *new std::string([] {
    const int spaces = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
    if (::unshare(spaces) != 0) return std::string("unshare: ") + std::strerror(errno);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return std::string("making mounts private: ") + std::strerror(errno);
    }
    return std::string();
  }());
  return reason;
}

class FullDiskTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why = OwnMounts();
    if (why.empty() && ::mount("tmpfs", disk_.path().c_str(), "tmpfs", 0, "size=16m") != 0) {
      why = std::string("mounting a tmpfs: ") + std::strerror(errno);
    }
    if (!why.empty()) GTEST_SKIP() << "no small disk here: " << why;
    mounted_ = true;
    WriteWholeFile(acks_, "");
  }
  void TearDown() override {
    if (mounted_) ::umount2(disk_.path().c_str(), MNT_DETACH);
  }

  std::vector<std::string> Filling() const {
    return {"workload",        store_,      "--acks",        acks_,   "--io",      GetParam(),
            "--segment-bytes", "262144",    "--event-bytes", "20000", "--pending", "1000000",
            "--ops",           "1000000000"};
  }
  ToolOutput Check() const {
    return RunToolProcess({"check", store_, "--acks", acks_, "--io", GetParam()});
  }
  // Starting on the full disk works, or says what is wrong and loses nothing by it.
  void ExpectAllThereOnceThereIsRoom() {
    const ToolOutput full = Check();
    if (full.end.exit_code != kExitOk) {
      EXPECT_EQ(full.end.exit_code, kExitUsageOrIo) << full.text;
      EXPECT_NE(full.text.find("space"), std::string::npos) << full.text;
    }
    EXPECT_NE(RunToolProcess({"verify", store_}).end.exit_code, kExitFault);
    mebibytes_ += 4;
    const std::string size = "size=" + std::to_string(mebibytes_) + "m";
    ASSERT_EQ(::mount("tmpfs", disk_.path().c_str(), "tmpfs", MS_REMOUNT, size.c_str()), 0)
        << std::strerror(errno);
    const ToolOutput check = Check();
    EXPECT_EQ(check.end.exit_code, kExitOk) << check.text;
  }
  uint64_t FreeBytes() const {
    struct statvfs info{};
    CHECK(::statvfs(disk_.path().c_str(), &info) == 0);
    return info.f_bavail * info.f_frsize;
  }

  const TempDir disk_;
  const TempDir elsewhere_;
  const std::string store_ = disk_.Sub("store");
  const std::string acks_ = elsewhere_.Sub("acks");
  bool mounted_ = false;
  int mebibytes_ = 16;  // of the disk
};

// Proves: G8, G3, D3
TEST_P(FullDiskTest, PutsAreRefusedAndNothingIsLost) {
  const ToolOutput filled = RunToolProcess(Filling());
  EXPECT_EQ(filled.end.exit_code, kExitUsageOrIo) << filled.text;
  EXPECT_NE(filled.text.find("full"), std::string::npos) << filled.text;
  const ToolOutput verify = RunToolProcess({"verify", store_});
  EXPECT_EQ(verify.end.exit_code, kExitOk) << verify.text;
  EXPECT_EQ(RunToolProcess({"list", store_, "offsets"}).end.exit_code, kExitOk);
  ExpectAllThereOnceThereIsRoom();
}

// Proves: G2
TEST_P(FullDiskTest, AKillOnAFullDiskIsRecovered) {
  const uint64_t seed = NumberFromEnvironment("HOLDFAST_SEED_FIRST", 1);
  SCOPED_TRACE(testing::Message() << "HOLDFAST_SEED_FIRST=" << seed);
  SeededRng rng(seed);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    ToolProcess filling(Filling(), elsewhere_.Sub("output"));
    filling.AwaitGrowth(acks_, FileBytes(acks_) + 2000 + rng.Below(15'000));
    filling.Kill();
    filling.Wait();
    const ToolOutput verify = RunToolProcess({"verify", store_});
    EXPECT_TRUE(verify.end.exit_code == kExitOk || verify.end.exit_code == kExitTornTail)
        << verify.text;
    ASSERT_NO_FATAL_FAILURE(ExpectAllThereOnceThereIsRoom());
  }
}

// Somebody else took the last byte, so not even a reserve can be made.
// Proves: G8
TEST_P(FullDiskTest, AStartWithoutAnyRoomSaysWhatIsWrong) {
  std::vector<std::string> some = Filling();
  some.back() = "100";
  ASSERT_EQ(RunToolProcess(some).end.exit_code, kExitOk);
  const std::string ballast = disk_.Sub("ballast");
  WriteWholeFile(ballast, std::string(FreeBytes() + (uint64_t{1} << 20), 'x'));
  EXPECT_EQ(FreeBytes(), 0U);
  const std::string fresh = disk_.Sub("fresh");
  const ToolOutput start = RunToolProcess({"workload", fresh, "--ops", "1", "--io", GetParam()});
  EXPECT_EQ(start.end.exit_code, kExitUsageOrIo) << start.text;
  EXPECT_TRUE(start.text.find("space") != std::string::npos ||
              start.text.find("full") != std::string::npos)
      << start.text;
  const ToolOutput full = Check();
  EXPECT_TRUE(full.end.exit_code == kExitOk || full.end.exit_code == kExitUsageOrIo) << full.text;
  std::filesystem::remove(ballast);
  const ToolOutput check = Check();
  EXPECT_EQ(check.end.exit_code, kExitOk) << check.text;
}

INSTANTIATE_TEST_SUITE_P(Backends, FullDiskTest, testing::Values("posix", "auto"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace holdfast
