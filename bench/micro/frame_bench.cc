// Sealing a group of batches, and walking it with every check. Per group; the batches are of 512 B.
#include <benchmark/benchmark.h>

#include <vector>

#include "journal/format/frame.h"

namespace holdfast {
namespace {

constexpr size_t kBatchBytes = 512;
constexpr Life kLife{.salt = 1, .segment = 2, .stamp = 3};
constexpr uint64_t kOffset = 8192;

std::vector<std::byte> UnsealedGroup(size_t batches) {
  std::vector<std::byte> group(AlignUp(kGroupHeaderBytes + batches * kBatchBytes, kBlockBytes));
  for (size_t batch = 0; batch < batches; ++batch) {
    const size_t at = kGroupHeaderBytes + batch * kBatchBytes;
    std::fill_n(group.begin() + static_cast<std::ptrdiff_t>(at), kBatchBytes, std::byte{7});
  }
  return group;
}

GroupHeader HeaderOf(size_t batches, size_t bytes) {
  return {.length = static_cast<uint32_t>(bytes),
          .batches = static_cast<uint16_t>(batches),
          .records = static_cast<uint32_t>(batches),
          .first_lsn = Lsn(1)};
}

void Seal(std::vector<std::byte>& group, size_t batches) {
  for (size_t batch = 0; batch < batches; ++batch) {
    const size_t at = kGroupHeaderBytes + batch * kBatchBytes;
    SealBatch(ByteSpan(group).subspan(at, kBatchBytes),
              {.length = kBatchBytes, .first_lsn = Lsn(batch + 1), .records = 1, .epoch = 1}, kLife,
              kOffset + at);
  }
  SealGroup(group, HeaderOf(batches, group.size()), kLife, kOffset);
}

void SealWholeGroup(benchmark::State& state) {
  const auto batches = static_cast<size_t>(state.range(0));
  std::vector<std::byte> group = UnsealedGroup(batches);
  for (auto _ : state) {
    Seal(group, batches);
    benchmark::DoNotOptimize(group.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(group.size()) * state.iterations());
}
BENCHMARK(SealWholeGroup)->Arg(1)->Arg(7)->Arg(500);

void WalkWholeGroup(benchmark::State& state) {
  const auto batches = static_cast<size_t>(state.range(0));
  std::vector<std::byte> group = UnsealedGroup(batches);
  Seal(group, batches);
  for (auto _ : state) {
    const GroupView view = ReadGroupHeader(group, kLife, kOffset, group.size());
    CHECK(view.shape == Shape::kValid);
    BatchCursor cursor(group, view.header, kLife, kOffset);
    size_t seen = 0;
    while (cursor.Next() == BatchCursor::Step::kBatch) ++seen;
    CHECK(seen == batches);
  }
  state.SetBytesProcessed(static_cast<int64_t>(group.size()) * state.iterations());
}
BENCHMARK(WalkWholeGroup)->Arg(1)->Arg(7)->Arg(500);

}  // namespace
}  // namespace holdfast
