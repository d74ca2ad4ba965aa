#include "journal/base/json.h"
#include "tools/command.h"
#include "tools/damage_printer.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "verify";

class Printer final : public SurveyVisitor {
 public:
  Printer(Console& console, bool json)
      : console_(console), json_(json), progress_(console, "bytes", 0) {}

  void OnSegment(const SegmentSurvey& segment) override { file_bytes_ += segment.file_bytes; }
  void OnRecord(const SurveyedRecord&) override { progress_.Update(file_bytes_); }
  void OnDamage(const Damage& damage) override {
    console_.out << (json_ ? DamageJson(damage) : DamageText(damage)) << "\n";
  }

 private:
  Console& console_;
  const bool json_;
  uint64_t file_bytes_ = 0;
  Progress progress_;
};

std::string SummaryText(const SurveyReport& report) {
  std::string text;
  if (report.torn.has_value()) text += TornTailText(*report.torn) + "\n";
  text += fmt::format("{} live records up to LSN {}, {} dead ones, {} bytes read\n", report.records,
                      report.last_lsn, report.dead_records, report.bytes);
  if (report.verdict == SurveyVerdict::kClean) {
    text += "clean\n";
  } else if (report.verdict == SurveyVerdict::kTornTail) {
    text += "torn tail only: normal after a kill\n";
  } else {
    text += fmt::format("DAMAGE in {} places; `holdfast repair` says what can be done\n",
                        report.damages);
  }
  return text;
}

std::string SummaryJson(const SurveyReport& report) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject()
      .Field("verdict", VerdictName(report.verdict))
      .Field("damages", report.damages)
      .Field("records", report.records)
      .Field("dead_records", report.dead_records)
      .Field("bytes", report.bytes)
      .Field("last_lsn", report.last_lsn.value())
      .Field("torn_bytes", report.torn.has_value() ? report.torn->bytes : 0)
      .EndObject();
  return line + "\n";
}

}  // namespace

int RunVerify(const VerifyCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  StatusOr<std::unique_ptr<Storage>> storage = OpenFilesForReading(options.directory, log);
  if (!storage.ok()) return Fail(console, kCommand, storage.status());
  Printer printer(console, options.json);
  const StatusOr<SurveyReport> report = Survey(**storage, printer, {.dead_records = true});
  if (!report.ok()) return Fail(console, kCommand, report.status());
  console.out << (options.json ? SummaryJson(*report) : SummaryText(*report));
  return VerdictExitCode(report->verdict);
}

}  // namespace holdfast
