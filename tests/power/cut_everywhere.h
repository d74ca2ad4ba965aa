// The loop over moments and crash choices that the tests of this folder share.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/power/crash_run.h"
#include "tests/power/recovery_check.h"

namespace holdfast {

struct Tally {
  size_t states = 0;
  size_t seasoned = 0;  // after at least 20 confirmed calls, over at least two segments
};

size_t SegmentCount(const SimDisk& disk);
// Counts the state of `moment` that is about to be tried.
void Count(const CrashMoment& moment, Tally& tally);
// For messages: where the crash was and what it kept.
std::string Describe(const CrashMoment& moment);
std::string Describe(const std::vector<LooseWrite>& loose, const std::vector<bool>& kept);
// What must be there after a power cut at the level in force.
size_t RequiredAfterPowerCut(const CrashRun& run, const CrashExpectation& expect);

using CutVisitor = std::function<std::string(const CrashMoment& moment, const SimDisk& after)>;
// Cuts the power at every moment of `run`, `choices_max` times each, and gives each disk to
// `visit`, which answers with a complaint. EXPECT-fails at the first one. False: there was one.
bool CutEverywhere(const CrashRun& run, size_t choices_max, Tally& tally, const CutVisitor& visit);

}  // namespace holdfast
