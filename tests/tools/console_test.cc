#include "tools/console.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/sim/sim_clock.h"

namespace holdfast {
namespace {

class ConsoleTest : public testing::Test {
 protected:
  std::ostringstream out_, err_;
  SimClock clock_;
  Console console_{.out = out_, .err = err_, .clock = clock_, .terminal = true};
};

TEST_F(ConsoleTest, AShortCommandShowsNoProgress) {
  Progress progress(console_, "records", 10);
  progress.Update(5);
  clock_.Advance(absl::Seconds(1));
  progress.Update(10);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(ConsoleTest, ALongOneShowsHowFarItIsAndClearsTheLine) {
  {
    Progress progress(console_, "records", 10);
    clock_.Advance(absl::Seconds(3));
    progress.Update(5);
    EXPECT_NE(err_.str().find("records: 5 of 10 (50 %)"), std::string::npos) << err_.str();
    const std::string once = err_.str();
    progress.Update(6);
    EXPECT_EQ(err_.str(), once) << "not more often than ten times a second";
    clock_.Advance(absl::Milliseconds(150));
    progress.Update(7);
    EXPECT_NE(err_.str(), once);
  }
  EXPECT_TRUE(err_.str().ends_with("\r\x1b[K"));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ConsoleTest, NothingIsShownOnAPipe) {
  console_.terminal = false;
  Progress progress(console_, "records", 0);
  clock_.Advance(absl::Seconds(3));
  progress.Update(5);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(ConsoleTest, WarningsOfTheLibraryAreMessages) {
  ConsoleLog log(console_, "list");
  log.Log(LogLevel::kInfo, "all is well");
  log.Log(LogLevel::kWarning, "beware");
  EXPECT_EQ(err_.str(), "holdfast list: beware\n");
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace holdfast
