#include <algorithm>
#include <limits>

#include "journal/base/json.h"
#include "journal/format/records_text.h"
#include "tools/command.h"
#include "tools/damage_printer.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "dump";
// A look at a store that is being written costs time in proportion to its size; this share is spent
// on it.
constexpr int64_t kFollowPauseFactor = 5;
constexpr absl::Duration kFollowPauseMin = absl::Milliseconds(100);

bool IsKeyField(std::string_view name) {
  return name == "id" || name == "new_id" || name == "topic" || name == "client";
}

bool Equals(std::string_view field, std::string_view key) { return field == key; }
template <typename Field>
bool Equals(const Field&, std::string_view) {
  return false;
}

// Whether one of the names that a record is found by is `key`.
bool HasKey(const RawRecord& raw, std::string_view key) {
  const StatusOr<AnyRecord> record = DecodeRecord(raw);
  if (!record.ok()) return false;
  return std::visit(
      [key](const auto& fields) {
        using Record = std::decay_t<decltype(fields)>;
        return std::apply(
            [&](auto... members) {
              size_t index = 0;
              bool found = false;
              ((found |= IsKeyField(Record::kFieldNames[index++]) && Equals(fields.*members, key)),
               ...);
              return found;
            },
            Record::Fields());
      },
      *record);
}

class Printer final : public SurveyVisitor {
 public:
  Printer(const DumpCommand& options, Console& console)
      : options_(options),
        console_(console),
        from_(options.from.value_or(0)),
        to_(options.to.value_or(std::numeric_limits<uint64_t>::max())) {}

  void OnRecord(const SurveyedRecord& record) override {
    const uint64_t lsn = record.lsn.value();
    if (lsn < from_ || lsn > to_) return;
    newest_ = std::max(newest_, lsn);
    if (!options_.type.empty() && RecordTypeName(record.raw.header.type) != options_.type) return;
    if (options_.key.has_value() && !HasKey(record.raw, *options_.key)) return;
    console_.out << (options_.json ? Json(record) : Text(record)) << "\n";
  }
  // Told once, however often the store is looked at.
  void OnDamage(const Damage& damage) override {
    if (first_look_) Complain(console_, kCommand, DamageText(damage));
  }
  // The next look tells only what is newer.
  void EndLook() {
    first_look_ = false;
    from_ = std::max(from_, newest_ + 1);
  }

 private:
  std::string Text(const SurveyedRecord& record) const {
    return fmt::format("{} {}:{}/{} boot={} {}", record.lsn, record.ref.segment, record.ref.offset,
                       record.index, record.epoch,
                       RecordText(record.raw, {.event = options_.payload}));
  }
  std::string Json(const SurveyedRecord& record) const {
    std::string line;
    JsonWriter json(line);
    json.BeginObject().Field("lsn", record.lsn.value()).Key("at").BeginObject();
    json.Field("segment", record.ref.segment)
        .Field("offset", record.ref.offset)
        .Field("index", record.index)
        .EndObject();
    json.Field("boot", record.epoch);
    RecordJson(record.raw, json, {.event = options_.payload});
    json.EndObject();
    return line;
  }

  const DumpCommand& options_;
  Console& console_;
  uint64_t from_;
  const uint64_t to_;
  uint64_t newest_ = 0;
  bool first_look_ = true;
};

}  // namespace

int RunDump(const DumpCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  StatusOr<std::unique_ptr<Storage>> storage = OpenFilesForReading(options.directory, log);
  if (!storage.ok()) return Fail(console, kCommand, storage.status());
  Printer printer(options, console);
  while (true) {
    const absl::Duration start = console.clock.Now();
    const StatusOr<SurveyReport> report = Survey(**storage, printer, {});
    if (!report.ok()) return Fail(console, kCommand, report.status());
    if (!options.follow) {
      if (report->torn.has_value()) Complain(console, kCommand, TornTailText(*report->torn));
      return VerdictExitCode(report->verdict);
    }
    if (report->verdict == SurveyVerdict::kDamage) return kExitFault;
    printer.EndLook();
    if (console.stop_requested() || !console.out.flush()) return kExitOk;
    Pause(std::max(kFollowPauseMin, kFollowPauseFactor * (console.clock.Now() - start)));
  }
}

}  // namespace holdfast
