#include "journal/base/status.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast {
namespace {

StatusOr<int> Half(int value) {
  if (value % 2 != 0) return Invalid("{} is odd", value);
  return value / 2;
}
StatusOr<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  return Half(half);
}
Status Both(int first, int second) {
  RETURN_IF_ERROR(Half(first).status());
  RETURN_IF_ERROR(Half(second).status());
  return absl::OkStatus();
}

TEST(StatusTest, EachMakerHasItsCodeAndDetail) {
  EXPECT_EQ(Invalid("x").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(NotFound("x").code(), StatusCode::kNotFound);
  EXPECT_EQ(AlreadyExists("x").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(DetailOf(DataLoss("x")), Detail::kDamage);
  EXPECT_EQ(DetailOf(WrongState(Detail::kLocked, "x")), Detail::kLocked);
  EXPECT_EQ(DetailOf(Exhausted(Detail::kLimit, "x")), Detail::kLimit);
  EXPECT_EQ(DetailOf(Unavailable(Detail::kPoisoned, "x")), Detail::kPoisoned);
  EXPECT_EQ(DetailOf(Invalid("x")), Detail::kNone);
  EXPECT_EQ(DetailOf(absl::OkStatus()), Detail::kNone);
}

TEST(StatusTest, AnnotationKeepsCodeAndDetail) {
  const Status status = Annotate(Exhausted(Detail::kDiskFull, "no room"), "segment 7");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(status), Detail::kDiskFull);
  EXPECT_EQ(Message(status), "segment 7: no room");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "segment 7").ok());
}

TEST(StatusTest, ErrorsArePassedOn) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Message(Quarter(6).status()), "3 is odd");
  EXPECT_TRUE(Both(2, 4).ok());
  EXPECT_EQ(Message(Both(2, 5)), "5 is odd");
}

}  // namespace
}  // namespace holdfast
