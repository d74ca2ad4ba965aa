// The index under the churn of a cycle (one key in, the oldest out), and a lookup, at several
// sizes.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "index/hash_index.h"
#include "journal/base/check.h"
#include "journal/base/seeded_rng.h"

namespace holdfast {
namespace {

std::string Key(uint64_t number) {
  return fmt::format("00000001-9e3779b97f4a7c15-{:014x}", number);
}

void Insert(HashIndex& index, uint64_t number) {
  const HashIndex::Found found = index.FindOrInsert(Key(number));
  index.Set(found.slot, {.payload_lsn = Lsn(number + 1), .state_lsn = Lsn(number + 1)});
}

void Churn(benchmark::State& state) {
  const auto keys = static_cast<uint64_t>(state.range(0));
  HashIndex index(1);
  for (uint64_t number = 0; number < keys; ++number) Insert(index, number);
  uint64_t next = keys;
  for (auto _ : state) {
    Insert(index, next);
    index.Erase(index.Find(Key(next - keys)));
    ++next;
  }
  CHECK(index.size() == keys);
  state.counters["bytes_per_key"] =
      static_cast<double>(index.memory_bytes()) / static_cast<double>(keys);
}
BENCHMARK(Churn)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

void Lookup(benchmark::State& state) {
  const auto keys = static_cast<uint64_t>(state.range(0));
  HashIndex index(1);
  for (uint64_t number = 0; number < keys; ++number) Insert(index, number);
  SeededRng rng(2);
  for (auto _ : state) {
    const HashIndex::Slot slot = index.Find(Key(rng.Below(keys)));
    CHECK(slot != HashIndex::kNoSlot);
    benchmark::DoNotOptimize(index.Get(slot));
  }
}
BENCHMARK(Lookup)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

}  // namespace
}  // namespace holdfast
