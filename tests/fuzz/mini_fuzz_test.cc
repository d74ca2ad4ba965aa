// The fuzz targets in the normal suite: a fixed number of mutations from fixed seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/fuzz/targets.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

constexpr int kMutationsPerSeed = 200;

// A few changes of the kinds that find bounds: bits, lengths, cuts, copies.
std::string Mutate(std::string input, SeededRng& rng) {
  constexpr uint64_t kEdges[] = {0,
                                 1,
                                 0x7f,
                                 0x80,
                                 0xff,
                                 0x7fff,
                                 0xffff,
                                 0x7fffffff,
                                 0xffffffff,
                                 ~uint64_t{0},
                                 uint64_t{1} << 63};
  for (uint64_t change = 1 + rng.Below(4); change > 0; --change) {
    const size_t place = input.empty() ? 0 : rng.Below(input.size());
    switch (rng.Below(6)) {
      case 0:
        if (!input.empty()) input[place] = static_cast<char>(input[place] ^ (1 << rng.Below(8)));
        break;
      case 1:
        if (!input.empty()) input[place] = static_cast<char>(rng.Next());
        break;
      case 2: {
        const uint64_t edge = kEdges[rng.Below(std::size(kEdges))] + rng.Below(3) - 1;
        const size_t width = std::min<size_t>(size_t{1} << rng.Below(4), input.size() - place);
        std::memcpy(input.data() + place, &edge, width);
        break;
      }
      case 3:
        input.resize(place);
        break;
      case 4:
        input.insert(place, input.substr(0, rng.Below(64)));
        break;
      default:
        input.erase(place, rng.Below(16));
        break;
    }
  }
  return input;
}

class MiniFuzzTest : public testing::TestWithParam<size_t> {};

// Proves: G4
TEST_P(MiniFuzzTest, NoInputBreaksAPromise) {
  const FuzzTarget& target = FuzzTargets()[GetParam()];
  const std::vector<std::string> corpus = target.corpus();
  target.run({});
  for (const std::string& input : corpus) target.run(AsBytes(input));
  for (const uint64_t seed : Seeds(300)) {
    SCOPED_TRACE(seed);
    if (seed % 100 == 1) std::cout << "seeds from " << seed << std::endl;  // a crash ends them
    SeededRng rng(seed);
    for (int i = 0; i < kMutationsPerSeed; ++i) {
      target.run(AsBytes(Mutate(corpus[rng.Below(corpus.size())], rng)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MiniFuzzTest, testing::Range(size_t{0}, FuzzTargets().size()),
                         [](const auto& info) { return FuzzTargets()[info.param].name; });

// The same loop must see a target fail.
TEST(MiniFuzzDeathTest, TheCanaryIsFound) {
  EXPECT_DEATH(
      {
        SeededRng rng(1);
        for (int i = 0; i < 1'000'000; ++i) FuzzCanary(AsBytes(Mutate("HF?canary", rng)));
      },
      "CHECK");
}

}  // namespace
}  // namespace holdfast
