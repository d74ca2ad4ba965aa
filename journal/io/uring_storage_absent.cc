// Stands in for uring_storage.cc where liburing was not there at build time.
#include "journal/io/open_storage.h"

namespace holdfast {

StatusOr<std::unique_ptr<Storage>> OpenUringStorage(const std::string& /*directory*/,
                                                    const OpenStorageOptions& /*options*/) {
  return Unavailable(Detail::kIo, "io_uring: this build was made without liburing");
}

}  // namespace holdfast
