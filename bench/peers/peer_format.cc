#include <algorithm>
#include <cstring>

#include "bench/peers/recovery_store.h"

namespace holdfast::bench {
namespace {

template <typename Value>
void AddRaw(Value value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void AddText(std::string_view text, std::string& out) {
  AddRaw(static_cast<uint16_t>(text.size()), out);
  out.append(text);
}

}  // namespace

std::vector<RecoveryKind> PeerKinds() {
  std::vector<RecoveryKind> kinds = RocksDbKinds();
  for (RecoveryKind& kind : LmdbKinds()) kinds.push_back(std::move(kind));
  return kinds;
}

void EncodeForPeer(const Delivery& delivery, std::string& value) {
  value.clear();
  AddText(delivery.topic, value);
  AddText(delivery.client, value);
  AddRaw(static_cast<uint32_t>(delivery.epoch), value);
  AddRaw(static_cast<uint32_t>(delivery.partition), value);
  AddRaw(delivery.offset.value_or(0), value);
  AddRaw(absl::ToInt64Nanoseconds(delivery.due), value);
  AddRaw(static_cast<uint32_t>(delivery.event.size()), value);
  value.append(delivery.event);
}

StatusOr<std::string_view> EventOfPeer(std::string_view value) {
  const std::string_view whole = value;
  for (int text = 0; text < 2; ++text) {
    uint16_t length = 0;
    if (value.size() < sizeof length) return DataLoss("a value of {} bytes", whole.size());
    std::memcpy(&length, value.data(), sizeof length);
    value.remove_prefix(std::min<size_t>(value.size(), sizeof length + length));
  }
  constexpr size_t kFixedBytes = 4 + 4 + 8 + 8;
  uint32_t length = 0;
  if (value.size() < kFixedBytes + sizeof length) {
    return DataLoss("a value of {} bytes", whole.size());
  }
  std::memcpy(&length, value.data() + kFixedBytes, sizeof length);
  value.remove_prefix(kFixedBytes + sizeof length);
  if (value.size() != length) return DataLoss("a value of {} bytes", whole.size());
  return value;
}

void MakePeerKey(std::string_view id, std::string& key) {
  key.assign(1, kDeliveryLetter);
  key.append(id);
}

void MakePeerKey(const OffsetKey& offset, std::string& key) {
  key.assign(1, kOffsetLetter);
  AddText(offset.topic, key);
  AddText(offset.client, key);
  AddRaw(static_cast<uint32_t>(offset.partition), key);
}

}  // namespace holdfast::bench
