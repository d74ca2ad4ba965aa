#include "meta/cached_meta.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "meta/memory_meta.h"
#include "tests/meta/faulty_meta.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Fault = FaultyMeta::Fault;
using Call = FaultyMeta::Call;

struct Seen {
  std::string value;
  uint64_t revision = 0;
  bool operator==(const Seen&) const = default;
};
using Contents = std::map<std::string, Seen>;

// "bad" does not decode.
class Plain final : public MetaMeaning<std::string, Seen> {
 public:
  StatusOr<std::string> KeyOf(std::string_view key) const override { return std::string(key); }
  StatusOr<Seen> ValueOf(const MetaEntry& entry) const override {
    if (entry.value == "bad") return DataLoss("bad");
    return Seen{entry.value, entry.revision};
  }
};
using Cache = CachedMeta<std::string, Seen>;

Contents ContentsOf(MetaStore& meta, std::string_view prefix) {
  Contents contents;
  const auto list = meta.List(prefix, {});
  EXPECT_OK(list);
  for (const MetaEntry& entry : list->entries) contents[entry.key] = {entry.value, entry.revision};
  return contents;
}
Contents ContentsOf(Cache& cache) {
  return cache.With([](const Contents& all) { return all; });
}

class CachedMetaTest : public testing::Test {
 protected:
  std::unique_ptr<Cache> Open() {
    auto cache =
        Cache::Open(faulty_, "k", plain_, RealClock(),
                    {.retry_min = absl::Milliseconds(1), .retry_max = absl::Milliseconds(2)});
    EXPECT_OK(cache);
    return *std::move(cache);
  }
  // Until it shows all that the Meta has.
  static void AwaitRevision(Cache& cache, uint64_t revision) {
    while (cache.view().revision() < revision) std::this_thread::yield();
  }

  MemoryMeta meta_{RealClock(), 1};
  FaultyMeta faulty_{meta_};
  const Plain plain_;
};

TEST_F(CachedMetaTest, ShowsWhatIsThereAndWhatComes) {
  ASSERT_OK(meta_.Put("k1", "a", {}));
  ASSERT_OK(meta_.Put("other", "x", {}));
  const auto cache = Open();
  EXPECT_EQ(ContentsOf(*cache), ContentsOf(meta_, "k"));
  ASSERT_OK(meta_.Put("k2", "b", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t last, meta_.Delete("k1", {}));
  AwaitRevision(*cache, last);
  EXPECT_EQ(ContentsOf(*cache), ContentsOf(meta_, "k"));
  EXPECT_EQ(ContentsOf(*cache).size(), 1u);
}

TEST_F(CachedMetaTest, MoreThanAPageIsListed) {
  for (int i = 0; i < 2'345; ++i) ASSERT_OK(meta_.Put("k" + std::to_string(i), "v", {}));
  EXPECT_EQ(ContentsOf(*Open()), ContentsOf(meta_, "k"));
}

TEST_F(CachedMetaTest, AMetaThatCannotBeReachedIsTold) {
  faulty_.SetFaults([](Call) { return Fault::kUnreachable; });
  EXPECT_FAILS(Cache::Open(faulty_, "k", plain_, RealClock()), kUnavailable, kIo);
  faulty_.SetFaults(
      [](Call call) { return call == Call::kWatch ? Fault::kUnreachable : Fault::kNone; });
  EXPECT_FAILS(Cache::Open(faulty_, "k", plain_, RealClock()), kUnavailable, kIo);
}

// What does not decode hides what it replaced: an old value would pass for the newest.
// Proves: K2
TEST_F(CachedMetaTest, WhatDoesNotDecodeIsLeftOutAloneAndCounted) {
  ASSERT_OK(meta_.Put("k1", "bad", {}));
  ASSERT_OK(meta_.Put("k2", "good", {}));
  const auto cache = Open();
  EXPECT_EQ(ContentsOf(*cache).size(), 1u);
  ASSERT_OK_AND_ASSIGN(const uint64_t last, meta_.Put("k2", "bad", {}));
  AwaitRevision(*cache, last);
  EXPECT_EQ(ContentsOf(*cache).size(), 0u);
  EXPECT_EQ(cache->unreadable(), 2u);
}

// Proves: S4
TEST_F(CachedMetaTest, OwnWritesAreSeenAtOnceAndNothingOlderReplacesThem) {
  ASSERT_OK(meta_.Put("k1", "a", {}));
  const auto cache = Open();
  faulty_.CutWatches();
  faulty_.SetFaults([](Call) { return Fault::kUnreachable; });
  // Of another process, then our own.
  ASSERT_OK(meta_.Put("k1", "older", {}));
  ASSERT_OK(meta_.Put("k2", "older", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t put, meta_.Put("k1", "own", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t deleted, meta_.Delete("k2", {}));
  cache->view().NotePut({.key = "k1", .value = "own", .revision = put});
  cache->view().NoteDelete("k2", deleted);
  EXPECT_EQ(ContentsOf(*cache), (Contents{{"k1", {"own", put}}}));
  // An answer that comes late.
  cache->view().NotePut({.key = "k1", .value = "older", .revision = put - 1});
  cache->view().NotePut({.key = "k2", .value = "older", .revision = deleted - 1});
  EXPECT_EQ(ContentsOf(*cache), (Contents{{"k1", {"own", put}}}));
  faulty_.Heal();
  AwaitRevision(*cache, deleted);
  EXPECT_EQ(ContentsOf(*cache), ContentsOf(meta_, "k"));
}

TEST_F(CachedMetaTest, StalenessIsVisibleWhileNothingIsHeard) {
  const auto cache = Open();
  faulty_.SetFaults([](Call) { return Fault::kUnreachable; });
  faulty_.CutWatches();
  absl::Duration before = cache->view().Staleness();
  for (int i = 0; i < 3; ++i) {
    absl::Duration now = cache->view().Staleness();
    while (now <= before) now = cache->view().Staleness();
    before = now;
  }
  faulty_.Heal();
  while (cache->view().Staleness() >= before) std::this_thread::yield();
}

// Puts and deletes while watches break, history is forgotten and the Meta is away: no view ever
// goes back, and all show in the end what is there. Proves: S4
TEST_F(CachedMetaTest, ViewsConvergeAfterStormsAndPartitions) {
  for (const uint64_t seed : Seeds(10)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    std::vector<std::unique_ptr<Cache>> caches;
    for (int i = 0; i < 3; ++i) caches.push_back(Open());
    std::vector<Contents> shown(caches.size());
    uint64_t last = 0;
    for (int step = 0; step < 400; ++step) {
      const std::string key = "k" + std::to_string(rng.Below(12));
      switch (rng.Below(16)) {
        case 0:
          faulty_.CutWatches();
          break;
        case 1:
          faulty_.SetFaults([](Call) { return Fault::kUnreachable; });
          break;
        case 2:
        case 3:
          faulty_.Heal();
          break;
        case 4:
          (void)meta_.Compact(meta_.published_revision(), {});  // or it was compacted already
          break;
        case 5:
        case 6:
        case 7:
          if (const auto deleted = meta_.Delete(key, {}); deleted.ok()) last = *deleted;
          break;
        default:
          ASSERT_OK_AND_ASSIGN(last, meta_.Put(key, std::to_string(step), {}));
          if (rng.OneIn(3)) {
            caches[rng.Below(caches.size())]->view().NotePut(
                {.key = key, .value = std::to_string(step), .revision = last});
          }
      }
      for (size_t i = 0; i < caches.size(); ++i) {
        const Contents now = ContentsOf(*caches[i]);
        for (const auto& [at, seen] : now) {
          const auto before = shown[i].find(at);
          ASSERT_TRUE(before == shown[i].end() || before->second.revision <= seen.revision) << at;
        }
        shown[i] = now;
      }
    }
    faulty_.Heal();
    for (const auto& cache : caches) {
      AwaitRevision(*cache, last);
      ASSERT_EQ(ContentsOf(*cache), ContentsOf(meta_, "k"));
    }
  }
}

}  // namespace
}  // namespace holdfast
