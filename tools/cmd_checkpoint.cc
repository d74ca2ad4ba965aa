#include "journal/base/json.h"
#include "tools/command.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "checkpoint";

StatusOr<EngineStats> TakeCheckpoint(const MaintenanceCommand& options, LogSink& log,
                                     Console& console) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   OpenExisting(options.directory, options.writer, console, log));
  RETURN_IF_ERROR(engine->Checkpoint());
  const EngineStats stats = engine->stats();
  RETURN_IF_ERROR(engine->Close());
  return stats;
}

}  // namespace

int RunCheckpoint(const MaintenanceCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  const StatusOr<EngineStats> stats = TakeCheckpoint(options, log, console);
  if (!stats.ok()) return Fail(console, kCommand, stats.status());
  if (options.json) {
    std::string line;
    JsonWriter(line)
        .BeginObject()
        .Field("lsn", stats->checkpoint_lsn)
        .Field("bytes", stats->checkpoint_bytes)
        .Field("live_records", stats->live_records)
        .EndObject();
    console.out << line << "\n";
  } else {
    console.out << fmt::format("checkpoint of LSN {}: {} live records in {} bytes\n",
                               stats->checkpoint_lsn, stats->live_records, stats->checkpoint_bytes);
  }
  return kExitOk;
}

}  // namespace holdfast
