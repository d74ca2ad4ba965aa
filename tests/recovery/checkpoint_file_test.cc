#include "recovery/checkpoint_file.h"

#include <gtest/gtest.h>

#include "recovery/evidence.h"
#include "tests/recovery/captured.h"

namespace holdfast {
namespace {

class OtherMachine final : public StateMachine {
  void Apply(const RawRecord&, Lsn, const RecordRef&) override {}
};

class CheckpointFileTest : public testing::Test {
 protected:
  CheckpointFileTest() : storage_(store_.disk) {
    const StatusOr<StoreView> view = ReadView(storage_);
    CHECK_OK(view.status());
    layout_ = view->layout;
  }
  Status Load(const StateMachines* machines) {
    return LoadCheckpoint(storage_, layout_.checkpoints.back(), layout_.salt, machines);
  }
  TwoCheckpoints store_;
  SimStorage storage_;
  StoreLayout layout_;
};

TEST_F(CheckpointFileTest, HeaderAndFooterTellWhatItIs) {
  ASSERT_EQ(layout_.checkpoints.size(), 2u);
  const CheckpointFile& newest = layout_.checkpoints.back();
  ASSERT_OK(newest.status);
  EXPECT_EQ(newest.from, Lsn(6));
  EXPECT_EQ(newest.bytes, store_.newer.bytes);
  EXPECT_EQ(newest.header.epoch, Epoch(1));
  EXPECT_EQ(newest.header.engine_ns, absl::ToInt64Nanoseconds(absl::Seconds(3)));
  EXPECT_EQ(newest.footer.through, Lsn(6));
  ASSERT_EQ(newest.footer.sections.size(), 1u);
  EXPECT_EQ(newest.footer.sections[0].entries, 6u);
}

TEST_F(CheckpointFileTest, LoadingVerifiesAndHandsOver) {
  EXPECT_OK(Load(nullptr));
  RecordingMachine machine;
  ASSERT_OK(Load(&machine.machines()));
  EXPECT_EQ(machine.lsns(), UpTo(6));
}

// State that nobody takes, or that a machine misses, would be lost without a word.
TEST_F(CheckpointFileTest, ItsSectionsMustBeThoseOfTheMachines) {
  OtherMachine other;
  RecordingMachine machine;
  StateMachines more = machine.machines();
  more.Route(RecordType::kDeliveryPut, other);
  EXPECT_FAILS(Load(&more), kFailedPrecondition, kNone);  // an earlier version wrote it
  StateMachines none;
  EXPECT_FAILS(Load(&none), kFailedPrecondition, kNewerFormat);
}

class LaterMachine final : public StateMachine {
 public:
  void Apply(const RawRecord&, Lsn, const RecordRef&) override {}
  bool MayLackSection() const override { return true; }
};

TEST_F(CheckpointFileTest, AMachineThatCameLaterMayLackItsSection) {
  LaterMachine later;
  RecordingMachine machine;
  StateMachines more = machine.machines();
  more.Route(RecordType::kDeliveryPut, later);
  EXPECT_OK(Load(&more));
  EXPECT_EQ(machine.lsns(), UpTo(6));
}

TEST_F(CheckpointFileTest, OneThatIsGoneIsLeftOut) {
  const auto files =
      ReadCheckpointFiles(storage_, {Lsn(4), Lsn(5)}, layout_.store_id, layout_.salt);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].from, Lsn(4));
  ASSERT_OK(storage_.Remove(CheckpointFileName(Lsn(6))));
  EXPECT_EQ(Load(nullptr).code(), StatusCode::kNotFound);
}

TEST_F(CheckpointFileTest, AReadErrorIsNoDamage) {
  storage_.SetFault(SimFault{.at = 1, .for_ever = true, .only = SimCall::kReadAt});
  EXPECT_FAILS(Load(nullptr), kUnavailable, kIo);
  const auto files = ReadCheckpointFiles(storage_, {Lsn(4)}, layout_.store_id, layout_.salt);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_FAILS(files[0].status, kUnavailable, kIo);
}

}  // namespace
}  // namespace holdfast
