#include "journal/base/json.h"
#include "tools/acks_audit.h"
#include "tools/command.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "check";

void PrintText(const AcksAudit& audit, const RecoveryReport& recovery, const AcksRead& read,
               Console& console) {
  const Findings& findings = audit.findings();
  for (const std::string& finding : findings.shown()) console.out << finding << "\n";
  if (findings.total() > findings.shown().size()) {
    console.out << fmt::format("… and {} more\n", findings.total() - findings.shown().size());
  }
  console.out << fmt::format(
      "{} lines ({} cut by a kill): {} puts, {} acks and {} dead letters were durable; {} live, {} "
      "more "
      "whose outcome nobody was told\n",
      read.lines, read.cut, audit.puts(), audit.acks(), audit.dead(), audit.live(), audit.untold());
  console.out << fmt::format(
      "recovered {} records from {} segments after {} stop, {} torn bytes cut\n", recovery.records,
      recovery.segments, recovery.clean ? "a clean" : "an unclean", recovery.torn_bytes);
  console.out << (findings.total() == 0
                      ? "OK: nothing is missing, nothing is back, nothing is there twice\n"
                      : fmt::format("FAULT: {} findings\n", findings.total()));
}

void PrintJson(const AcksAudit& audit, const RecoveryReport& recovery, const AcksRead& read,
               Console& console) {
  for (const std::string& finding : audit.findings().shown()) {
    std::string line;
    JsonWriter(line).BeginObject().Field("finding", finding).EndObject();
    console.out << line << "\n";
  }
  std::string line;
  JsonWriter(line)
      .BeginObject()
      .Field("findings", audit.findings().total())
      .Field("lines", read.lines)
      .Field("cut_lines", read.cut)
      .Field("puts", audit.puts())
      .Field("acks", audit.acks())
      .Field("dead", audit.dead())
      .Field("live", audit.live())
      .Field("untold", audit.untold())
      .Field("records", recovery.records)
      .Field("clean", recovery.clean)
      .Field("torn_bytes", recovery.torn_bytes)
      .EndObject();
  console.out << line << "\n";
}

}  // namespace

int RunCheck(const CheckCommand& options, Console& console) {
  AcksAudit audit;
  const StatusOr<AcksRead> read =
      ReadAcksFile(options.acks, [&audit](const AckLine& line) { audit.Take(line); });
  if (!read.ok()) return Fail(console, kCommand, read.status());

  ConsoleLog log(console, std::string(kCommand));
  StatusOr<std::unique_ptr<Engine>> engine =
      OpenExisting(options.directory, options.writer, console, log);
  if (!engine.ok()) return Fail(console, kCommand, engine.status());
  if (const Status compared = audit.Compare(**engine); !compared.ok()) {
    return Fail(console, kCommand, compared);
  }
  (options.json ? PrintJson : PrintText)(audit, (*engine)->recovery(), *read, console);
  if (const Status closed = (*engine)->Close(); !closed.ok())
    return Fail(console, kCommand, closed);
  return audit.findings().total() == 0 ? kExitOk : kExitFault;
}

}  // namespace holdfast
