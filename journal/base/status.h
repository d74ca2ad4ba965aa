// Status in one place: macros to pass errors on, and makers that format with fmt and attach a
// Detail. The only file that meets Abseil's own string_view (the packaged one is not std's).
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "holdfast/detail.h"

namespace holdfast {

using absl::Status;
using absl::StatusCode;
using absl::StatusOr;

// `status` with the detail attached; DetailOf() reads it back.
Status MakeStatus(StatusCode code, Detail detail, const std::string& message);
// `status` with `context` and ": " before its message, code and detail kept.
Status Annotate(const Status& status, const std::string& context);
// The message as a std::string_view.
inline std::string_view Message(const Status& status) {
  return {status.message().data(), status.message().size()};
}

template <typename... Args>
Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kInvalidArgument, Detail::kNone,
                    fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status NotFound(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kNotFound, Detail::kNone,
                    fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status AlreadyExists(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kAlreadyExists, Detail::kNone,
                    fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status DataLoss(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kDataLoss, Detail::kDamage,
                    fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status WrongState(Detail detail, fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kFailedPrecondition, detail,
                    fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status Exhausted(Detail detail, fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kResourceExhausted, detail,
                    fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status Unavailable(Detail detail, fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kUnavailable, detail,
                    fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace holdfast

#define HOLDFAST_CONCAT_INNER(a, b) a##b
#define HOLDFAST_CONCAT(a, b) HOLDFAST_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                                 \
  do {                                                        \
    if (::holdfast::Status status_ = (expr); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) \
  HOLDFAST_ASSIGN_OR_RETURN(HOLDFAST_CONCAT(status_or_, __LINE__), lhs, expr)
#define HOLDFAST_ASSIGN_OR_RETURN(result, lhs, expr)   \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = std::move(result).value()
