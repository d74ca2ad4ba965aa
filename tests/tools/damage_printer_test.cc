#include "tools/damage_printer.h"

#include <gtest/gtest.h>

#include <string>

#include "tools/command.h"

namespace holdfast {
namespace {

Damage SomeDamage() {
  return {.file = "journal/0000000000000002.seg",
          .segment = SegmentId(2),
          .offset = 8192,
          .bytes = 4096,
          .first_lsn = Lsn(17),
          .last_lsn = Lsn(23),
          .reason = "payload check"};
}

// Proves: G5
TEST(DamagePrinterTest, DamageIsLocated) {
  EXPECT_EQ(DamageText(SomeDamage()),
            "damage: journal/0000000000000002.seg from byte 8192 to byte 12288, "
            "LSN 17 to 23 lost: payload check");
  EXPECT_EQ(DamageJson(SomeDamage()),
            R"({"damage":"payload check","file":"journal/0000000000000002.seg","offset":8192,)"
            R"("bytes":4096,"first_lsn":17,"last_lsn":23,"refuses_open":true})");
}

TEST(DamagePrinterTest, WhatIsNotKnownIsNotSaid) {
  Damage damage = SomeDamage();
  damage.first_lsn = damage.last_lsn = Lsn();
  damage.bytes = 0;
  damage.refuses_open = false;
  EXPECT_EQ(DamageText(damage).find("LSN"), std::string::npos);
  EXPECT_NE(DamageText(damage).find("opens all the same"), std::string::npos);
  EXPECT_EQ(DamageJson(damage).find("lsn"), std::string::npos);
}

TEST(DamagePrinterTest, AVerdictIsAnExitCode) {
  EXPECT_EQ(VerdictExitCode(SurveyVerdict::kClean), kExitOk);
  EXPECT_EQ(VerdictExitCode(SurveyVerdict::kTornTail), kExitTornTail);
  EXPECT_EQ(VerdictExitCode(SurveyVerdict::kDamage), kExitFault);
  EXPECT_STREQ(VerdictName(SurveyVerdict::kTornTail), "torn-tail");
  const std::string torn =
      TornTailText({.segment = SegmentId(3), .offset = 8192, .bytes = 4096, .next_lsn = Lsn(40)});
  EXPECT_NE(torn.find("from byte 8192, 4096 bytes"), std::string::npos) << torn;
}

}  // namespace
}  // namespace holdfast
