// Metrics in the text format of Prometheus, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/). Pure.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "holdfast/cluster.h"
#include "holdfast/dispatcher.h"
#include "journal/base/json.h"

namespace holdfast {
namespace {

// Names are arbitrary bytes: those that a label cannot show come as \xHH, its backslash escaped.
std::string Escaped(std::string_view label) {
  const bool readable = IsUtf8(label);
  std::string escaped;
  for (const char c : label) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      escaped += "\\n";
    } else if (byte < 0x20 || (byte >= 0x80 && !readable)) {
      escaped += fmt::format("\\\\x{:02x}", byte);
    } else {
      if (c == '\\' || c == '"') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

class Text {
 public:
  explicit Text(std::string_view prefix) : prefix_(prefix) {}
  void Family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = fmt::format("{}{}", prefix_, name);
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
  }
  template <typename Number>
  void Value(Number value) {
    text_ += fmt::format("{} {}\n", name_, value);
  }
  template <typename Number>
  void Of(const ClientStats& client, Number value) {
    text_ += fmt::format("{}{{client=\"{}\"}} {}\n", name_, Escaped(client.client), value);
  }
  // A family of one.
  template <typename Number>
  void One(std::string_view name, std::string_view type, std::string_view help, Number value) {
    Family(name, type, help);
    Value(value);
  }
  std::string Take() { return std::move(text_); }

 private:
  const std::string_view prefix_;
  std::string name_, text_;
};

}  // namespace

std::string MetricsText(const DispatcherStats& stats) {
  Text text("holdfast_dispatcher_");
  text.One("in_flight", "gauge", "Pending deliveries.", stats.in_flight);
  text.One("waiting", "gauge", "Deliveries that are due and have no channel.", stats.waiting);
  text.One("pushed_total", "counter", "Pushes to clients.", stats.pushed);
  text.One("redelivered_total", "counter", "Pushes after the first.", stats.redelivered);
  text.One("acked_total", "counter", "Deliveries acknowledged, durably.", stats.acked);
  text.One("nacked_total", "counter", "Negative acknowledgements.", stats.nacked);
  text.One("withdrawn_total", "counter", "Deliveries withdrawn, durably.", stats.withdrawn);
  text.One("dead_lettered_total", "counter", "Deliveries given up, durably.", stats.dead_lettered);
  text.One("refused_acks_total", "counter", "Acknowledgements without effect.", stats.refused_acks);
  text.One("refused_deliveries_total", "counter", "Events that were refused.",
           stats.refused_deliveries);
  text.One("source_acks_total", "counter", "Events whose source was told their end.",
           stats.source_acks);
  text.One("withheld_total", "counter",
           "Pushes, source ACKs and dead letters of another's sources.", stats.withheld);
  text.One("moved_away_total", "counter", "Deliveries that ended because their source moved away.",
           stats.moved_away);
  text.One("redispatched_total", "counter",
           "Deliveries made again because their source moved here.", stats.redispatched);
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help,
                        auto value) {
    text.Family(name, type, help);
    for (const ClientStats& client : stats.clients) text.Of(client, value(client));
  };
  each("client_channels", "gauge", "Open channels.", [](const auto& c) { return c.channels; });
  each("client_in_flight", "gauge", "Pending deliveries.",
       [](const auto& c) { return c.in_flight; });
  each("client_pushed_total", "counter", "Pushes.", [](const auto& c) { return c.pushed; });
  each("client_redelivered_total", "counter", "Pushes after the first.",
       [](const auto& c) { return c.redelivered; });
  each("client_acked_total", "counter", "Deliveries acknowledged, durably.",
       [](const auto& c) { return c.acked; });
  each("client_oldest_age_seconds", "gauge", "Age of the oldest pending delivery.",
       [](const auto& c) { return absl::ToDoubleSeconds(c.oldest_age); });
  text.Family("client_last_ack_seconds", "gauge", "Time since the last acknowledgement.");
  for (const ClientStats& client : stats.clients) {
    if (client.since_last_ack != absl::InfiniteDuration()) {
      text.Of(client, absl::ToDoubleSeconds(client.since_last_ack));
    }
  }
  return text.Take();
}

std::string MetricsText(const ClusterStats& stats) {
  Text text("holdfast_cluster_");
  text.One("instances", "gauge", "Instances that live.", stats.instances);
  text.One("partitions", "gauge", "Partitions that are shared.", stats.partitions);
  text.One("owned", "gauge", "Partitions that this instance serves.", stats.owned);
  text.One("taken_total", "counter", "Partitions taken.", stats.taken);
  text.One("continued_total", "counter", "Among them: nobody else had it since.", stats.continued);
  text.One("handed_over_total", "counter", "Partitions handed over.", stats.handed_over);
  text.One("lost_total", "counter", "Partitions lost with the lease.", stats.lost);
  text.One("failed_turns_total", "counter", "Looks or moves that failed.", stats.failed_turns);
  text.One("mirror_writes_total", "counter", "Transactions of the mirror.", stats.mirror_writes);
  text.One("mirror_failed_total", "counter", "Those that failed.", stats.mirror_failed);
  text.One("mirror_age_seconds", "gauge", "Of the partition that is furthest behind.",
           absl::ToDoubleSeconds(stats.mirror_age));
  text.One("lease_left_seconds", "gauge", "How long the lease is surely held.",
           absl::ToDoubleSeconds(stats.lease_left));
  if (stats.since_look != absl::InfiniteDuration()) {
    text.One("look_age_seconds", "gauge", "Since who is there was last known.",
             absl::ToDoubleSeconds(stats.since_look));
  }
  return text.Take();
}

}  // namespace holdfast
