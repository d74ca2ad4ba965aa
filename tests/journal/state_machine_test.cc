#include "journal/state_machine.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/encoded_record.h"

namespace holdfast {
namespace {

class Witness final : public StateMachine {
 public:
  void Apply(const RawRecord& record, Lsn lsn, const RecordRef&) override {
    EXPECT_EQ(FieldsOf<DeadLetterPurge>(record).id, "x");
    lsns.push_back(lsn);
  }
  std::vector<Lsn> lsns;
};

TEST(StateMachinesTest, ARecordGoesToTheMachineThatTakesItsType) {
  Witness purges;
  Witness others;
  StateMachines machines;
  machines.Route(RecordType::kDeadLetterPurge, purges);
  machines.Route(RecordType::kDeadLetter, others);
  machines.Apply(EncodedRecord(DeadLetterPurge{.id = "x"}).raw(), Lsn(7), RecordRef{});
  EXPECT_EQ(purges.lsns, std::vector<Lsn>{Lsn(7)});
  EXPECT_TRUE(others.lsns.empty());
  EXPECT_EQ(machines.For(RecordType::kOffsetAdvance), nullptr);
}

TEST(StateMachinesDeathTest, ARecordThatNobodyTakesIsABug) {
  StateMachines machines;
  EXPECT_DEATH(machines.Apply(EncodedRecord(DeadLetterPurge{.id = "x"}).raw(), Lsn(7), RecordRef{}),
               "CHECK");
}

}  // namespace
}  // namespace holdfast
