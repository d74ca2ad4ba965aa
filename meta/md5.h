// MD5 as Nacos names the content of a config by it. Not for anything that must be hard to forge.
#pragma once

#include <string>
#include <string_view>

#include "journal/base/status.h"

namespace holdfast {

// 32 hexadecimal digits, in lower case.
// Errors: kFailedPrecondition  this build has no OpenSSL, or this machine's does without MD5 (it is
//                              set up for FIPS)
StatusOr<std::string> Md5Hex(std::string_view bytes);

}  // namespace holdfast
