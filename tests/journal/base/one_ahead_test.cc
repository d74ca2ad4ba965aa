#include "journal/base/one_ahead.h"

#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Numbers up to `count`, one a block.
OneAhead<int>::Make UpTo(int count) {
  return [next = 0, count](int& block) mutable {
    block = ++next;
    return block <= count;
  };
}

TEST(OneAheadTest, BlocksComeInOrderWhoeverMakesThem) {
  for (const int started_at : {0, 3, 100}) {
    SCOPED_TRACE(started_at);
    OneAhead<int> blocks(UpTo(20));
    std::vector<int> seen, wanted;
    for (int i = 0;; ++i) {
      if (i >= started_at) blocks.Start();
      ASSERT_OK_AND_ASSIGN(int* const block, blocks.Next());
      if (block == nullptr) break;
      seen.push_back(*block);
    }
    for (int i = 1; i <= 20; ++i) wanted.push_back(i);
    EXPECT_EQ(seen, wanted);
    ASSERT_OK_AND_ASSIGN(int* const behind, blocks.Next());
    EXPECT_EQ(behind, nullptr);
  }
}

// What the maker uses may go right behind it.
TEST(OneAheadTest, TheEndWaitsForTheBlockThatIsBeingMade) {
  for (const int taken : {0, 1, 5}) {
    int made = 0;
    {
      OneAhead<int> blocks([&made](int& block) {
        block = ++made;
        return true;
      });
      blocks.Start();
      for (int i = 0; i < taken; ++i) ASSERT_OK(blocks.Next().status());
    }
    EXPECT_GE(made, taken);
    EXPECT_LE(made, taken + 1);
  }
}

TEST(OneAheadTest, WithoutMemoryThereItIsAnError) {
  OneAhead<int> blocks([made = 0](int& block) mutable -> bool {
    block = ++made;
    if (made == 3) throw std::bad_alloc();
    return true;
  });
  blocks.Start();
  ASSERT_OK(blocks.Next().status());
  ASSERT_OK(blocks.Next().status());
  EXPECT_FAILS(blocks.Next().status(), kResourceExhausted, kLimit);
}

}  // namespace
}  // namespace holdfast
