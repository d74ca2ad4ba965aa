// What the decisions of group commit cost: one group with a number of batches, from the first
// append to its completion. Per group.
#include <benchmark/benchmark.h>

#include "journal/base/check.h"
#include "journal/commit_queue.h"

namespace holdfast {
namespace {

using Kind = CommitQueue::Step::Kind;

// Does what Next() says, as a disk that completes at once; returns whether it said anything.
bool DoNext(CommitQueue& queue, const CommitDemand& demand, uint64_t& place) {
  const CommitQueue::Step step = queue.Next(absl::ZeroDuration(), demand);
  switch (step.kind) {
    case Kind::kClose:
      place += 4096;
      queue.OnClose(SegmentId(1), place);
      return true;
    case Kind::kWrite:
    case Kind::kFlush:
      queue.OnCompleted(queue.OnSubmitted(step));
      return true;
    case Kind::kNone:
    case Kind::kHold:
      return false;
  }
  return false;
}

void OneGroup(benchmark::State& state) {
  const CommitDemand demand{.blocked = 1, .callbacks = false};
  CommitQueue queue({}, {.end_segment = SegmentId(1), .end_offset = 8192});
  Lsn last;
  uint64_t place = 8192;
  for (auto _ : state) {
    for (int64_t batch = 0; batch < state.range(0); ++batch) {
      last = last + 3;
      queue.OnAppend(last, 64 + 512 * (static_cast<uint64_t>(batch) + 1));
      benchmark::DoNotOptimize(queue.Ripe(demand));
    }
    while (DoNext(queue, demand, place)) {
    }
    CHECK(queue.positions().synced == last);
  }
}
BENCHMARK(OneGroup)->Arg(1)->Arg(64)->Arg(500);

}  // namespace
}  // namespace holdfast
