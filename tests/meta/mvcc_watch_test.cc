#include "meta/mvcc_watch.h"

#include <gtest/gtest.h>

#include <memory>

namespace holdfast {
namespace {

TEST(MvccWatchTest, NothingIsSaidAfterTheLastNoticeOrTheEnd) {
  int calls = 0;
  MvccWatcher watcher(
      KeyRange::All(), 1, [&](const MetaNotice&) { ++calls; }, absl::ZeroDuration());
  watcher.Call({.kind = MetaNotice::Kind::kChanges});
  EXPECT_FALSE(watcher.ended());
  watcher.Call({.kind = MetaNotice::Kind::kResync});
  EXPECT_TRUE(watcher.ended());
  watcher.Call({.kind = MetaNotice::Kind::kChanges});
  EXPECT_EQ(calls, 2);
  MvccWatcher other(KeyRange::All(), 1, [&](const MetaNotice&) { ++calls; }, absl::ZeroDuration());
  other.End();
  other.Call({.kind = MetaNotice::Kind::kChanges});
  EXPECT_EQ(calls, 2);
}

TEST(MvccWatchTest, EndedOnesAreForgotten) {
  MvccWatchers watchers;
  const auto watcher = std::make_shared<MvccWatcher>(
      KeyRange::All(), 1, [](const MetaNotice&) {}, absl::ZeroDuration());
  watchers.Add(watcher);
  EXPECT_EQ(watchers.Live().size(), 1u);
  watcher->End();
  EXPECT_TRUE(watchers.Live().empty());
  EXPECT_EQ(watcher.use_count(), 1);
}

}  // namespace
}  // namespace holdfast
