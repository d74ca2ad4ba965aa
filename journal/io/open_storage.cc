#include "journal/io/open_storage.h"

#include <utility>

#include "journal/io/posix_storage.h"

namespace holdfast {

StatusOr<std::unique_ptr<Storage>> OpenPosixStorage(const std::string& directory,
                                                    const OpenStorageOptions& options) {
  return PosixStorage::Open(directory, options, "asked for");
}

StatusOr<std::unique_ptr<Storage>> OpenStorage(const std::string& directory,
                                               const OpenStorageOptions& options) {
  if (options.read_only) return PosixStorage::Open(directory, options, "nothing is written");
  if (options.io == IoBackend::kPosix) return OpenPosixStorage(directory, options);
  auto uring = OpenUringStorage(directory, options);
  if (uring.ok() || options.io == IoBackend::kUring) return uring;
  if (uring.status().code() != StatusCode::kUnavailable) return uring;

  const std::string reason(Message(uring.status()));
  ASSIGN_OR_RETURN(auto posix, PosixStorage::Open(directory, options, reason));
  if (options.log != nullptr) {
    options.log->Log(LogLevel::kWarning,
                     fmt::format("{}: writing with plain system calls: {}", directory, reason));
  }
  return posix;
}

}  // namespace holdfast
