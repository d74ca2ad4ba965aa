#include "bench/cycle_maker.h"

#include <algorithm>

namespace holdfast::bench {
namespace {

constexpr size_t kIdBytes = 40;
constexpr size_t kNumberDigits = 16;

void PutHex(uint64_t value, char* at, size_t digits) {
  for (size_t index = digits; index-- > 0; value >>= 4) at[index] = "0123456789abcdef"[value & 15];
}

// As long as the ids of the engine, and as quick to make: <boot epoch>-<salt>-<sequence>.
void WriteId(int thread, uint64_t sequence, std::string& id) {
  id.resize(kIdBytes, '-');
  PutHex(1, id.data(), 8);
  PutHex(0x9e3779b97f4a7c15 + static_cast<uint64_t>(thread), id.data() + 9, 16);
  PutHex(sequence, id.data() + 26, 14);
}

}  // namespace

std::string MakeDeliveryId(int thread, uint64_t sequence) {
  std::string id;
  WriteId(thread, sequence, id);
  return id;
}

CycleMaker::CycleMaker(int thread, uint64_t pending, uint64_t event_bytes)
    : thread_(thread), pending_(pending) {
  key_ = {.topic = "orders.created", .client = "billing-" + std::to_string(thread), .partition = 3};
  put_.topic = key_.topic;
  put_.client = key_.client;
  put_.partition = key_.partition;
  put_.epoch = 1;
  put_.due = absl::Seconds(30);
  put_.created = absl::FromUnixSeconds(1'790'000'000);
  put_.event.assign(std::max<uint64_t>(event_bytes, kNumberDigits), 'e');
}

Cycle CycleMaker::Next() {
  WriteId(thread_, sequence_, put_.id);
  WriteId(thread_, sequence_ - pending_, remove_id_);
  put_.offset = sequence_;
  PutHex(sequence_, put_.event.data(), kNumberDigits);
  const uint64_t next = sequence_ < pending_ ? 0 : sequence_ - pending_ + 1;
  ++sequence_;
  return {.put = put_, .remove_id = remove_id_, .offset = key_, .next = next};
}

}  // namespace holdfast::bench
