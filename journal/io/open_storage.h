// Picks a storage backend for a directory, and says which and why.
#pragma once

#include <memory>
#include <string>

#include "holdfast/log_sink.h"
#include "holdfast/options.h"
#include "journal/base/status.h"
#include "journal/io/storage.h"

namespace holdfast {

struct OpenStorageOptions {
  IoBackend io = IoBackend::kAuto;
  bool create = true;      // make the directory (one level) if it is missing
  bool read_only = false;  // never writes; POSIX reads whatever `io` says
  LogSink* log = nullptr;
};

// Any failure of io_uring's set-up falls back to POSIX under kAuto, told once through `log` and in
// Storage::backend_reason(); under kUring it is the error.
// Errors: kNotFound            no such directory, and create is off
//         kFailedPrecondition  kReadOnly, or not a directory (kForeign)
//         kUnavailable         kIo
StatusOr<std::unique_ptr<Storage>> OpenStorage(const std::string& directory,
                                               const OpenStorageOptions& options);

// The two backends themselves; see above for the errors.
StatusOr<std::unique_ptr<Storage>> OpenPosixStorage(const std::string& directory,
                                                    const OpenStorageOptions& options);
// kUnavailable with the reason where the build or the kernel has no io_uring.
StatusOr<std::unique_ptr<Storage>> OpenUringStorage(const std::string& directory,
                                                    const OpenStorageOptions& options);

}  // namespace holdfast
