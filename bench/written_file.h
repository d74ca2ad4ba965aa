// A file whose blocks were all written once, opened past the page cache: what the device itself is
// measured on.
#pragma once

#include <string>

#include "journal/base/status.h"

namespace holdfast::bench {

// Opens `path` for O_DIRECT writes; makes it and writes `bytes` of it once where that is missing.
// Where the file system refuses O_DIRECT the file is opened without. The caller closes the
// descriptor.
StatusOr<int> OpenWrittenFile(const std::string& path, uint64_t bytes);

}  // namespace holdfast::bench
