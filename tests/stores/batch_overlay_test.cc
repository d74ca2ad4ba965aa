#include "stores/batch_overlay.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast {
namespace {

using Space = BatchOverlay::Space;

// Few entries are searched one by one, many through a table: both find the same.
TEST(BatchOverlayTest, FindsWhatWasSetHoweverMuchThereIs) {
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("key-" + std::to_string(i));
  BatchOverlay overlay;
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(overlay.Find(Space::kDelivery, keys[i]), nullptr);
    overlay.Set(Space::kDelivery, keys[i], {.live = true, .values = {i}});
    overlay.Set(Space::kDelivery, keys[0], {.live = false, .values = {i}});
    for (size_t j = 1; j <= i; ++j) {
      ASSERT_NE(overlay.Find(Space::kDelivery, keys[j]), nullptr);
      ASSERT_EQ(overlay.Find(Space::kDelivery, keys[j])->values[0], j);
    }
    EXPECT_EQ(overlay.Find(Space::kDelivery, keys[0])->values[0], i);
  }
  overlay.Clear();
  EXPECT_EQ(overlay.Find(Space::kDelivery, keys[0]), nullptr);
}

TEST(BatchOverlayTest, TheSameBytesInTwoSpacesAreTwoKeys) {
  BatchOverlay overlay;
  overlay.Set(Space::kDelivery, "a", {.live = true});
  EXPECT_EQ(overlay.Find(Space::kDeadLetter, "a"), nullptr);
  overlay.Set(Space::kDeadLetter, "a", {.live = false});
  EXPECT_TRUE(overlay.Find(Space::kDelivery, "a")->live);
}

}  // namespace
}  // namespace holdfast
