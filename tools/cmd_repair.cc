#include "journal/base/json.h"
#include "journal/base/seeded_rng.h"
#include "recovery/repair.h"
#include "tools/command.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "repair";

std::string PlanText(const RepairPlan& plan, bool applied) {
  if (plan.empty()) return "nothing to repair\n";
  std::string text = applied ? "done:\n" : "would do:\n";
  for (const std::string& step : plan.steps) text += fmt::format("  {}\n", step);
  for (const LsnRange& range : plan.lost) {
    text += fmt::format("lost: LSN {} to {}\n", range.first, range.last);
  }
  for (const std::string& consequence : plan.consequences) {
    text += fmt::format("note: {}\n", consequence);
  }
  if (!applied) text += "nothing was changed; --apply carries it out\n";
  return text;
}

std::string PlanJson(const RepairPlan& plan, bool applied) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject().Field("applied", applied).Key("steps").BeginArray();
  for (const std::string& step : plan.steps) json.Value(step);
  json.EndArray().Key("lost").BeginArray();
  for (const LsnRange& range : plan.lost) {
    json.BeginObject()
        .Field("first_lsn", range.first.value())
        .Field("last_lsn", range.last.value())
        .EndObject();
  }
  json.EndArray().Key("consequences").BeginArray();
  for (const std::string& consequence : plan.consequences) json.Value(consequence);
  json.EndArray().EndObject();
  return line + "\n";
}

StatusOr<RepairPlan> Plan(const RepairCommand& options, Console& console, LogSink& log) {
  if (!options.apply) {
    ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage, OpenFilesForReading(options.directory, log));
    return PlanRepair(*storage);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage,
                   OpenFilesForWriting(options.directory, IoBackend::kPosix, log));
  SeededRng rng(EntropySeed());
  return ApplyRepair(*storage, console.clock, rng, {.lock_wait = options.lock_wait, .log = &log});
}

}  // namespace

int RunRepair(const RepairCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  const StatusOr<RepairPlan> plan = Plan(options, console, log);
  if (!plan.ok()) return Fail(console, kCommand, plan.status());
  console.out << (options.json ? PlanJson : PlanText)(*plan, options.apply);
  return kExitOk;
}

}  // namespace holdfast
