#include "stores/shared_values.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

const std::string kOdd("\0/%\xff", 4);

Subscription ASubscription() {
  return {.instance = kOdd,
          .mode = DispatchMode::kA2aDispatch,
          .filters = {{"type", EventFilter::Match::kPrefix, "com."},
                      {kOdd, EventFilter::Match::kSuffix, ""}}};
}
Agent AnAgent() {
  return {.id = "a",
          .instance = kOdd,
          .card = "{}",
          .capacity = UINT32_MAX,
          .state = AgentState::kReady,
          .owner_epoch = UINT64_MAX};
}
Session ASession() {
  return {.id = "s", .client = kOdd, .instance = "i", .agent = "a", .owner_epoch = 7};
}
TaskRecord ATask() {
  return {.id = "t",
          .agent = "a",
          .client = kOdd,
          .status = TaskStatus::kCanceled,
          .detail = "why",
          .created = absl::FromUnixSeconds(-5),
          .updated = absl::FromUnixNanos(1'770'000'000'000'000'001),
          .epoch = 3,
          .input = kOdd,
          .output = "",
          .deadline = absl::InfiniteFuture(),
          .parent = std::nullopt,
          .context = "c",
          .transitions = {{.epoch = 2, .status = TaskStatus::kRunning, .at = absl::UnixEpoch()},
                          {.epoch = 3, .status = TaskStatus::kCanceled, .detail = kOdd}}};
}

// Proves: K2
TEST(SharedValuesTest, EveryFieldComesBack) {
  EXPECT_EQ(*DecodeSubscription(EncodeSubscription(ASubscription())), ASubscription());
  EXPECT_EQ(*DecodeAgent("a", EncodeAgent(AnAgent())), AnAgent());
  EXPECT_EQ(*DecodeSession("s", EncodeSession(ASession())), ASession());
  EXPECT_EQ(*DecodeTask("t", EncodeTask(ATask())), ATask());
  TaskRecord none = ATask();  // empty and absent differ
  none.output = std::nullopt;
  none.parent = "";
  EXPECT_EQ(*DecodeTask("t", EncodeTask(none)), none);
}

// The bytes of version 1, written down: what was released is readable for ever.
// Proves: K2
TEST(SharedValuesTest, VersionOneIsReadAsItWasWritten) {
  EXPECT_EQ(
      EncodeSubscription({.instance = "i", .filters = {{"type", EventFilter::Match::kExact, "x"}}}),
      std::string("\1\1i\1\1\4type\1\1x", 13));
  EXPECT_EQ(EncodeAgent({.id = "a", .instance = "i", .card = "c", .capacity = 5, .owner_epoch = 9}),
            std::string("\1\1i\1c\5\1\x9", 8));
  EXPECT_EQ(
      EncodeSession({.id = "s", .client = "c", .instance = "i", .agent = "", .owner_epoch = 9}),
      std::string("\1\1c\1i\0\x9", 7));
  EXPECT_EQ(EncodeTask({.id = "t",
                        .agent = "a",
                        .client = "c",
                        .created = absl::UnixEpoch(),
                        .updated = absl::FromUnixNanos(1),
                        .epoch = 1,
                        .input = "in",
                        .output = std::nullopt,
                        .deadline = absl::FromUnixNanos(-1),
                        .transitions = {}}),
            std::string("\1\1a\1c\1\0\0\2\1\2in\0\1\0\0\0", 18));
}

// Proves: K2
TEST(SharedValuesTest, ANewerVersionAndDamageAreToldApart) {
  struct Kind {
    std::string value;
    std::function<Status(std::string_view)> decode;
  };
  const Kind kinds[] = {
      {EncodeSubscription(ASubscription()),
       [](std::string_view value) { return DecodeSubscription(value).status(); }},
      {EncodeAgent(AnAgent()),
       [](std::string_view value) { return DecodeAgent("a", value).status(); }},
      {EncodeSession(ASession()),
       [](std::string_view value) { return DecodeSession("s", value).status(); }},
      {EncodeTask(ATask()), [](std::string_view value) { return DecodeTask("t", value).status(); }},
  };
  for (const Kind& kind : kinds) {
    std::string value = kind.value;
    EXPECT_OK(kind.decode(value));
    value[0] = 2;
    EXPECT_FAILS(kind.decode(value), kUnimplemented, kNone);
    value[0] = 0;
    EXPECT_FAILS(kind.decode(value), kDataLoss, kDamage);
    for (size_t length = 0; length < kind.value.size(); ++length) {
      EXPECT_FAILS(kind.decode(std::string_view(kind.value).substr(0, length)), kDataLoss, kDamage);
    }
    EXPECT_FAILS(kind.decode(kind.value + "x"), kDataLoss, kDamage);
  }
}

}  // namespace
}  // namespace holdfast
