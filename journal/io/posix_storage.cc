#include "journal/io/posix_storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "journal/io/errno_status.h"
#include "journal/io/posix_write_queue.h"

namespace holdfast {
namespace {

constexpr mode_t kDirectoryMode = 0750;
constexpr mode_t kFileMode = 0640;

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int OpenAgain(int directory_fd, const char* path, int flags) {
  for (;;) {
    const int fd = openat(directory_fd, path, flags | O_CLOEXEC, kFileMode);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

// What must not be trusted with locks and flushes of one machine. Empty: local.
std::string_view NetworkFileSystem(int fd) {
  struct Known {
    uint32_t magic;
    std::string_view name;
  };
  static constexpr std::array kKnown = {
      Known{NFS_SUPER_MAGIC, "NFS"},     Known{SMB_SUPER_MAGIC, "SMB"},
      Known{CIFS_SUPER_MAGIC, "CIFS"},   Known{SMB2_SUPER_MAGIC, "SMB2"},
      Known{AFS_SUPER_MAGIC, "AFS"},     Known{AFS_FS_MAGIC, "AFS"},
      Known{CODA_SUPER_MAGIC, "Coda"},   Known{V9FS_MAGIC, "9P"},
      Known{CEPH_SUPER_MAGIC, "Ceph"},   Known{FUSE_SUPER_MAGIC, "FUSE"},
      Known{OCFS2_SUPER_MAGIC, "OCFS2"}, Known{0x0BD00BD0, "Lustre"},
      Known{0x01161970, "GFS2"},         Known{0x47504653, "GPFS"}};
  struct statfs info{};
  if (fstatfs(fd, &info) != 0) return {};
  const auto magic = static_cast<uint32_t>(info.f_type);
  const auto* found =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.magic == magic; });
  return found == kKnown.end() ? std::string_view() : found->name;
}

// The entry of the directory itself must survive a power cut too. It may have been made by a
// process that was killed before it got here, so this is done at every open.
Status SyncParent(int directory_fd, const std::string& directory) {
  const Descriptor fd(OpenAgain(directory_fd, "..", O_RDONLY | O_DIRECTORY));
  // Somebody who may not list the parent cannot sync it; whoever set it up that way made the
  // directory.
  if (fd.get() < 0) return absl::OkStatus();
  if (fsync(fd.get()) != 0 && errno != EINVAL && errno != EROFS) {
    return ErrnoStatus(errno, directory + "/..", "directory sync");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<PosixStorage::Parts> PosixStorage::OpenParts(const std::string& directory,
                                                      const OpenStorageOptions& options,
                                                      std::string reason) {
  if (directory.empty()) return NotFound("the directory has no name; give the engine one");
  const bool may_create = options.create && !options.read_only;
  const int make_error = may_create && mkdir(directory.c_str(), kDirectoryMode) != 0 ? errno : 0;
  Descriptor fd(OpenAgain(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY));
  if (fd.get() < 0 && errno == ENOTDIR) {
    return WrongState(Detail::kForeign, "{}: not a directory; give the engine a directory",
                      directory);
  }
  if (fd.get() < 0 && errno == ENOENT && make_error != 0) {
    return ErrnoStatus(make_error, directory, "making the directory (its parent must exist)");
  }
  if (fd.get() < 0) return ErrnoStatus(errno, directory, "opening the directory");
  if (may_create) RETURN_IF_ERROR(SyncParent(fd.get(), directory));
  const std::string_view network = NetworkFileSystem(fd.get());
  if (!network.empty() && options.log != nullptr) {
    options.log->Log(LogLevel::kWarning,
                     fmt::format("{}: on a {} file system: locks and flushes may not hold what is "
                                 "promised; use a local disk",
                                 directory, network));
  }
  return Parts{.directory_fd = fd.Release(),
               .path = directory,
               .reason = std::move(reason),
               .read_only = options.read_only,
               .log = options.log};
}

StatusOr<std::unique_ptr<PosixStorage>> PosixStorage::Open(const std::string& directory,
                                                           const OpenStorageOptions& options,
                                                           std::string reason) {
  ASSIGN_OR_RETURN(Parts parts, OpenParts(directory, options, std::move(reason)));
  return std::make_unique<PosixStorage>(std::move(parts));
}

PosixStorage::PosixStorage(Parts parts)
    : parts_(std::move(parts)), refusal_(std::make_shared<DirectRefusal>(parts_.log)) {}

PosixStorage::~PosixStorage() { close(parts_.directory_fd); }

std::string PosixStorage::PathOf(const std::string& name) const {
  return name.empty() ? parts_.path : fmt::format("{}/{}", parts_.path, name);
}

Status PosixStorage::RefuseIfReadOnly(const std::string& name) const {
  if (!parts_.read_only) return absl::OkStatus();
  return WrongState(Detail::kReadOnly, "{}: the store was opened read-only", PathOf(name));
}

StatusOr<std::unique_ptr<File>> PosixStorage::OpenFile(const std::string& name, OpenMode mode,
                                                       FileUse use) {
  CHECK(!name.empty());
  if (mode != OpenMode::kReadOnly) RETURN_IF_ERROR(RefuseIfReadOnly(name));
  // A pipe in the place of a file must not hold the open up; regular files do not care.
  int flags = (mode == OpenMode::kReadOnly ? O_RDONLY : O_RDWR) | O_NONBLOCK;
  if (mode == OpenMode::kCreate) flags |= O_CREAT;
  bool direct = use.direct;
  int fd = OpenAgain(parts_.directory_fd, name.c_str(), direct ? flags | O_DIRECT : flags);
  if (fd < 0 && errno == EINVAL && direct) {
    refusal_->Tell(PathOf(name), errno);
    direct = false;
    fd = OpenAgain(parts_.directory_fd, name.c_str(), flags);
  }
  if (fd < 0) return ErrnoStatus(errno, PathOf(name), "open");
  auto file = std::make_unique<PosixFile>(
      fd,
      PosixFile::Options{
          .writable = mode != OpenMode::kReadOnly, .direct = direct, .path = PathOf(name)},
      refusal_);
  struct stat info{};
  if (fstat(fd, &info) != 0) return file->Failed(errno, "open");
  if (!S_ISREG(info.st_mode)) {
    return WrongState(Detail::kForeign, "{}: not a regular file; is this a Holdfast directory?",
                      PathOf(name));
  }
  // io_uring would give up on such a descriptor where it has to wait for the device.
  if (fcntl(fd, F_SETFL, (direct ? flags | O_DIRECT : flags) & ~O_NONBLOCK) != 0) {
    return file->Failed(errno, "open");
  }
  return file;
}

StatusOr<int> PosixStorage::OpenFolder(const std::string& folder) {
  const char* name = folder.empty() ? "." : folder.c_str();
  const int fd = OpenAgain(parts_.directory_fd, name, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return ErrnoStatus(errno, PathOf(folder), "opening the directory");
  return fd;
}

StatusOr<std::vector<std::string>> PosixStorage::List(const std::string& folder) {
  ASSIGN_OR_RETURN(const int fd, OpenFolder(folder));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd), closedir);
  if (stream == nullptr) {
    const int error = errno;
    close(fd);
    return ErrnoStatus(error, PathOf(folder), "listing");
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return ErrnoStatus(errno, PathOf(folder), "listing");
  std::sort(names.begin(), names.end());
  return names;
}

Status PosixStorage::MakeFolder(const std::string& folder) {
  CHECK(!folder.empty());
  RETURN_IF_ERROR(RefuseIfReadOnly(folder));
  if (mkdirat(parts_.directory_fd, folder.c_str(), kDirectoryMode) == 0) return absl::OkStatus();
  if (errno != EEXIST) return ErrnoStatus(errno, PathOf(folder), "making the directory");
  ASSIGN_OR_RETURN(const int fd, OpenFolder(folder));
  close(fd);
  return absl::OkStatus();
}

Status PosixStorage::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(RefuseIfReadOnly(from));
  if (renameat(parts_.directory_fd, from.c_str(), parts_.directory_fd, to.c_str()) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, PathOf(from), fmt::format("renaming it to {}", PathOf(to)));
}

Status PosixStorage::Remove(const std::string& name) {
  RETURN_IF_ERROR(RefuseIfReadOnly(name));
  if (unlinkat(parts_.directory_fd, name.c_str(), 0) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, PathOf(name), "removing it");
}

Status PosixStorage::SyncFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(const int opened, OpenFolder(folder));
  const Descriptor fd(opened);
  if (fsync(fd.get()) != 0) return ErrnoStatus(errno, PathOf(folder), "directory sync");
  return absl::OkStatus();
}

StatusOr<uint64_t> PosixStorage::FreeBytes() {
  struct statvfs info{};
  if (fstatvfs(parts_.directory_fd, &info) != 0) {
    return ErrnoStatus(errno, parts_.path, "reading the free space");
  }
  return uint64_t{info.f_bavail} * info.f_frsize;
}

StatusOr<std::unique_ptr<WriteQueue>> PosixStorage::NewWriteQueue() {
  return std::make_unique<PosixWriteQueue>();
}

std::string PosixStorage::host_boot_id() {
  const Descriptor fd(OpenAgain(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY));
  std::array<char, 64> text{};
  const ssize_t got = fd.get() < 0 ? -1 : read(fd.get(), text.data(), text.size());
  std::string id(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

std::string PosixStorage::backend_reason() const {
  const std::string refused = refusal_->reason();
  if (parts_.reason.empty() || refused.empty()) return parts_.reason + refused;
  return fmt::format("{}; {}", parts_.reason, refused);
}

}  // namespace holdfast
