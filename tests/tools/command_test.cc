#include "tools/command.h"

#include <gtest/gtest.h>

#include "tests/tools/tool_run.h"

namespace holdfast {
namespace {

TEST(CommandTest, WrongUseIsAnExitCodeAndAMessage) {
  const ToolRun none = RunTool({});
  EXPECT_EQ(none.exit_code, kExitUsageOrIo);
  EXPECT_EQ(none.out, "");
  EXPECT_NE(none.err, "");
  const ToolRun unknown = RunTool({"inspect", "d", "--colour"});
  EXPECT_EQ(unknown.exit_code, kExitUsageOrIo);
  EXPECT_NE(unknown.err.find("--colour"), std::string::npos) << unknown.err;
  const ToolRun help = RunTool({"--help"});
  EXPECT_EQ(help.exit_code, kExitOk);
  EXPECT_EQ(help.err, "");
}

// Proves: G4
TEST(CommandTest, DamageHasItsOwnExitCode) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .clock = RealClock()};
  EXPECT_EQ(Fail(console, "get", DataLoss("bad bytes")), kExitFault);
  EXPECT_EQ(Fail(console, "get", Unavailable(Detail::kIo, "no disk")), kExitUsageOrIo);
  EXPECT_EQ(err.str(), "holdfast get: bad bytes\nholdfast get: no disk\n");
}

}  // namespace
}  // namespace holdfast
