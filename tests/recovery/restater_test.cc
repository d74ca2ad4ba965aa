#include "recovery/restater.h"

#include <gtest/gtest.h>

#include "recovery/store_layout.h"
#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

class RestaterTest : public testing::Test {
 protected:
  void Add(Restater& restater, uint64_t first, uint64_t last) {
    std::string records;
    for (uint64_t lsn = first; lsn <= last; ++lsn) {
      EncodeRecord(OffsetAdvance{.topic = "t", .client = "c", .next = lsn}, records);
    }
    ASSERT_OK(restater.Add(
        {.first_lsn = Lsn(first), .last_lsn = Lsn(last), .epoch = 1, .records = AsBytes(records)}));
  }
  Restater Make(SimStorage& storage) {
    const StatusOr<StoreLayout> layout = ReadLayout(storage);
    CHECK_OK(layout.status());
    return Restater(storage, clock_,
                    {.identity = {.store_id = layout->store_id,
                                  .salt = layout->salt,
                                  .epoch = layout->epoch + 1},
                     .first = layout->segments.back().id + 1,
                     .segment_bytes = kSegmentBytesMin});
  }
  SimClock clock_;
};

TEST_F(RestaterTest, BehindAGapANewSegmentBegins) {
  SimStorage storage(TwoSegments(false));
  Restater restater = Make(storage);
  Add(restater, 1, 3);
  Add(restater, 4, 4);
  Add(restater, 7, 8);
  Add(restater, 900, 901);
  ASSERT_OK_AND_ASSIGN(const Restater::Chain chain, restater.Publish(Lsn(10'000)));
  EXPECT_EQ(chain.oldest, SegmentId(3));
  EXPECT_EQ(chain.newest, SegmentId(5));
  EXPECT_EQ(chain.last, Lsn(901));
  Boot boot{storage.disk().Kill(1, false), 4};
  ASSERT_OK(boot.status);
  EXPECT_EQ(boot.machine.lsns(), (std::vector<uint64_t>{1, 2, 3, 4, 7, 8, 900, 901}));
  EXPECT_GT(boot.store().start().next, Lsn(10'000));
}

TEST_F(RestaterTest, UntilItIsPublishedTheOldChainHolds) {
  SimStorage storage(TwoSegments(false));
  Restater restater = Make(storage);
  Add(restater, 1, 3);
  Add(restater, 7, 8);
  Add(restater, 20, 20);  // two segments are complete and named by now
  Boot boot{storage.disk().Kill(1, false), 4};
  ASSERT_OK(boot.status);
  EXPECT_EQ(boot.machine.lsns(), UpTo(12));
}

TEST_F(RestaterTest, NothingIsAChainToo) {
  SimStorage storage(TwoSegments(false));
  Restater restater = Make(storage);
  ASSERT_OK(restater.Publish(Lsn(10'000)));
  Boot boot{storage.disk().Kill(1, false), 4};
  ASSERT_OK(boot.status);
  EXPECT_TRUE(boot.machine.places().empty());
}

TEST_F(RestaterTest, AFullSegmentIsFollowedByTheNext) {
  SimStorage storage(TwoSegments(false));
  Restater restater = Make(storage);
  for (uint64_t lsn = 1; lsn <= 9000; lsn += 100) Add(restater, lsn, lsn + 99);
  ASSERT_OK_AND_ASSIGN(const Restater::Chain chain, restater.Publish(Lsn(10'000)));
  EXPECT_GT(chain.newest, chain.oldest);
  Boot boot{storage.disk().Kill(1, false), 4};
  ASSERT_OK(boot.status);
  EXPECT_EQ(boot.machine.lsns(), UpTo(9000));
}

}  // namespace
}  // namespace holdfast
