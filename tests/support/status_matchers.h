// Statuses in assertions, printed with their message when they are not as wanted.
#pragma once

#include <gtest/gtest.h>

#include "journal/base/status.h"

namespace holdfast {

inline const Status& StatusOf(const Status& status) { return status; }
template <typename T>
const Status& StatusOf(const StatusOr<T>& result) {
  return result.status();
}

template <typename T>
testing::AssertionResult IsOk(const T& result) {
  if (StatusOf(result).ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << StatusOf(result).ToString();
}

template <typename T>
testing::AssertionResult FailsWith(const T& result, StatusCode code, Detail detail) {
  const Status& status = StatusOf(result);
  if (status.code() == code && DetailOf(status) == detail) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << status.ToString() << ", detail " << static_cast<int>(DetailOf(status)) << "; want code "
         << absl::StatusCodeToString(code) << ", detail " << static_cast<int>(detail);
}

}  // namespace holdfast

#define EXPECT_OK(expression) EXPECT_TRUE(::holdfast::IsOk(expression))
#define ASSERT_OK(expression) ASSERT_TRUE(::holdfast::IsOk(expression))
#define EXPECT_FAILS(expression, code, detail) \
  EXPECT_TRUE(                                 \
      ::holdfast::FailsWith(expression, ::holdfast::StatusCode::code, ::holdfast::Detail::detail))
#define ASSERT_FAILS(expression, code, detail) \
  ASSERT_TRUE(                                 \
      ::holdfast::FailsWith(expression, ::holdfast::StatusCode::code, ::holdfast::Detail::detail))

// Declares or assigns `lhs` from a StatusOr, or ends the test. Only where a test may return.
#define ASSERT_OK_AND_ASSIGN(lhs, expression) \
  HOLDFAST_ASSERT_OK_AND_ASSIGN(HOLDFAST_CONCAT(status_or_, __LINE__), lhs, expression)
#define HOLDFAST_ASSERT_OK_AND_ASSIGN(result, lhs, expression) \
  auto result = (expression);                                  \
  ASSERT_OK(result);                                           \
  lhs = std::move(result).value()
