// What only a real file system shows: permissions, limits, full and read-only disks, descriptors.
#include "journal/io/posix_storage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/child_process.h"
#include "tests/support/recording_log.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace holdfast {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Empty if `result` fails as wanted.
template <typename T>
std::string WantFailure(const T& result, StatusCode code, Detail detail, const char* in_message) {
  const Status& status = StatusOf(result);
  const bool as_wanted = status.code() == code && DetailOf(status) == detail &&
                         Message(status).find(in_message) != std::string_view::npos;
  return as_wanted ? "" : "not as wanted: " + status.ToString();
}

std::string FirstOf(std::initializer_list<std::string> failures) {
  for (const std::string& failure : failures) {
    if (!failure.empty()) return failure;
  }
  return "";
}

std::unique_ptr<Storage> Opened(const std::string& path, LogSink* log = nullptr) {
  StatusOr<std::unique_ptr<Storage>> storage = OpenPosixStorage(path, {.log = log});
  CHECK(storage.ok());
  return *std::move(storage);
}

std::unique_ptr<File> OpenedFile(Storage& storage, const std::string& name, bool direct = true) {
  auto file = storage.OpenFile(name, OpenMode::kCreate, {.direct = direct});
  CHECK(file.ok());
  return *std::move(file);
}

Status WriteThroughQueue(Storage& storage, File& file, uint64_t offset, ByteView bytes) {
  ASSIGN_OR_RETURN(auto queue, storage.NewWriteQueue());
  const WriteOp op{.file = &file, .offset = offset, .bytes = bytes};
  RETURN_IF_ERROR(queue->Submit({.id = 1, .kind = WriteKind::kDurable, .writes = {&op, 1}}));
  ASSIGN_OR_RETURN(const Completion completion, queue->WaitOne(absl::InfiniteDuration()));
  return completion.status;
}

void Limit(decltype(RLIMIT_FSIZE) resource, uint64_t limit) {
  rlimit wanted{};
  CHECK(getrlimit(resource, &wanted) == 0);
  wanted.rlim_cur = limit;
  CHECK(setrlimit(resource, &wanted) == 0);
}

// In a mount namespace of its own. False: this process may not mount.
bool MountPrivately(const std::string& where, const char* type, const char* options) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount(type, where.c_str(), type, 0, options) == 0;
}

constexpr char kMayNotMount[] = "may not mount";

size_t OpenDescriptors() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += entry.exists() ? 1 : 0;
  }
  return count;
}

TEST(PosixStorageTest, MakesOneLevelOfDirectoryIfAsked) {
  const TempDir dir;
  EXPECT_FAILS(OpenPosixStorage(dir.Sub("a"), {.create = false}), kNotFound, kNone);
  EXPECT_FAILS(OpenPosixStorage(dir.Sub("a"), {.read_only = true}), kNotFound, kNone);
  EXPECT_FAILS(OpenPosixStorage(dir.Sub("a/b"), {}), kNotFound, kNone);
  EXPECT_OK(OpenPosixStorage(dir.Sub("a"), {}));
  EXPECT_OK(OpenPosixStorage(dir.Sub("a/"), {}));
  EXPECT_OK(OpenPosixStorage(dir.Sub("a/b"), {}));
  EXPECT_FAILS(OpenPosixStorage("", {}), kNotFound, kNone);
  struct stat info{};
  ASSERT_EQ(stat(dir.Sub("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & S_IRWXO, 0U);
}

TEST(PosixStorageTest, AFileInPlaceOfTheDirectoryIsForeign) {
  const TempDir dir;
  OpenedFile(*Opened(dir.path()), "file");
  EXPECT_FAILS(OpenPosixStorage(dir.Sub("file"), {}), kFailedPrecondition, kForeign);
}

TEST(PosixStorageTest, WhatIsNoRegularFileIsForeignAndDoesNotBlock) {
  const TempDir dir;
  const auto storage = Opened(dir.path());
  ASSERT_EQ(mkfifo(dir.Sub("MARK").c_str(), 0600), 0);
  EXPECT_FAILS(storage->OpenFile("MARK", OpenMode::kReadOnly), kFailedPrecondition, kForeign);
  EXPECT_FAILS(storage->OpenFile("MARK", OpenMode::kReadWrite), kFailedPrecondition, kForeign);
  ASSERT_OK(storage->MakeFolder("journal"));
  EXPECT_FAILS(storage->OpenFile("journal", OpenMode::kReadOnly), kFailedPrecondition, kForeign);
}

TEST(PosixStorageTest, MakeFolderDoesNotTakeAFileForAFolder) {
  const TempDir dir;
  const auto storage = Opened(dir.path());
  OpenedFile(*storage, "journal");
  EXPECT_FAILS(storage->MakeFolder("journal"), kUnavailable, kIo);
}

// Proves: G7
TEST(PosixStorageTest, ReadOnlyRefusesEveryCallThatChangesSomething) {
  const TempDir dir;
  ASSERT_OK(OpenedFile(*Opened(dir.path()), "file")->WriteAt(0, AsBytes("kept")));
  ASSERT_OK_AND_ASSIGN(const auto storage, OpenStorage(dir.path(), {.read_only = true}));
  EXPECT_EQ(storage->backend(), "posix");
  EXPECT_FAILS(storage->OpenFile("new", OpenMode::kCreate), kFailedPrecondition, kReadOnly);
  EXPECT_FAILS(storage->OpenFile("file", OpenMode::kReadWrite), kFailedPrecondition, kReadOnly);
  EXPECT_FAILS(storage->MakeFolder("journal"), kFailedPrecondition, kReadOnly);
  EXPECT_FAILS(storage->Rename("file", "other"), kFailedPrecondition, kReadOnly);
  EXPECT_FAILS(storage->Remove("file"), kFailedPrecondition, kReadOnly);
  EXPECT_OK(storage->OpenFile("file", OpenMode::kReadOnly));
  ASSERT_OK_AND_ASSIGN(const auto names, storage->List(""));
  EXPECT_EQ(names, std::vector<std::string>{"file"});
}

TEST(PosixStorageTest, EveryDescriptorIsGivenBack) {
  const TempDir dir;
  const auto storage = Opened(dir.path());
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 3; ++i) {
    const auto again = Opened(dir.path());
    ASSERT_OK(again->MakeFolder("journal"));
    ASSERT_OK(again->List("journal"));
    ASSERT_OK(again->SyncFolder("journal"));
    OpenedFile(*again, "file");
    EXPECT_FALSE(again->List("file").ok());
    EXPECT_FALSE(again->OpenFile("no", OpenMode::kReadOnly).ok());
    EXPECT_NE(again->host_boot_id(), "");
    EXPECT_FALSE(OpenPosixStorage(dir.Sub("file"), {}).ok());
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(PosixStorageTest, NoDescriptorLivesOnInAProgramThatTheHostStarts) {
  const TempDir dir;
  const auto storage = Opened(dir.path());
  const auto file = OpenedFile(*storage, "file");
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.find(dir.path()) == std::string::npos) continue;
    const int fd = std::stoi(entry.path().filename().string());
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << target;
  }
}

// Proves: G8
TEST(PosixStorageTest, AFileSizeLimitIsAFullDiskAndDoesNotKill) {
  const TempDir dir;
  EXPECT_EQ(InChild([&]() -> std::string {
              const auto storage = Opened(dir.path());
              const auto file = OpenedFile(*storage, "file");
              CHECK(file->WriteZeros(8192).ok());
              Limit(RLIMIT_FSIZE, 3 * 4096);
              const AlignedBuffer two_blocks(8192);
              const auto want = [](const Status& status) {
                return WantFailure(status, StatusCode::kResourceExhausted, Detail::kDiskFull,
                                   "ulimit -f");
              };
              return FirstOf({
                  want(file->WriteAt(8192, two_blocks.view())),  // short first, then refused
                  want(file->WriteAt(20'001, AsBytes("x"))),
                  want(file->WriteZeros(kMiB)),
                  want(file->Truncate(kMiB)),
                  want(WriteThroughQueue(*storage, *file, 12'288, two_blocks.view())),
                  file->WriteAt(0, two_blocks.view()).ok() ? "" : "the rest stays usable",
              });
            }),
            "");
}

// Proves: G8
TEST(PosixStorageTest, NoMoreDescriptorsIsTakenForAFullDisk) {
  const TempDir dir;
  EXPECT_EQ(
      InChild([&]() -> std::string {
        const auto storage = Opened(dir.path());
        Limit(RLIMIT_NOFILE, static_cast<uint64_t>(dup(0)) + 1);
        const auto want = [](const auto& result) {
          return WantFailure(result, StatusCode::kResourceExhausted, Detail::kDiskFull,
                             "ulimit -n");
        };
        return FirstOf({want(storage->OpenFile("file", OpenMode::kCreate)), want(storage->List("")),
                        want(storage->SyncFolder("")), want(OpenPosixStorage(dir.path(), {}))});
      }),
      "");
}

// Proves: G8
TEST(PosixStorageTest, AFullDiskRefusesAndWorksAgainWhenThereIsRoom) {
  const TempDir dir;
  const std::string outcome = InChild([&]() -> std::string {
    if (!MountPrivately(dir.path(), "tmpfs", "size=1m")) return kMayNotMount;
    const auto storage = Opened(dir.path());
    const auto file = OpenedFile(*storage, "file");
    const auto filler = OpenedFile(*storage, "filler");
    const auto want = [](const Status& status) {
      return WantFailure(status, StatusCode::kResourceExhausted, Detail::kDiskFull, "free some");
    };
    const std::string too_much = want(file->WriteZeros(2 * kMiB));
    CHECK(file->WriteZeros(kMiB / 2).ok());
    CHECK(filler->WriteZeros(kMiB / 4).ok());
    const AlignedBuffer rest(kMiB / 2);
    const std::string write = want(filler->WriteAt(kMiB / 4, rest.view()));
    const std::string queued = want(WriteThroughQueue(*storage, *filler, kMiB / 4, rest.view()));
    const Status overwrite = file->WriteAt(0, rest.view());
    if (!storage->Remove("filler").ok()) return "nothing can be removed";
    return FirstOf({too_much, write, queued, overwrite.ToString() == "OK" ? "" : "no overwrite"});
  });
  if (outcome == kMayNotMount) GTEST_SKIP() << "mounting a small tmpfs needs more rights";
  EXPECT_EQ(outcome, "");
}

TEST(PosixStorageTest, AReadOnlyFileSystemIsNamedAsSuch) {
  const TempDir dir;
  const std::string outcome = InChild([&]() -> std::string {
    if (!MountPrivately(dir.path(), "tmpfs", "size=1m")) return kMayNotMount;
    OpenedFile(*Opened(dir.path()), "file");
    CHECK(mount(nullptr, dir.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0);
    const auto storage = Opened(dir.path());
    const auto want = [](const auto& result) {
      return WantFailure(result, StatusCode::kFailedPrecondition, Detail::kReadOnly, "read-only");
    };
    return FirstOf({want(storage->OpenFile("file", OpenMode::kReadWrite)),
                    want(storage->OpenFile("new", OpenMode::kCreate)),
                    want(storage->MakeFolder("new")), want(storage->Remove("file")),
                    want(OpenPosixStorage(dir.Sub("new"), {})),
                    storage->OpenFile("file", OpenMode::kReadOnly).ok() ? "" : "no reading"});
  });
  if (outcome == kMayNotMount) GTEST_SKIP() << "remounting needs more rights";
  EXPECT_EQ(outcome, "");
}

TEST(PosixStorageTest, ADirectoryWithoutPermissionIsNamedAsSuch) {
  const TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  EXPECT_EQ(InChild([&]() -> std::string {
              const bool is_root = geteuid() == 0;
              CHECK(is_root ? seteuid(65534) == 0 : chmod(dir.path().c_str(), 0555) == 0);
              const auto storage = Opened(dir.path());
              const auto want = [](const auto& result) {
                return WantFailure(result, StatusCode::kFailedPrecondition, Detail::kReadOnly,
                                   "permissions");
              };
              return FirstOf({want(storage->OpenFile("file", OpenMode::kCreate)),
                              want(storage->MakeFolder("journal")),
                              want(OpenPosixStorage(dir.Sub("new"), {}))});
            }),
            "");
}

// ramfs has no direct I/O.
TEST(PosixStorageTest, RefusedDirectIoIsToldOnceAndWorksBuffered) {
  const TempDir dir;
  const std::string outcome = InChild([&]() -> std::string {
    if (!MountPrivately(dir.path(), "ramfs", "")) return kMayNotMount;
    RecordingLog log;
    const auto storage = Opened(dir.path(), &log);
    const auto first = OpenedFile(*storage, "first");
    const auto second = OpenedFile(*storage, "second");
    CHECK(first->WriteZeros(kMiB).ok());
    const AlignedBuffer block(4096);
    CHECK(WriteThroughQueue(*storage, *first, 4096, block.view()).ok());
    const bool told = storage->backend_reason().find("direct I/O refused") != std::string::npos;
    return FirstOf({log.Count("direct I/O refused") == 1 ? "" : "not told once",
                    told ? "" : storage->backend_reason()});
  });
  if (outcome == kMayNotMount) GTEST_SKIP() << "mounting a ramfs needs more rights";
  EXPECT_EQ(outcome, "");
}

TEST(PosixStorageTest, NeitherAChangeOfDirectoryNorAMoveLosesTheStore) {
  const TempDir dir;
  EXPECT_EQ(InChild([&]() -> std::string {
              CHECK(chdir(dir.path().c_str()) == 0);
              const auto storage = Opened("store");
              CHECK(chdir("/") == 0);
              CHECK(rename(dir.Sub("store").c_str(), dir.Sub("moved").c_str()) == 0);
              OpenedFile(*storage, "file");
              return std::filesystem::exists(dir.Sub("moved/file")) ? "" : "lost";
            }),
            "");
}

}  // namespace
}  // namespace holdfast
