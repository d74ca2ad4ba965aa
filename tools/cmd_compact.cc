#include <algorithm>

#include "journal/base/json.h"
#include "tools/command.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "compact";

// What a compaction would do, as far as it can be known without doing it.
StatusOr<CompactionReport> Foresee(const MaintenanceCommand& options, LogSink& log,
                                   Console& console) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   OpenForReading(options.directory, console, log));
  const EngineStats stats = engine->stats();
  CompactionReport report;
  report.disk_bytes_before = stats.disk_bytes;
  report.restated_records = stats.live_records;
  report.restated_bytes = stats.live_bytes;
  report.disk_bytes_after = std::min(stats.disk_bytes, stats.live_bytes);
  return report;
}

StatusOr<CompactionReport> Compact(const MaintenanceCommand& options, LogSink& log,
                                   Console& console) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   OpenExisting(options.directory, options.writer, console, log));
  ASSIGN_OR_RETURN(CompactionReport report, engine->Compact());
  RETURN_IF_ERROR(engine->Close());
  return report;
}

std::string ReportText(const CompactionReport& report, bool dry_run) {
  if (dry_run) {
    return fmt::format(
        "would state {} live records again, at most {} bytes\nsegment files: {} bytes now, about "
        "{} bytes and two to five segments made ahead afterwards\nnothing was changed\n",
        report.restated_records, report.restated_bytes, report.disk_bytes_before,
        report.disk_bytes_after);
  }
  std::string text = fmt::format(
      "{} segments compacted: {} live records stated again, {} bytes\n{} segments retired; segment "
      "files: {} bytes before, {} after\n",
      report.compacted_segments, report.restated_records, report.restated_bytes,
      report.retired_segments, report.disk_bytes_before, report.disk_bytes_after);
  if (report.waiting_segments > 0) {
    text += fmt::format("{} more go once the next checkpoint is behind them\n",
                        report.waiting_segments);
  }
  return text;
}

std::string ReportJson(const CompactionReport& report, bool dry_run) {
  std::string line;
  JsonWriter(line)
      .BeginObject()
      .Field("dry_run", dry_run)
      .Field("compacted_segments", report.compacted_segments)
      .Field("restated_records", report.restated_records)
      .Field("restated_bytes", report.restated_bytes)
      .Field("retired_segments", report.retired_segments)
      .Field("waiting_segments", report.waiting_segments)
      .Field("disk_bytes_before", report.disk_bytes_before)
      .Field("disk_bytes_after", report.disk_bytes_after)
      .EndObject();
  return line + "\n";
}

}  // namespace

int RunCompact(const MaintenanceCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  const StatusOr<CompactionReport> report =
      (options.dry_run ? Foresee : Compact)(options, log, console);
  if (!report.ok()) return Fail(console, kCommand, report.status());
  console.out << (options.json ? ReportJson : ReportText)(*report, options.dry_run);
  return kExitOk;
}

}  // namespace holdfast
