#include "bench/recovery_workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/cycle_maker.h"
#include "journal/base/checksum.h"
#include "journal/base/seeded_rng.h"

namespace holdfast::bench {
namespace {

// Of two rounds of a mixer: the choice of the cycle `number`, the same wherever it is made.
uint64_t ChoiceOf(uint64_t number) { return SeededRng(~number).Next(); }

}  // namespace

void LiveDigest::Add(std::string_view id, std::string_view event) {
  ++count;
  sum += Checksum(AsBytes(event), Checksum(AsBytes(id), 0));
}

void FillJsonEvent(uint64_t number, uint64_t bytes, std::string& event) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static constexpr size_t kTextsOfWord = 10;  // of 6 bits each
  event.clear();
  fmt::format_to(std::back_inserter(event),
                 R"({{"specversion":"1.0","type":"orders.created","id":"{:016x}","data":")",
                 number);
  SeededRng rng(number);
  while (event.size() + 2 < bytes) {
    uint64_t word = rng.Next();
    const size_t count = std::min<size_t>(kTextsOfWord, bytes - 2 - event.size());
    for (size_t index = 0; index < count; ++index, word >>= 6) event += kDigits[word & 63];
  }
  event += "\"}";
  event.resize(bytes);
}

RecoveryWorkload::RecoveryWorkload(const RecoveryPlan& plan) : plan_(plan) {
  offset_ = {.topic = "orders.created", .client = "billing-0", .partition = 3};
  put_.topic = offset_.topic;
  put_.client = offset_.client;
  put_.partition = offset_.partition;
  put_.epoch = 1;
  put_.due = absl::Seconds(30);
  put_.created = absl::FromUnixSeconds(1'790'000'000);
}

Cycle RecoveryWorkload::Next() {
  put_.id = MakeDeliveryId(0, number_);
  put_.offset = number_;
  FillJsonEvent(number_, plan_.event_bytes, put_.event);
  const bool removes = number_ >= plan_.live;
  remove_id_.clear();
  if (plan_.order == RemovalOrder::kFifo) {
    if (removes) remove_id_ = MakeDeliveryId(0, number_ - plan_.live);
  } else if (!removes) {
    live_.push_back(number_);
  } else {
    uint64_t& chosen = live_[ChoiceOf(number_) % plan_.live];
    remove_id_ = MakeDeliveryId(0, chosen);
    chosen = number_;
  }
  ++number_;
  const uint64_t next = removes ? number_ - plan_.live : 0;
  return {.put = put_, .remove_id = remove_id_, .offset = offset_, .next = next};
}

LiveDigest RecoveryWorkload::Digest() const {
  LiveDigest digest;
  std::string event;
  const auto add = [&](uint64_t number) {
    FillJsonEvent(number, plan_.event_bytes, event);
    digest.Add(MakeDeliveryId(0, number), event);
  };
  if (plan_.order == RemovalOrder::kFifo) {
    for (uint64_t n = number_ - std::min(number_, plan_.live); n < number_; ++n) add(n);
  } else {
    for (const uint64_t number : live_) add(number);
  }
  return digest;
}

}  // namespace holdfast::bench
