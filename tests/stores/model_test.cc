// The stores against the obviously right ones, under random operations, with restarts in between.
#include "tests/sim/model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/history.h"
#include "tests/sim/workload.h"
#include "tests/stores/backends.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class ModelTest : public testing::TestWithParam<Backend> {
 protected:
  void Compare(StoreUnderTest& store, const History& history) {
    const auto shown = ReadModel(*store, history.names());
    ASSERT_OK(shown);
    EXPECT_EQ(history.After(history.begun()).DifferenceTo(*shown), "");
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, ModelTest, testing::ValuesIn(kBackends), BackendName);

// Everything that is written is confirmed before a restart, so all of it must be there after it,
// whatever the restart was. Proves: O1, O5, D1, D2, D4, G2
TEST_P(ModelTest, RandomOperationsAndRestarts) {
  for (const uint64_t seed : Seeds(12)) {
    SCOPED_TRACE(seed);
    SeededRng choices(seed);
    EngineOptions options;
    options.segment_bytes = uint64_t{64} << (10 + choices.Below(3));
    options.value_cache_entries = choices.Below(3) * 10;
    options.remembered_answers = Model::kAnswersMax;
    StoreUnderTest store(GetParam(), options);
    History history;
    Workload workload(seed, 1'500, history, store.clock());
    for (int i = 0; i < 400; ++i) {
      const std::vector<Change> changes = workload.Next(*store);
      const size_t index = history.Begin(changes);
      ASSERT_EQ(history.End(index, Perform(*store, changes)), "") << Describe(changes);
      ASSERT_EQ(workload.complaint(), "");
      store.clock().Advance(absl::Milliseconds(choices.Below(50)));
      if (choices.OneIn(60)) Compare(store, history);
      if (choices.OneIn(80)) {
        ASSERT_OK(store->Flush());
        history.Poll();
        history.CloseCommits();
        switch (choices.Below(3)) {
          case 0:
            store.Reopen();
            break;
          case 1:
            store.Kill(seed + static_cast<uint64_t>(i));
            break;
          default:
            store.CutPower();
        }
        Compare(store, history);
        if (HasFailure()) return;
      }
    }
    Compare(store, history);
  }
}

}  // namespace
}  // namespace holdfast
