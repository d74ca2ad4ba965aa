// The demo's audit must find each way in which the dispatcher or a store can break its word.
#include "tools/demo_audit.h"

#include "tests/tools/demo_audit_fixture.h"

namespace holdfast {
namespace {

TEST_F(DemoAuditTest, AnHonestRunPasses) {
  Put(0);
  Told(DemoStep::kPut, "A0", 0);
  Told(DemoStep::kPut, "B0", 0);
  Acked("A0", 0);
  Remove("A0");
  Commit(0, 1);
  Pushed("B0", 0);
  Told(DemoStep::kTry, "B0", 0);
  EXPECT_EQ(Compare().pending, 1U);  // The ack of B0 was lost with the child.

  Pushed("B0", 0, 2);
  Told(DemoStep::kTry, "B0", 0);
  Remove("B0");
  Commit(1, 1);
  Put(1);  // Durable, but the kill came before any of it could be told.
  Commit(0, 1);
  DemoAudit::Round round = Compare();
  EXPECT_EQ(round.untold_acks, 1U);
  EXPECT_EQ(round.untold_puts, 2U);

  for (const uint64_t client : {0, 1}) {
    audit_.Take({.step = DemoStep::kOver, .client = client, .offset = 0});
  }
  SourceTold(0);
  Told(DemoStep::kAgain, "A1", 1);
  Told(DemoStep::kAgain, "B1", 1);
  Acked("A1", 1);
  Told(DemoStep::kAck, "A1", 1);  // Asked twice, answered twice.
  Remove("A1");
  Pushed("B1", 1, kDemoAttemptsMax);
  Told(DemoStep::kTry, "B1", 1);
  Told(DemoStep::kRefuse, "B1", 1);  // Too late.
  GiveUp(1, "B1", 1);
  SourceTold(1);
  Commit(0, 2);
  Commit(1, 2);
  RaiseCursor(2);
  round = Compare();
  EXPECT_EQ(round.dead_letters, 1U);
  audit_.CheckFinished(round);
  ExpectNoFinding();
  EXPECT_EQ(audit_.tallies()[0].acked, 2U);
  EXPECT_EQ(audit_.tallies()[0].duplicates, 0U);
  EXPECT_EQ(audit_.tallies()[1].acked, 1U);
  EXPECT_EQ(audit_.tallies()[1].dead_letters, 1U);
  EXPECT_EQ(audit_.tallies()[1].pushes, 3U);
  EXPECT_EQ(audit_.tallies()[1].duplicates, 1U);
  EXPECT_EQ(audit_.crossed(), 0U);
  EXPECT_EQ(audit_.told().Text(), "2");
}

TEST_F(DemoAuditTest, APutThatAKillTookBeforeItWasDurableComesAgain) {
  Pushed("A9", 0);
  Told(DemoStep::kTry, "A9", 0);
  EXPECT_EQ(Compare().unwritten, 1U);
  Put(0);
  Told(DemoStep::kPut, "A0", 0);
  Pushed("A0", 0);
  Compare();
  ExpectNoFinding();
  EXPECT_EQ(audit_.tallies()[0].duplicates, 1U);
}

// --- At least once ---

TEST_F(DemoAuditTest, ALostPutIsFound) {
  Put(0);
  Told(DemoStep::kPut, "A0", 0);
  Remove("A0");
  Compare();
  ExpectFinding("A0 is missing");
}

TEST_F(DemoAuditTest, APutLostWithItsSourceIsFound) {
  Told(DemoStep::kPut, "A0", 0);
  Compare();
  ExpectFinding("never handed in");
}

TEST_F(DemoAuditTest, AnAckLostWithItsSourceIsFound) {
  Acked("A0", 0);
  Compare();
  ExpectFinding("never handed in");
}

TEST_F(DemoAuditTest, AnEventWithoutADeliveryForOneClientIsFound) {
  PutFor(0, "A0", 0, "first");
  Compare();
  ExpectFinding("event 0 was never put for slow-2");
}

TEST_F(DemoAuditTest, OtherBytesAreFound) {
  PutFor(0, "A0", 0, "second");
  Compare();
  ExpectFinding("A0 has other bytes than event 0");
  audit_.Take({.step = DemoStep::kPush, .id = "A0", .attempt = 1, .checksum = 1});
  ExpectFinding("A0 was pushed with other bytes");
}

TEST_F(DemoAuditTest, AnAckWithoutAPushIsFound) {
  Told(DemoStep::kAck, "A0", 0);
  ExpectFinding("A0 was acknowledged, but never pushed");
}

TEST_F(DemoAuditTest, ADeliveryThatNobodyPutIsFound) {
  PutFor(7, "C0", 0, "first");
  Compare();
  ExpectFinding("C0 is a delivery that nobody put");
}

// --- Each ends once ---

TEST_F(DemoAuditTest, ADeliveryThatCameBackIsFound) {
  Put(0);
  Acked("A0", 0);
  Compare();
  ExpectFinding("A0 is back after its acknowledgement");
}

TEST_F(DemoAuditTest, APushAfterTheAckIsFoundUnlessItWasOnItsWay) {
  FinishEventZero();
  Pushed("A0", 0, 2);
  EXPECT_EQ(audit_.crossed(), 1U);
  ExpectNoFinding();
  Pushed("A0", 0, 3);
  ExpectFinding("A0 was pushed again after its acknowledgement");
}

TEST_F(DemoAuditTest, APushAfterARestartIsFound) {
  FinishEventZero();
  Compare();
  ExpectNoFinding();
  Pushed("A0", 0, 2);
  ExpectFinding("A0 was pushed again after its acknowledgement");
  Told(DemoStep::kAck, "A0", 0);
  ExpectFinding("A0 was acknowledged again after a restart");
}

TEST_F(DemoAuditTest, AnEventThatIsThereTwiceIsFound) {
  Put(0);
  PutFor(0, "A9", 0, "first");
  Compare();
  ExpectFinding("event 0 was put twice for fast-1: as");
}

TEST_F(DemoAuditTest, AnIdThatIsGivenOutTwiceIsFound) {
  Told(DemoStep::kPut, "A0", 0);
  Told(DemoStep::kPut, "A0", 1);
  ExpectFinding("A0 was given out twice");
  ExpectFinding("A0 was put twice");
}

TEST_F(DemoAuditTest, TwoEndsAreFound) {
  Put(0);
  Acked("A0", 0);
  GiveUp(0, "A0", 0);
  Compare();
  ExpectFinding("A0 is a dead letter and acknowledged");
  Put(1);
  GiveUp(1, "B1", 1);
  Compare();
  Pushed("B1", 1);
  ExpectFinding("B1 was pushed though it is a dead letter");
  Told(DemoStep::kAck, "B1", 1);
  ExpectFinding("B1 was acknowledged, but it is a dead letter");
  PutFor(1, "B1", 1, "second");
  Compare();
  ExpectFinding("B1 is back after it became a dead letter");
  ExpectFinding("B1 is a dead letter and in flight");
}

TEST_F(DemoAuditTest, ADeadLetterThatIsGoneIsFound) {
  Put(0);
  GiveUp(0, "A0", 0);
  Commit(0, 1);
  Compare();
  ExpectNoFinding();
  ASSERT_OK(store_->dead_letters().Purge("A0").Wait());
  Compare();
  ExpectFinding("the dead letter A0 is gone");
}

TEST_F(DemoAuditTest, ADeadLetterWithOtherBytesOrTooFewAttemptsIsFound) {
  Put(0);
  GiveUp(0, "A0", 0, kDemoAttemptsMax - 1, "third");
  Compare();
  ExpectFinding("A0 has other bytes than event 0");
  ExpectFinding(fmt::format("A0 was given up after {} attempts", kDemoAttemptsMax - 1));
}

TEST_F(DemoAuditTest, AttemptsThatWereNotCountedAreFound) {
  Pushed("A0", 0, 2);
  Compare();
  Pushed("A1", 1, kDemoAttemptsMax + 1);
  ExpectFinding(fmt::format("A1 was pushed as attempt {}", kDemoAttemptsMax + 1));
  Put(0);
  Pushed("A0", 0, 2);
  Compare();
  Pushed("A0", 0, 2);
  ExpectFinding("A0 was pushed twice as attempt 2");
}

// --- Offsets and the source ---

TEST_F(DemoAuditTest, OffsetsThatLieAreFound) {
  Put(0);
  Commit(0, 1);
  Compare();
  ExpectFinding("the offset of fast-1 is at 1, but event 0 is not finished");
}

TEST_F(DemoAuditTest, AnOffsetThatStaysBehindIsFound) {
  Put(0);
  Acked("A0", 0);
  Remove("A0");
  Compare();
  ExpectFinding("the offset of fast-1 is at 0, but all below event 1 is finished");
}

TEST_F(DemoAuditTest, AnOffsetThatFellIsFound) {
  FinishEventZero();
  Compare();
  ExpectNoFinding();
  ASSERT_OK(store_->offsets().Forget({DemoWork::kTopic, Client(0), 0}).Wait());
  Compare();
  ExpectFinding("the offset of fast-1 was at 1, is at 0");
}

TEST_F(DemoAuditTest, ASourceThatIsToldAheadIsFound) {
  Put(0);
  SourceTold(0);
  ExpectFinding("event 0 is said to be finished for fast-1, but was never put");
  Acked("A0", 0);
  Pushed("B0", 0);
  SourceTold(0);
  Compare();
  ExpectFinding("event 0 was said to be finished, but B0 for slow-2 is not");
}

// ... also when what it ran ahead of was caught up with before the kill.
TEST_F(DemoAuditTest, ASourceThatWasToldAheadIsFoundAfterwards) {
  Put(0);
  Acked("A0", 0);
  Pushed("B0", 0);
  SourceTold(0);
  Told(DemoStep::kTry, "B0", 0);
  Told(DemoStep::kAck, "B0", 0);
  Remove("A0");
  Remove("B0");
  Compare();
  ExpectFinding("event 0 was said to be finished before B0 for slow-2 was");
}

TEST_F(DemoAuditTest, AnEventThatIsWronglyCalledFinishedIsFound) {
  Put(0);
  Compare();
  audit_.Take({.step = DemoStep::kOver, .client = 1, .offset = 0});
  Compare();
  ExpectFinding("event 0 was said to be finished, but B0 for slow-2 is not");
}

TEST_F(DemoAuditTest, ACursorThatIsAheadOrFallsIsFound) {
  FinishEventZero();
  Put(1);
  RaiseCursor(1);
  Compare();
  ExpectNoFinding();
  RaiseCursor(2);
  Compare();
  ExpectFinding("the cursor of the source is at 2, but event 1 is not finished");
  SetUp();  // A store that has forgotten.
  Compare();
  ExpectFinding("the cursor of the source was at 2, is at 0");
}

TEST_F(DemoAuditTest, AnUnfinishedEndIsFound) {
  Put(0);
  audit_.CheckFinished(Compare());
  ExpectFinding("2 deliveries are left at the end");
  ExpectFinding("the source was not told the end of event 0");
  ExpectFinding("fast-1 ended at offset 0 of 2");
  ExpectFinding("fast-1 acknowledged 0 of 2 events, and 0 are dead letters");
}

TEST_F(DemoAuditTest, AnEventThatNobodyPushedIsFound) {
  Put(0);
  Told(DemoStep::kTry, "A0", 0);
  Remove("A0");
  Commit(0, 1);
  audit_.CheckFinished(Compare());
  ExpectFinding("event 0 was never pushed to fast-1");
}

TEST_F(DemoAuditTest, AChildThatIsStuckIsFound) {
  audit_.Take({.step = DemoStep::kStuck, .offset = 1});
  ExpectFinding("nothing is finished any more: event 1");
}

TEST_F(DemoAuditTest, NonsenseFromTheChildIsFound) {
  audit_.Take({.step = DemoStep::kPut, .id = "1", .client = 9, .offset = 0});
  ExpectFinding("names client 9");
}

}  // namespace
}  // namespace holdfast
