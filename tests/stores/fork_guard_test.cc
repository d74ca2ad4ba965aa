#include "stores/fork_guard.h"

#include <gtest/gtest.h>

#include "tests/support/child_process.h"

namespace holdfast {
namespace {

// Proves: G9
TEST(ForkGuardTest, KnowsAForkedChild) {
  ForkGuard guard;
  EXPECT_FALSE(guard.InChild());
  EXPECT_EQ(InChild([&] { return std::string(guard.InChild() ? "" : "not noticed"); }), "");
  EXPECT_EQ(InChild([&] { return std::string(Message(guard.Check())); }),
            "a forked child: the engine belongs to the process that opened it");
  EXPECT_FALSE(guard.InChild());
  EXPECT_TRUE(guard.Check().ok());
}

TEST(ForkGuardTest, AChildsOwnGuardIsItsOwn) {
  EXPECT_EQ(InChild([] {
              ForkGuard guard;
              return std::string(guard.InChild() ? "a stranger to itself" : "");
            }),
            "");
}

}  // namespace
}  // namespace holdfast
