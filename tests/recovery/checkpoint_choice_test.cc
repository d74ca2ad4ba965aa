#include "recovery/checkpoint_choice.h"

#include <gtest/gtest.h>

#include "tests/recovery/captured.h"

namespace holdfast {
namespace {

class CheckpointChoiceTest : public testing::Test {
 protected:
  CheckpointChoiceTest() : storage_(store_.disk) {
    StatusOr<StoreView> view = ReadView(storage_);
    CHECK_OK(view.status());
    view_ = *std::move(view);
  }
  CheckpointChoice Choose(const CheckpointUse& use = {}) {
    const StatusOr<CheckpointChoice> choice =
        LoadNewestCheckpoint(storage_, view_.layout, *view_.evidence, machine_.machines(), use);
    CHECK_OK(choice.status());
    return *choice;
  }
  TwoCheckpoints store_;
  SimStorage storage_;
  StoreView view_;
  RecordingMachine machine_;
};

TEST_F(CheckpointChoiceTest, TheNewestIsLoaded) {
  const CheckpointChoice choice = Choose();
  EXPECT_EQ(choice.from(), Lsn(6));
  EXPECT_EQ(choice.entries, 6u);
  EXPECT_TRUE(choice.bad.empty() && choice.outdated.empty());
}

// Deciding twice must not leave what the first look loaded.
TEST_F(CheckpointChoiceTest, MachinesAreResetBefore) {
  (void)Choose();  // it only has to load
  const CheckpointChoice choice = Choose({.ignore = true});
  EXPECT_EQ(choice.from(), Lsn());
  EXPECT_TRUE(choice.bad.empty() && choice.outdated.empty());
  EXPECT_TRUE(machine_.places().empty());
}

// The older checkpoint's records begin in a segment that was retired since.
TEST_F(CheckpointChoiceTest, OneWithoutTheRecordsBehindItIsUseless) {
  Evidence& evidence = *view_.evidence;
  evidence.chain.erase(evidence.chain.begin());
  const CheckpointChoice choice = Choose();
  EXPECT_EQ(choice.from(), Lsn(6));
  ASSERT_EQ(choice.outdated.size(), 1u);
  EXPECT_EQ(choice.outdated[0]->from, Lsn(4));
  EXPECT_TRUE(choice.bad.empty());
}

// An earlier version did not keep what another machine has in it: nothing is wrong with the files,
// and everything is replayed.
TEST_F(CheckpointChoiceTest, OneWithoutASectionIsOutdated) {
  RecordingMachine other;
  StateMachines more = machine_.machines();
  more.Route(RecordType::kAnswers, other);
  const StatusOr<CheckpointChoice> choice =
      LoadNewestCheckpoint(storage_, view_.layout, *view_.evidence, more, {});
  ASSERT_OK(choice);
  EXPECT_EQ(choice->from(), Lsn());
  EXPECT_EQ(choice->outdated.size(), 2u);
  EXPECT_TRUE(choice->bad.empty());
  EXPECT_TRUE(machine_.places().empty());
}

TEST_F(CheckpointChoiceTest, OneOfAnotherCourseOfEventsIsUseless) {
  Link& link = view_.evidence->chain.back().link;
  link.previous_last_lsn = link.through = Lsn(5);  // a boot that found LSN 5 the last, and jumped
  link.next = Lsn(2 * kLsnJump);
  const CheckpointChoice choice = Choose();
  EXPECT_EQ(choice.from(), Lsn(4));
  EXPECT_EQ(choice.bad.size(), 1u);
}

}  // namespace
}  // namespace holdfast
