#include "tests/power/cut_everywhere.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast {

size_t SegmentCount(const SimDisk& disk) {
  const std::vector<std::string> names = disk.Names();
  return static_cast<size_t>(std::count_if(
      names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".seg"); }));
}

void Count(const CrashMoment& moment, Tally& tally) {
  ++tally.states;
  tally.seasoned += moment.expect.required >= 20 && SegmentCount(moment.disk) >= 2;
}

std::string Describe(const CrashMoment& moment) {
  return fmt::format("before operation {}, {} {}", moment.operation.number,
                     SimCallName(moment.operation.call), moment.operation.name);
}

std::string Describe(const std::vector<LooseWrite>& loose, const std::vector<bool>& kept) {
  std::string text;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) text += fmt::format(" {}@{}", loose[i].name, loose[i].place);
  }
  return fmt::format("{} loose, kept:{}", loose.size(), text.empty() ? " none" : text);
}

size_t RequiredAfterPowerCut(const CrashRun& run, const CrashExpectation& expect) {
  return run.options().durability == Durability::kSynced ? expect.required : expect.required_synced;
}

bool CutEverywhere(const CrashRun& run, size_t choices_max, Tally& tally, const CutVisitor& visit) {
  for (const CrashMoment& moment : run.moments()) {
    const std::vector<LooseWrite> loose = moment.disk.Loose();
    for (const std::vector<bool>& kept :
         CutChoices(loose.size(), choices_max, run.options().seed + moment.operation.number)) {
      Count(moment, tally);
      const std::string complaint = visit(moment, moment.disk.PowerCut(kept));
      EXPECT_EQ(complaint, "") << "seed " << run.options().seed << ", power cut "
                               << Describe(moment) << "; " << Describe(loose, kept);
      if (!complaint.empty()) return false;
    }
  }
  return true;
}

}  // namespace holdfast
