// The demo's audit must find each way in which a store can break its word.
#include "tools/demo_audit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class DemoAuditTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(store_, Engine::Open({.backend = Backend::kMemory}));
  }
  // As the child puts event `offset` for client-1 under `id`.
  void Put(const std::string& id, uint64_t offset, const std::string& event) {
    Delivery delivery;
    delivery.id = id;
    delivery.topic = DemoWork::kTopic;
    delivery.incarnation = DemoWork::kIncarnation;
    delivery.offset = offset;
    delivery.client = DemoWork::ClientName(0);
    delivery.event = event;
    ASSERT_OK(store_
                  ->Transact([&](Transaction& transaction) {
                    transaction.PutDelivery(delivery);
                    transaction.SourceSeen({DemoWork::kTopic, DemoWork::kIncarnation, 0}, offset);
                  })
                  .Wait());
  }
  void Commit(uint64_t next) {
    ASSERT_OK(store_->offsets()
                  .Write({DemoWork::kTopic, DemoWork::ClientName(0), 0},
                         OffsetPosition(next, DemoWork::kIncarnation))
                  .Wait());
  }
  void Remove(const std::string& id) {
    ASSERT_OK(store_->deliveries()
                  .Remove({.id = id, .client = {}, .idempotency_key = {}, .answer = {}})
                  .Wait());
  }
  void Told(DemoStep step, const std::string& id, uint64_t offset, uint64_t next = 0) {
    audit_.Take({.step = step, .id = id, .client = 0, .offset = offset, .next = next});
  }
  DemoAudit::Round Compare() {
    auto round = audit_.Compare(*store_);
    EXPECT_OK(round);
    return round.ok() ? *round : DemoAudit::Round{.offsets = {0}};
  }
  void ExpectFinding(const std::string& text) {
    const auto& shown = audit_.findings().shown();
    EXPECT_TRUE(std::ranges::any_of(shown, [&](const std::string& finding) {
      return finding.find(text) != std::string::npos;
    })) << testing::PrintToString(shown);
  }

  const DemoWork work_{.events = {"first", "second"}, .repeat = 1, .clients = 1};
  std::unique_ptr<Engine> store_;
  DemoAudit audit_{work_};
};

TEST_F(DemoAuditTest, AnHonestRunPasses) {
  Put("1", 0, "first");
  Told(DemoStep::kPut, "1", 0);
  EXPECT_EQ(Compare().pending, 1U);
  Told(DemoStep::kTry, "1", 0);
  Remove("1");
  Put("2", 1, "second");  // Durable, but the kill came before it could be told.
  Commit(1);
  const DemoAudit::Round round = Compare();
  EXPECT_EQ(round.untold_acks, 1U);
  EXPECT_EQ(round.untold_puts, 1U);
  Told(DemoStep::kTry, "2", 1);
  Told(DemoStep::kAck, "2", 1, 2);
  Remove("2");
  Commit(2);
  audit_.CheckFinished(Compare());
  EXPECT_EQ(audit_.findings().total(), 0U) << testing::PrintToString(audit_.findings().shown());
}

TEST_F(DemoAuditTest, APutThatAKillTookBeforeItWasDurableComesAgain) {
  Told(DemoStep::kTry, "1", 0);
  Compare();
  Put("2", 0, "first");
  Told(DemoStep::kPut, "2", 0);
  Compare();
  EXPECT_EQ(audit_.findings().total(), 0U) << testing::PrintToString(audit_.findings().shown());
}

TEST_F(DemoAuditTest, ALostPutIsFound) {
  Put("2", 1, "second");
  Told(DemoStep::kPut, "1", 0);
  Compare();
  ExpectFinding("1 is missing");
}

TEST_F(DemoAuditTest, APutLostWithItsSourceIsFound) {
  Told(DemoStep::kPut, "1", 0);
  Told(DemoStep::kTry, "1", 0);
  Compare();
  ExpectFinding("never handed in");
}

TEST_F(DemoAuditTest, ADeliveryThatCameBackIsFound) {
  Put("1", 0, "first");
  Told(DemoStep::kTry, "1", 0);
  Told(DemoStep::kAck, "1", 0);
  Compare();
  ExpectFinding("back after its ack");
}

TEST_F(DemoAuditTest, OtherBytesAreFound) {
  Put("1", 0, "second");
  Compare();
  ExpectFinding("other bytes");
}

TEST_F(DemoAuditTest, AnEventThatIsThereTwiceIsFound) {
  Put("1", 0, "first");
  Put("2", 0, "first");
  Compare();
  ExpectFinding("put twice");
}

TEST_F(DemoAuditTest, OffsetsThatLieAreFound) {
  Put("1", 0, "first");
  Commit(1);
  Compare();
  ExpectFinding("event 0 is not finished");
  Told(DemoStep::kAck, "1", 0, 2);
  Compare();
  ExpectFinding("was at 2, is at 1");
}

TEST_F(DemoAuditTest, AnUnfinishedEndIsFound) {
  Put("1", 0, "first");
  audit_.CheckFinished(Compare());
  ExpectFinding("are left at the end");
  ExpectFinding("ended at offset 0 of 2");
  ExpectFinding("0 deliveries were finished, expected 2");
}

TEST_F(DemoAuditTest, NonsenseFromTheChildIsFound) {
  audit_.Take({.step = DemoStep::kPut, .id = "1", .client = 9, .offset = 0});
  ExpectFinding("names client 9");
}

}  // namespace
}  // namespace holdfast
