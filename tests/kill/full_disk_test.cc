// A small disk that fills up, for real: a 16 MiB tmpfs in a mount namespace of this process.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "holdfast/engine.h"
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

// --- An engine that is killed while the disk is full, and again, and again ---

// What children tell the test, in memory that a kill leaves alone. Everything in it is confirmed.
struct Confirmed {
  static constexpr uint32_t kIdsMax = 1 << 16;
  enum State : uint8_t { kNever, kPending, kRemoved };
  std::atomic<uint8_t> states[kIdsMax];
  std::atomic<uint32_t> ids;      // given out
  std::atomic<uint32_t> refused;  // puts, cleanly
  std::atomic<uint32_t> removed;
  std::atomic<uint32_t> removals_refused;
  std::atomic<uint32_t> resumed;  // times that puts went on by themselves
};

class Child {
 public:
  Child(std::string directory, IoBackend io, uint64_t seed, Confirmed& confirmed)
      : directory_(std::move(directory)), io_(io), rng_(seed), confirmed_(confirmed) {}

  // Empty, or what is wrong.
  std::string Run() {
    EngineOptions options;
    options.directory = directory_;
    options.io = io_;
    options.segment_bytes = uint64_t{256} << 10;
    options.compress_event_bytes_min = 0;
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Open(options);
    if (!engine.ok()) return "open: " + engine.status().ToString();
    engine_ = std::move(*engine);
    std::string wrong = Compare();
    if (wrong.empty()) wrong = Fill();
    if (wrong.empty()) wrong = RemoveHalf();
    if (wrong.empty() && confirmed_.refused == 0) wrong = "no put was ever refused";
    if (wrong.empty()) wrong = GoOn();
    return wrong;
  }

 private:
  static std::string Name(uint32_t id) { return "d" + std::to_string(id); }

  std::string Compare() {
    for (uint32_t id = 0; id < confirmed_.ids; ++id) {
      const absl::StatusOr<StoredDelivery> stored = engine_->deliveries().Get(Name(id));
      const uint8_t state = confirmed_.states[id];
      if (state == Confirmed::kPending && !stored.ok()) {
        return Name(id) + " is lost: " + stored.status().ToString();
      }
      if (state == Confirmed::kRemoved && !absl::IsNotFound(stored.status())) {
        return Name(id) + " came back";
      }
    }
    return "";
  }
  std::string Fill() {
    std::string event(8'000, '\0');
    while (confirmed_.ids < Confirmed::kIdsMax) {
      for (char& byte : event) byte = static_cast<char>(rng_.Below(256));
      const uint32_t id = confirmed_.ids++;
      Commit put = engine_->deliveries().Put(
          {.id = Name(id), .topic = "orders", .client = "billing", .event = event});
      if (absl::IsResourceExhausted(put.refused())) {
        ++confirmed_.refused;
        return "";
      }
      if (const absl::Status status = put.Wait(); !status.ok()) {
        return "put: " + status.ToString();
      }
      confirmed_.states[id] = Confirmed::kPending;
    }
    return "the disk never was full";
  }
  // In batches, as a consumer that acks what it has done.
  std::string RemoveHalf() {
    std::vector<uint32_t> batch;
    for (uint32_t id = 0; id <= confirmed_.ids; ++id) {
      if (batch.size() == 20 || id == confirmed_.ids) {
        Commit removal = engine_->Transact([&](Transaction& t) {
          for (const uint32_t gone : batch) t.RemoveDelivery({.id = Name(gone)});
          t.WriteOffset({"orders", "billing", 0}, OffsetPosition(id));
        });
        if (absl::IsResourceExhausted(removal.refused())) {
          ++confirmed_.removals_refused;
          return "";
        }
        if (const absl::Status status = removal.Wait(); !status.ok()) {
          return "remove: " + status.ToString();
        }
        for (const uint32_t gone : batch) confirmed_.states[gone] = Confirmed::kRemoved;
        confirmed_.removed += static_cast<uint32_t>(batch.size());
        batch.clear();
      }
      if (id < confirmed_.ids && confirmed_.states[id] == Confirmed::kPending && rng_.OneIn(2)) {
        batch.push_back(id);
      }
    }
    return "";
  }

  // Half of it is acknowledged now: what that freed is found, and puts go on by themselves.
  std::string GoOn() {
    for (int tries = 0; tries < 3'000; ++tries) {
      const uint32_t id = confirmed_.ids++;
      const Commit put = engine_->deliveries().Put({.id = Name(id),
                                                    .topic = "orders",
                                                    .client = "billing",
                                                    .event = std::string(8'000, 'x')});
      if (put.refused().ok()) {
        if (const absl::Status status = put.Wait(); !status.ok()) {
          return "put: " + status.ToString();
        }
        confirmed_.states[id] = Confirmed::kPending;
        ++confirmed_.resumed;
        return "";
      }
      if (!absl::IsResourceExhausted(put.refused())) return "put: " + put.refused().ToString();
      absl::SleepFor(absl::Milliseconds(10));
    }
    const EngineStats stats = engine_->stats();
    return "puts never go on: " + std::to_string(stats.live_bytes) + " bytes live in " +
           std::to_string(stats.disk_bytes) + ", " + std::to_string(stats.retired_segments) +
           " segments retired, " + std::to_string(stats.checkpoints) + " checkpoints";
  }

  const std::string directory_;
  const IoBackend io_;
  SeededRng rng_;
  Confirmed& confirmed_;
  std::unique_ptr<Engine> engine_;
};

// Proves: G2, G7, G8, F26
TEST_P(FullDiskTest, AcksGoOnWhileItIsFullAndAKillThenIsRecoveredTenTimes) {
  void* const shared = ::mmap(nullptr, sizeof(Confirmed), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Confirmed& confirmed = *new (shared) Confirmed();
  const std::string why_file = elsewhere_.Sub("why");
  const IoBackend io =
      std::string_view(GetParam()) == "posix" ? IoBackend::kPosix : IoBackend::kAuto;
  for (uint64_t round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string wrong = Child(store_, io, round, confirmed).Run();
      if (wrong.empty()) ::raise(SIGKILL);  // in the middle of whatever threads do
      WriteWholeFile(why_file, wrong);
      ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << ReadWholeFile(why_file);
    EXPECT_EQ(confirmed.refused, round + 1);
    EXPECT_EQ(confirmed.resumed, round + 1);
    if (round == 0) {
      EXPECT_GT(confirmed.removed, 100u);
      EXPECT_EQ(confirmed.removals_refused, 0u);
    }
  }
  const ToolOutput verify = RunToolProcess({"verify", store_});
  EXPECT_TRUE(verify.end.exit_code == kExitOk || verify.end.exit_code == kExitTornTail)
      << verify.text;
  ::munmap(shared, sizeof(Confirmed));
}

INSTANTIATE_TEST_SUITE_P(Backends, FullDiskTest, testing::Values("posix", "auto"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace holdfast
