// What an error of HttpTransport says of the request. Pure.
#pragma once

#include "journal/base/status.h"

namespace holdfast {

// Nobody has read a byte of it: it has not happened.
inline bool NeverSent(const Status& status) {
  return absl::IsUnavailable(status) && DetailOf(status) == Detail::kNone;
}
// It was sent, and may have happened.
inline bool OutcomeUnknown(const Status& status) {
  return DetailOf(status) == Detail::kUnknownOutcome;
}
// `status` of what can simply be read again: nothing about it is unknown.
inline Status AsRead(const Status& status) {
  if (!OutcomeUnknown(status)) return status;
  return MakeStatus(StatusCode::kUnavailable, Detail::kNone, std::string(Message(status)));
}

}  // namespace holdfast
