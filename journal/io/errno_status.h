// An errno of the operating system as a Status: the code says what the caller does, the message
// what a person does.
#pragma once

#include <string_view>

#include "journal/base/status.h"

namespace holdfast {

// "<path>: <action>: <text of error> (errno N); <advice>", with the codes of storage.h.
Status ErrnoStatus(int error, std::string_view path, std::string_view action);

}  // namespace holdfast
