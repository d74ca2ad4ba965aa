#include "stores/store_limits.h"

#include <gtest/gtest.h>

#include "tests/stores/fake_stores.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

const std::string kLongest(kNameBytesMax, 'n');
const std::string kTooLong(kNameBytesMax + 1, 'n');

TEST(StoreLimitsTest, NamesMayBeAnyBytesBelow64KiB) {
  Delivery delivery = DeliveryFor(kLongest);
  delivery.topic = std::string(100, '\0');
  delivery.client = "#/|\xff";
  EXPECT_OK(CheckDelivery(delivery, {}));
  EXPECT_OK(CheckOffsetKey({"", kLongest, UINT64_MAX}));

  for (std::string Delivery::* name : {&Delivery::id, &Delivery::topic, &Delivery::client}) {
    Delivery wrong = DeliveryFor("a");
    wrong.*name = kTooLong;
    EXPECT_FAILS(CheckDelivery(wrong, {}), kInvalidArgument, kNone);
  }
  EXPECT_FAILS(CheckOffsetKey({"t", kTooLong, 0}), kInvalidArgument, kNone);
  EXPECT_FAILS(CheckRemoval({.id = "a", .answer = kTooLong}), kInvalidArgument, kNone);
  EXPECT_FAILS(CheckSource({kTooLong, 0, 0}), kInvalidArgument, kNone);
  EXPECT_FAILS(CheckReschedule({.id = kTooLong}), kInvalidArgument, kNone);
}

TEST(StoreLimitsTest, IdsAreNotEmpty) {
  EXPECT_FAILS(CheckDelivery(DeliveryFor(""), {}), kInvalidArgument, kNone);
  EXPECT_FAILS(CheckRemoval({.id = ""}), kInvalidArgument, kNone);
  EXPECT_FAILS(CheckDeadLetter(DeadLetterFor(""), {}), kInvalidArgument, kNone);
  EXPECT_FAILS(CheckRedrive("a", {.new_id = ""}), kInvalidArgument, kNone);
}

TEST(StoreLimitsTest, OffsetsEndAt2To63Minus2) {
  EXPECT_OK(CheckOffset("offset", kOffsetMax));
  EXPECT_FAILS(CheckOffset("offset", kOffsetMax + 1), kInvalidArgument, kNone);
  Delivery delivery = DeliveryFor("a");
  delivery.offset = UINT64_MAX;
  EXPECT_FAILS(CheckDelivery(delivery, {}), kInvalidArgument, kNone);
  DeadLetter dead_letter = DeadLetterFor("a");
  dead_letter.offset = kOffsetMax + 1;
  EXPECT_FAILS(CheckDeadLetter(dead_letter, {}), kInvalidArgument, kNone);
}

TEST(StoreLimitsTest, EventsAreBounded) {
  EXPECT_OK(CheckDelivery(DeliveryFor("a", std::string(10, 'x')), {.event_bytes_max = 10}));
  EXPECT_OK(CheckDelivery(DeliveryFor("a", ""), {.event_bytes_max = 0}));
  EXPECT_FAILS(CheckDelivery(DeliveryFor("a", std::string(11, 'x')), {.event_bytes_max = 10}),
               kResourceExhausted, kLimit);
  EXPECT_FAILS(CheckDeadLetter(DeadLetterFor("a", std::string(11, 'x')), {.event_bytes_max = 10}),
               kResourceExhausted, kLimit);
}

TEST(StoreLimitsTest, ARedriveNeedsAnIdOfItsOwn) {
  EXPECT_OK(CheckRedrive("a", {.new_id = "b"}));
  EXPECT_FAILS(CheckRedrive("a", {.new_id = "a"}), kInvalidArgument, kNone);
}

TEST(StoreLimitsTest, AMessageNamesTheFieldAndTheBound) {
  Delivery delivery = DeliveryFor("a");
  delivery.client = kTooLong;
  const Status status = CheckDelivery(delivery, {});
  EXPECT_NE(Message(status).find("client"), std::string_view::npos) << status.ToString();
  EXPECT_NE(Message(status).find("65535"), std::string_view::npos) << status.ToString();
}

}  // namespace
}  // namespace holdfast
