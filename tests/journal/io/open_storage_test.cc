#include "journal/io/open_storage.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>

#include "tests/support/child_process.h"
#include "tests/support/deny_system_call.h"
#include "tests/support/recording_log.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

std::string FallsBackToldOnce(const std::string& path) {
  RecordingLog log;
  const auto storage = OpenStorage(path, {.io = IoBackend::kAuto, .log = &log});
  if (!storage.ok()) return storage.status().ToString();
  if ((*storage)->backend() != "posix") return "backend " + (*storage)->backend();
  if ((*storage)->backend_reason().find("io_uring") == std::string::npos) return "no reason";
  if (log.lines().size() != 1) return "told " + std::to_string(log.lines().size()) + " times";
  if (log.Count("io_uring") != 1) return "told: " + log.lines().front();
  const auto queue = (*storage)->NewWriteQueue();
  if (!queue.ok()) return queue.status().ToString();
  return log.lines().size() == 1 ? "" : "told again";
}

std::string FailsIfAskedForUring(const std::string& path) {
  const auto storage = OpenStorage(path, {.io = IoBackend::kUring});
  const Status& status = storage.status();
  if (status.code() != StatusCode::kUnavailable) return "not refused: " + status.ToString();
  return Message(status).find("io_uring") != std::string_view::npos ? "" : status.ToString();
}

class DeniedUringTest : public testing::TestWithParam<std::pair<unsigned, unsigned>> {};
INSTANTIATE_TEST_SUITE_P(SystemCalls, DeniedUringTest,
                         testing::Values(std::pair{SYS_io_uring_setup, EPERM},
                                         std::pair{SYS_io_uring_setup, ENOSYS},
                                         std::pair{SYS_io_uring_setup, ENOMEM},
                                         std::pair{SYS_io_uring_enter, EACCES},
                                         std::pair{SYS_io_uring_register, EPERM}));

// Containers often block io_uring.
// Proves: W1
TEST_P(DeniedUringTest, AutoFallsBackToPosixAndSaysSoOnce) {
  const TempDir dir;
  EXPECT_EQ(InChild([&] {
              DenySystemCall(GetParam().first, GetParam().second);
              return FallsBackToldOnce(dir.path());
            }),
            "");
}

// Proves: W2
TEST_P(DeniedUringTest, UringFailsWithTheReason) {
  const TempDir dir;
  EXPECT_EQ(InChild([&] {
              DenySystemCall(GetParam().first, GetParam().second);
              return FailsIfAskedForUring(dir.path());
            }),
            "");
}

TEST(OpenStorageTest, AutoTakesUringWhereTheKernelHasIt) {
  const TempDir dir;
  const auto uring = OpenUringStorage(dir.path(), {});
  if (!uring.ok()) GTEST_SKIP() << uring.status().ToString();
  RecordingLog log;
  ASSERT_OK_AND_ASSIGN(const auto storage,
                       OpenStorage(dir.path(), {.io = IoBackend::kAuto, .log = &log}));
  EXPECT_EQ(storage->backend(), "io_uring");
  EXPECT_EQ(log.lines().size(), 0U);
}

// Proves: W2
TEST(OpenStorageTest, PosixIsTakenWhereItIsAskedFor) {
  const TempDir dir;
  RecordingLog log;
  ASSERT_OK_AND_ASSIGN(const auto storage,
                       OpenStorage(dir.path(), {.io = IoBackend::kPosix, .log = &log}));
  EXPECT_EQ(storage->backend(), "posix");
  EXPECT_EQ(storage->display_path(), dir.path());
  EXPECT_EQ(log.lines().size(), 0U);
}

// Only what io_uring itself refuses falls back: any other error is the caller's to see.
TEST(OpenStorageTest, AMissingDirectoryIsNotHiddenByTheFallback) {
  const TempDir dir;
  for (const IoBackend io : {IoBackend::kAuto, IoBackend::kPosix}) {
    EXPECT_FAILS(OpenStorage(dir.Sub("no"), {.io = io, .create = false}), kNotFound, kNone);
  }
}

TEST(OpenStorageTest, TheSuitesRunOnTheBackendTheyAreToldTo) {
  const TempDir dir;
  const auto storage = OpenTestStorage(dir.path());
  const IoBackend wish = BackendUnderTest();
  EXPECT_TRUE(storage->backend() == "posix" || wish != IoBackend::kPosix);
  EXPECT_TRUE(storage->backend() == "io_uring" || wish != IoBackend::kUring);
}

}  // namespace
}  // namespace holdfast
