#include "journal/io/errno_status.h"

#include <cerrno>
#include <system_error>

namespace holdfast {
namespace {

std::string_view Advice(int error) {
  switch (error) {
    case ENOSPC:
      return "; free some space on its file system";
    case EDQUOT:
      return "; free some space or raise the disk quota";
    case EFBIG:
      return "; raise the limit on file sizes (ulimit -f)";
    case EMFILE:
      return "; raise the process's limit on open files (ulimit -n)";
    case ENFILE:
      return "; raise the system's limit on open files (fs.file-max)";
    case EROFS:
      return "; remount its file system read-write, or open read-only";
    case EACCES:
    case EPERM:
      return "; check its owner and permissions";
    case EIO:
      return "; the device failed, see the system log (dmesg)";
    case ESTALE:
      return "; its file system went away, reopen when it is back";
    case ENOTDIR:
      return "; a part of the path is not a directory";
    default:
      return "";
  }
}

}  // namespace

Status ErrnoStatus(int error, std::string_view path, std::string_view action) {
  const std::string message =
      fmt::format("{}: {}: {} (errno {}){}", path, action, std::generic_category().message(error),
                  error, Advice(error));
  switch (error) {
    case ENOENT:
      return NotFound("{}", message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
      return Exhausted(Detail::kDiskFull, "{}", message);
    case EROFS:
    case EACCES:
    case EPERM:
      return WrongState(Detail::kReadOnly, "{}", message);
    default:
      return Unavailable(Detail::kIo, "{}", message);
  }
}

}  // namespace holdfast
