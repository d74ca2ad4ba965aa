// Metrics in the text format of Prometheus, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/). Pure.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

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
  void Family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = fmt::format("holdfast_dispatcher_{}", name);
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
  std::string Take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

}  // namespace

std::string MetricsText(const DispatcherStats& stats) {
  Text text;
  const auto one = [&](std::string_view name, std::string_view type, std::string_view help,
                       uint64_t value) {
    text.Family(name, type, help);
    text.Value(value);
  };
  one("in_flight", "gauge", "Pending deliveries.", stats.in_flight);
  one("waiting", "gauge", "Deliveries that are due and have no channel.", stats.waiting);
  one("pushed_total", "counter", "Pushes to clients.", stats.pushed);
  one("redelivered_total", "counter", "Pushes after the first.", stats.redelivered);
  one("acked_total", "counter", "Deliveries acknowledged, durably.", stats.acked);
  one("nacked_total", "counter", "Negative acknowledgements.", stats.nacked);
  one("withdrawn_total", "counter", "Deliveries withdrawn, durably.", stats.withdrawn);
  one("dead_lettered_total", "counter", "Deliveries given up, durably.", stats.dead_lettered);
  one("refused_acks_total", "counter", "Acknowledgements without effect.", stats.refused_acks);
  one("refused_deliveries_total", "counter", "Events that were refused.", stats.refused_deliveries);
  one("source_acks_total", "counter", "Events whose source was told their end.", stats.source_acks);
  one("withheld_total", "counter", "Pushes, source ACKs and dead letters of another's sources.",
      stats.withheld);
  one("moved_away_total", "counter", "Deliveries that ended because their source moved away.",
      stats.moved_away);
  one("redispatched_total", "counter", "Deliveries made again because their source moved here.",
      stats.redispatched);
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

}  // namespace holdfast
