// Opening is cut short anywhere, or any of its operations fails: the next open has everything.
#include <gtest/gtest.h>

#include <functional>

#include "recovery/opener.h"
#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

// Every disk that a crash may leave during `run`, handed to `check`.
void ForEachCrash(const SimDisk& before, uint64_t seed, const std::function<void(SimStorage&)>& run,
                  const std::function<void(const SimDisk&)>& check) {
  std::vector<SimDisk> moments;
  SimStorage storage(before);
  storage.SetObserver([&](const SimOperation& operation, const SimDisk& disk) {
    if (Changes(operation.call)) moments.push_back(disk);
  });
  run(storage);
  storage.SetObserver(nullptr);
  moments.push_back(storage.disk());
  ASSERT_GT(moments.size(), 5u);
  for (size_t i = 0; i < moments.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "before change " << i);
    check(moments[i].Kill(seed + i, false));
    for (const std::vector<bool>& kept : CutChoices(moments[i].Loose().size(), 24, seed + i)) {
      check(moments[i].PowerCut(kept));
    }
  }
}

// Proves: G7
TEST(OpenerCrashTest, TheFirstInitialisationCompletesOrStartsAnew) {
  const auto open = [](SimStorage& storage) {
    RecordingMachine machine;
    ASSERT_OK(StoreBuilder::Open(storage, machine, 1));
  };
  ForEachCrash(SimDisk(), 1, open, [](const SimDisk& disk) {
    Boot boot{disk, 2};
    ASSERT_OK(boot.status);
    EXPECT_TRUE(boot.machine.places().empty());
    boot.store().AppendSynced({1});
    Boot again{boot.PowerCut(), 3};
    ASSERT_OK(again.status);
    EXPECT_EQ(again.machine.places().size(), 1u);
  });
}

// 7 records in two segments, the last ones behind P. With one made ahead an open has a spare file.
SimDisk ToRecover(bool one_ahead) {
  Boot first{SimDisk()};
  CHECK_OK(first.status);
  first.store().AppendSynced({2, 1});
  first.store().Append({1, 2});
  first.store().Rotate(*first.storage);
  first.store().Append({1});
  if (one_ahead) (void)first.store().Prepare(*first.storage);  // only its file matters
  return first.PowerCutKeepingAll();
}

size_t ZerosOfAnOpen(const SimDisk& disk) {
  SimStorage storage(disk);
  size_t zeros = 0;
  storage.SetObserver([&](const SimOperation& operation, const SimDisk&) {
    zeros += operation.call == SimCall::kWriteZeros;
  });
  RecordingMachine machine;
  CHECK_OK(StoreBuilder::Open(storage, machine, 2).status());
  return zeros;
}

TEST(OpenerCrashTest, AnOpenThatFindsASpareFileWritesNoZeros) {
  EXPECT_EQ(ZerosOfAnOpen(ToRecover(/*one_ahead=*/true)), 0u);
  EXPECT_EQ(ZerosOfAnOpen(ToRecover(/*one_ahead=*/false)), 1u);
}

// Proves: G2 G7
TEST(OpenerCrashTest, ACrashInRecoveryChangesNothing) {
  const auto open = [](SimStorage& storage) {
    RecordingMachine machine;
    ASSERT_OK(StoreBuilder::Open(storage, machine, 2));
  };
  size_t states = 0;
  const auto check_nested = [&](const SimDisk& disk) {
    ++states;
    Boot boot{disk, 3};
    ASSERT_OK(boot.status);
    ASSERT_EQ(boot.machine.lsns(), UpTo(7));
    EXPECT_GE(boot.store().start().next, Lsn(2 * kLsnJump));
    boot.store().AppendSynced({1});
    Boot again{boot.PowerCut(), 4};
    ASSERT_OK(again.status);
    EXPECT_EQ(again.machine.places().size(), 8u);
  };
  for (const bool one_ahead : {true, false}) {
    for (const uint64_t seed : {7, 1'007}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << (one_ahead ? ", one made ahead" : ""));
      const size_t before = states;
      ForEachCrash(ToRecover(one_ahead), seed, open, [&](const SimDisk& disk) {
        check_nested(disk);
        if (states % 15 == 0) ForEachCrash(disk, states, open, check_nested);
      });
      EXPECT_GT(states - before, 200u);
    }
  }
  EXPECT_GT(states, 1'000u);
}

// Any operation of an open may fail: it says so, and the next open has everything.
// Proves: G3 G7
TEST(OpenerCrashTest, AnyFailedOperationLeavesAStoreThatOpens) {
  Boot first{SimDisk()};
  first.store().AppendSynced({2, 1});
  first.store().Append({1, 2});
  const SimDisk disk = first.PowerCutKeepingAll();
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE(at);
    SimStorage storage(disk);
    storage.SetFault(SimFault{.at = at});
    RecordingMachine machine;
    (void)StoreBuilder::Open(storage, machine).status();  // some failures cost space only
    if (!storage.fault_was_met()) break;
    storage.SetFault(std::nullopt);
    const SimDisk left = storage.disk();
    Boot boot{left.PowerCut(std::vector<bool>(left.Loose().size(), false)), 9};
    ASSERT_OK(boot.status);
    EXPECT_EQ(boot.machine.lsns(), UpTo(6));
  }
}

}  // namespace
}  // namespace holdfast
