#include "tools/demo_report.h"

#include <array>
#include <charconv>

#include "journal/base/checksum.h"

namespace holdfast {
namespace {

struct NamedStep {
  DemoStep step;
  std::string_view name;
  bool has_id = true;
};
constexpr std::array kSteps = {
    NamedStep{DemoStep::kPut, "put"},
    NamedStep{DemoStep::kAgain, "again"},
    NamedStep{DemoStep::kOver, "over", false},
    NamedStep{DemoStep::kPush, "push"},
    NamedStep{DemoStep::kTry, "try"},
    NamedStep{DemoStep::kAck, "ack"},
    NamedStep{DemoStep::kRefuse, "refuse"},
    NamedStep{DemoStep::kTold, "told", false},
    NamedStep{DemoStep::kStuck, "stuck", false},
};

std::string_view NameOf(DemoStep step) {
  for (const NamedStep& named : kSteps) {
    if (named.step == step) return named.name;
  }
  return "";
}

// Takes " NUMBER" off the front of `line`.
template <typename Number>
bool TakeNumber(std::string_view& line, Number& number) {
  if (!line.starts_with(' ')) return false;
  line.remove_prefix(1);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc()) return false;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  return true;
}

}  // namespace

uint64_t DemoChecksum(std::string_view event) { return Checksum(AsBytes(event), 0); }

std::string FormatDemoReport(const DemoReport& report) {
  return fmt::format("{} {} {} {} {} {}\n", NameOf(report.step), report.client, report.offset,
                     report.attempt, report.checksum, report.id);
}

StatusOr<DemoReport> ParseDemoReport(std::string_view line) {
  for (const auto& [step, name, has_id] : kSteps) {
    if (!line.starts_with(name)) continue;
    std::string_view rest = line.substr(name.size());
    DemoReport report{.step = step};
    if (!TakeNumber(rest, report.client) || !TakeNumber(rest, report.offset) ||
        !TakeNumber(rest, report.attempt) || !TakeNumber(rest, report.checksum) ||
        !rest.starts_with(' ') || (rest.size() > 1) != has_id) {
      break;
    }
    report.id = std::string(rest.substr(1));
    return report;
  }
  return Invalid("not a report of the demo's child");
}

}  // namespace holdfast
