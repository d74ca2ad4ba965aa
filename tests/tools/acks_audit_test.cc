// The audit must find each way in which a store can break its word, or its silence proves nothing.
#include "tools/acks_audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr char kId[] = "1-a-1.20";
constexpr char kOtherId[] = "1-a-2.30";

class AcksAuditTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(store_, Engine::Open({.backend = Backend::kMemory}));
  }

  Delivery DeliveryOf(const std::string& id, uint64_t offset) {
    Delivery delivery;
    delivery.id = id;
    delivery.topic = "t";
    delivery.offset = offset;
    delivery.client = "c";
    delivery.event = WorkloadEvent(id).value();
    return delivery;
  }
  void Put(const Delivery& delivery) { ASSERT_OK(store_->deliveries().Put(delivery).Wait()); }
  void Bury(const std::string& id) {
    DeadLetter dead_letter;
    dead_letter.delivery_id = id;
    dead_letter.event = WorkloadEvent(id).value();
    ASSERT_OK(store_->dead_letters().Record(dead_letter).Wait());
  }
  void Commit(uint64_t next) { ASSERT_OK(store_->offsets().Write({"t", "c", 0}, next).Wait()); }
  void Told(AckKind kind, const std::string& id = kId, uint64_t next = 1) {
    audit_.Take(
        {.kind = kind, .id = id, .topic = "t", .client = "c", .partition = 0, .next = next});
  }

  // The only finding has `text` in it; empty: there is none.
  void ExpectFinding(const std::string& text) {
    ASSERT_OK(audit_.Compare(*store_));
    if (text.empty()) {
      EXPECT_EQ(audit_.findings().total(), 0U) << audit_.findings().shown().front();
      return;
    }
    ASSERT_GE(audit_.findings().total(), 1U);
    const auto& shown = audit_.findings().shown();
    EXPECT_TRUE(std::ranges::any_of(shown, [&](const std::string& finding) {
      return finding.find(text) != std::string::npos;
    })) << testing::PrintToString(shown);
  }

  std::unique_ptr<Engine> store_;
  AcksAudit audit_;
};

TEST_F(AcksAuditTest, AnHonestStorePasses) {
  Put(DeliveryOf(kId, 1));
  Told(AckKind::kPut);
  Told(AckKind::kPut, kOtherId);
  Told(AckKind::kTry, kOtherId);
  Told(AckKind::kAck, kOtherId, 1);
  Told(AckKind::kPut, "1-a-3.0");
  Told(AckKind::kTry, "1-a-3.0");
  Told(AckKind::kDead, "1-a-3.0");
  Bury("1-a-3.0");
  Commit(1);
  ExpectFinding("");
  EXPECT_EQ(audit_.puts(), 3U);
  EXPECT_EQ(audit_.live(), 1U);
  EXPECT_EQ(audit_.untold(), 0U);
}

TEST_F(AcksAuditTest, AnOpenOutcomeMayGoEitherWay) {
  Told(AckKind::kPut);
  Told(AckKind::kTry);
  Put(DeliveryOf(kOtherId, 1));  // Nobody was told of it.
  ExpectFinding("");
  EXPECT_EQ(audit_.untold(), 2U);
}

TEST_F(AcksAuditTest, ALostPutIsFound) {
  Told(AckKind::kPut);
  ExpectFinding("missing: 1-a-1.20");
}

TEST_F(AcksAuditTest, ADeliveryThatCameBackIsFound) {
  Put(DeliveryOf(kId, 1));
  Commit(1);
  Told(AckKind::kTry);
  Told(AckKind::kAck);
  ExpectFinding("back again");
}

TEST_F(AcksAuditTest, OtherBytesAreFound) {
  Delivery delivery = DeliveryOf(kId, 1);
  delivery.event[7] = static_cast<char>(delivery.event[7] ^ 1);
  Put(delivery);
  ExpectFinding("differ from byte 7");
}

TEST_F(AcksAuditTest, AnEventOfAnotherIdIsFound) {
  Delivery delivery = DeliveryOf(kId, 1);
  delivery.event = WorkloadEvent(kOtherId).value();
  Put(delivery);
  ExpectFinding("event of 30 bytes, expected 20");
}

TEST_F(AcksAuditTest, ALostOffsetIsFound) {
  Told(AckKind::kTry);
  Told(AckKind::kAck);
  ExpectFinding("offset missing");
}

TEST_F(AcksAuditTest, AnOffsetThatWentBackIsFound) {
  Commit(4);
  Told(AckKind::kTry);
  Told(AckKind::kAck, kId, 5);
  ExpectFinding("offset went back");
}

TEST_F(AcksAuditTest, AnOffsetBeyondWhatIsOwedIsFound) {
  Put(DeliveryOf(kId, 1));
  Commit(2);
  ExpectFinding("has passed a delivery");
}

TEST_F(AcksAuditTest, WhatHappenedTwiceIsFound) {
  Told(AckKind::kPut);
  Told(AckKind::kPut);
  Told(AckKind::kTry);
  Told(AckKind::kDead);
  Told(AckKind::kDead);
  Bury(kId);
  ExpectFinding("put twice");
  ExpectFinding("ended twice");
}

TEST_F(AcksAuditTest, ALostDeadLetterIsFound) {
  Told(AckKind::kTry);
  Told(AckKind::kDead);
  ExpectFinding("missing dead letter");
}

TEST_F(AcksAuditTest, ADeadLetterThatNobodyAskedForIsFound) {
  Told(AckKind::kPut);
  Bury(kId);
  ExpectFinding("nobody asked");
}

TEST_F(AcksAuditTest, HalfADeadLetteringIsFound) {
  Told(AckKind::kTry);
  Put(DeliveryOf(kId, 1));
  Bury(kId);
  ExpectFinding("live and dead-lettered");
}

TEST_F(AcksAuditTest, ManyFindingsAreCountedAndTheFirstShown) {
  for (int i = 0; i < 200; ++i) Told(AckKind::kPut, std::to_string(i) + ".1");
  ASSERT_OK(audit_.Compare(*store_));
  EXPECT_EQ(audit_.findings().total(), 200U);
  EXPECT_EQ(audit_.findings().shown().size(), Findings::kShownMax);
}

}  // namespace
}  // namespace holdfast
