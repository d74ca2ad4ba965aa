// In place of md5.cc where the build has no OpenSSL: it has no HTTP then, and needs none of it.
#include "meta/md5.h"

namespace holdfast {

StatusOr<std::string> Md5Hex(std::string_view) {
  return WrongState(Detail::kNone, "MD5: this build has no OpenSSL");
}

}  // namespace holdfast
