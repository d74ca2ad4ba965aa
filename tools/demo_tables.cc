#include "tools/demo_tables.h"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {

std::string ClientsTable(const std::vector<DemoTally>& tallies) {
  std::string table = fmt::format("| {:<12} | {:>9} | {:>12} | {:>9} | {:>10} |\n", "client",
                                  "acked", "dead letters", "pushes", "duplicates");
  table += fmt::format("|{:-<14}|{:->10}:|{:->13}:|{:->10}:|{:->11}:|\n", "", "", "", "", "");
  for (size_t client = 0; client < tallies.size(); ++client) {
    const DemoTally& tally = tallies[client];
    table +=
        fmt::format("| {:<12} | {:>9} | {:>12} | {:>9} | {:>10} |\n", DemoWork::ClientName(client),
                    tally.acked, tally.dead_letters, tally.pushes, tally.duplicates);
  }
  return table;
}

std::string TimesTable(const DemoWork& work, const std::vector<TimedRun>& runs) {
  std::string table = fmt::format("| {:<44} | {:>8} | {:>10} | {:>12} | {:>9} |\n", "the same work",
                                  "seconds", "events/s", "deliveries/s", "of memory");
  table += fmt::format("|{:-<46}|{:->9}:|{:->11}:|{:->13}:|{:->10}:|\n", "", "", "", "", "");
  const double first = absl::ToDoubleSeconds(runs.front().duration);
  for (const TimedRun& run : runs) {
    const double seconds = std::max(absl::ToDoubleSeconds(run.duration), 1e-9);
    table += fmt::format("| {:<44} | {:>8.3f} | {:>10.0f} | {:>12.0f} | {:>9.3f} |\n", run.name,
                         seconds, static_cast<double>(work.event_count()) / seconds,
                         static_cast<double>(work.delivery_count()) / seconds, first / seconds);
  }
  return table;
}

}  // namespace holdfast
