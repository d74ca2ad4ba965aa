#include "bench/stores_bench.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/device.h"
#include "bench/engine_subject.h"
#include "bench/floor.h"
#include "bench/maps.h"
#include "bench/progress.h"
#include "journal/base/check.h"

namespace holdfast::bench {
namespace {

constexpr absl::Duration kBatchInterval = absl::Milliseconds(100);

StoresCase MakeCase(std::string callers, bool batched, const WorkloadPlan& plan) {
  StoresCase made{.callers = std::move(callers),
                  .batched = batched,
                  .plan = plan,
                  .subjects = {},
                  .device_p50_micros = {}};
  made.subjects = {
      {SubjectKind::kJournal, {}}, {SubjectKind::kFloor, {}}, {SubjectKind::kMemory, {}}};
  if (batched) made.subjects.push_back({SubjectKind::kMaps, {}});
  return made;
}

std::vector<StoresCase> MakeCases(const StoresOptions& options) {
  const double seconds = options.seconds;
  std::vector<StoresCase> cases;
  for (int threads : {1, 2, 4}) {
    cases.push_back(MakeCase(std::to_string(threads), true,
                             {.waiting = Waiting::kAtTheEnd,
                              .threads = threads,
                              .seconds = seconds,
                              .warm_up_seconds = seconds}));
  }
  for (int threads : {1, 2, 4, 16, 64}) {
    cases.push_back(MakeCase(std::to_string(threads), false,
                             {.waiting = Waiting::kEach, .threads = threads, .seconds = seconds}));
  }
  cases.push_back(
      MakeCase("4 x 64 in flight", false,
               {.waiting = Waiting::kWindow, .threads = 4, .window = 64, .seconds = seconds}));
  std::erase_if(cases, [&options](const StoresCase& made) {
    return made.batched ? !options.batched : !options.synced;
  });
  return cases;
}

StatusOr<std::unique_ptr<Subject>> OpenSubject(SubjectKind kind, bool batched,
                                               const StoresOptions& options) {
  const absl::Duration interval = batched ? kBatchInterval : absl::ZeroDuration();
  switch (kind) {
    case SubjectKind::kJournal:
      return OpenEngineSubject({.directory = options.directory + "/stores",
                                .io = options.io,
                                .commit_interval = interval});
    case SubjectKind::kMemory:
      return OpenEngineSubject({.backend = Backend::kMemory});
    case SubjectKind::kMaps:
      return std::make_unique<MapsSubject>();
    case SubjectKind::kFloor:
      break;
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<Floor> floor,
      Floor::Open({.ring_file = options.directory + "/floor.ring", .interval = interval}));
  return std::unique_ptr<Subject>(std::move(floor));
}

}  // namespace

const char* NameOf(SubjectKind kind) {
  switch (kind) {
    case SubjectKind::kJournal:
      return "journal stores";
    case SubjectKind::kFloor:
      return "floor";
    case SubjectKind::kMemory:
      return "in-memory stores";
    case SubjectKind::kMaps:
      return "bare maps";
  }
  return "";
}

const Samples& StoresCase::of(SubjectKind kind) const {
  const auto found = std::find_if(subjects.begin(), subjects.end(),
                                  [kind](const auto& subject) { return subject.first == kind; });
  CHECK(found != subjects.end());
  return found->second;
}

StatusOr<StoresReport> RunStoresBench(const StoresOptions& options) {
  StoresReport report;
  report.cases = MakeCases(options);
  int steps = 0;
  for (const StoresCase& measured : report.cases) {
    steps += options.rounds * static_cast<int>(measured.subjects.size() + 1);
  }
  Progress progress(steps);
  for (int round = 0; round < options.rounds; ++round) {
    for (StoresCase& measured : report.cases) {
      const std::string title =
          std::string(measured.batched ? "batched, " : "synced, ") + measured.callers + ": ";
      progress.Step(title + "the device");
      ASSIGN_OR_RETURN(const DeviceResult device,
                       MeasureDevice(options.directory + "/device.blocks", options.seconds / 4));
      measured.device_p50_micros.push_back(device.p50_micros());
      for (auto& [kind, samples] : measured.subjects) {
        progress.Step(title + NameOf(kind));
        ASSIGN_OR_RETURN(std::unique_ptr<Subject> subject,
                         OpenSubject(kind, measured.batched, options));
        ASSIGN_OR_RETURN(const WorkloadResult result, RunWorkload(*subject, measured.plan));
        if (kind == SubjectKind::kJournal) report.io = subject->io();
        RETURN_IF_ERROR(subject->Close());
        samples.Add(Summarize(result));
      }
    }
  }
  return report;
}

}  // namespace holdfast::bench
