#include "tools/damage_printer.h"

#include <fmt/format.h>

#include "journal/base/json.h"
#include "journal/format/segment_header.h"
#include "tools/command.h"

namespace holdfast {

std::string DamageText(const Damage& damage) {
  std::string text = fmt::format("damage: {} from byte {}", damage.file, damage.offset);
  if (damage.bytes > 0) text += fmt::format(" to byte {}", damage.offset + damage.bytes);
  if (damage.first_lsn)
    text += fmt::format(", LSN {} to {} lost", damage.first_lsn, damage.last_lsn);
  text += fmt::format(": {}", damage.reason);
  if (!damage.refuses_open) text += " (the store opens all the same)";
  return text;
}

std::string DamageJson(const Damage& damage) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject()
      .Field("damage", damage.reason)
      .Field("file", damage.file)
      .Field("offset", damage.offset)
      .Field("bytes", damage.bytes);
  if (damage.first_lsn) {
    json.Field("first_lsn", damage.first_lsn.value()).Field("last_lsn", damage.last_lsn.value());
  }
  json.Field("refuses_open", damage.refuses_open).EndObject();
  return line;
}

std::string TornTailText(const TornTail& torn) {
  return fmt::format(
      "torn tail: {} from byte {}, {} bytes that were never confirmed; the next open cuts them, "
      "LSN {} is "
      "not there",
      SegmentFileName(torn.segment), torn.offset, torn.bytes, torn.next_lsn);
}

const char* VerdictName(SurveyVerdict verdict) {
  switch (verdict) {
    case SurveyVerdict::kClean:
      return "clean";
    case SurveyVerdict::kTornTail:
      return "torn-tail";
    case SurveyVerdict::kDamage:
      break;
  }
  return "damage";
}

int VerdictExitCode(SurveyVerdict verdict) {
  switch (verdict) {
    case SurveyVerdict::kClean:
      return kExitOk;
    case SurveyVerdict::kTornTail:
      return kExitTornTail;
    case SurveyVerdict::kDamage:
      break;
  }
  return kExitFault;
}

}  // namespace holdfast
