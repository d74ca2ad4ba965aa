#include "stores/store_limits.h"

namespace holdfast {
namespace {

Status CheckEvent(std::string_view event, const StoreLimits& limits) {
  if (event.size() <= limits.event_bytes_max) return absl::OkStatus();
  return Exhausted(Detail::kLimit, "event: {} bytes, event_bytes_max is {}", event.size(),
                   limits.event_bytes_max);
}

}  // namespace

Status LongName(std::string_view what, std::string_view name) {
  return Invalid("{}: {} bytes, at most {} are allowed", what, name.size(), kNameBytesMax);
}

Status CheckId(std::string_view what, std::string_view id) {
  if (id.empty()) return Invalid("{}: it is empty", what);
  return CheckName(what, id);
}

Status CheckDelivery(const Delivery& delivery, const StoreLimits& limits) {
  RETURN_IF_ERROR(CheckDeliveryId(delivery.id));
  RETURN_IF_ERROR(CheckName("topic", delivery.topic));
  RETURN_IF_ERROR(CheckName("client", delivery.client));
  if (delivery.offset.has_value()) RETURN_IF_ERROR(CheckOffset("offset", *delivery.offset));
  if (delivery.redriven_from.has_value()) {
    RETURN_IF_ERROR(CheckName("redriven_from", *delivery.redriven_from));
  }
  return CheckEvent(delivery.event, limits);
}

Status CheckReschedule(const Reschedule& reschedule) { return CheckDeliveryId(reschedule.id); }

Status CheckRemoval(const Removal& removal) {
  RETURN_IF_ERROR(CheckDeliveryId(removal.id));
  RETURN_IF_ERROR(CheckName("client", removal.client));
  if (removal.idempotency_key.has_value()) {
    RETURN_IF_ERROR(CheckName("idempotency_key", *removal.idempotency_key));
  }
  return CheckName("answer", removal.answer);
}

Status CheckDeadLetter(const DeadLetter& dead_letter, const StoreLimits& limits) {
  RETURN_IF_ERROR(CheckDeliveryId(dead_letter.delivery_id));
  RETURN_IF_ERROR(CheckName("dlq_topic", dead_letter.dlq_topic));
  RETURN_IF_ERROR(CheckOffset("dlq_offset", dead_letter.dlq_offset));
  RETURN_IF_ERROR(CheckName("reason", dead_letter.reason));
  RETURN_IF_ERROR(CheckName("topic", dead_letter.topic));
  RETURN_IF_ERROR(CheckName("client", dead_letter.client));
  if (dead_letter.offset.has_value()) RETURN_IF_ERROR(CheckOffset("offset", *dead_letter.offset));
  return CheckEvent(dead_letter.event, limits);
}

Status CheckDeliveryId(std::string_view id) { return CheckId("delivery id", id); }

Status CheckRedrive(std::string_view delivery_id, const DeadLetterStore::RedriveAs& as) {
  RETURN_IF_ERROR(CheckDeliveryId(as.new_id));
  if (as.new_id != delivery_id) return absl::OkStatus();
  return Invalid("new_id: it is the id of the dead letter");
}

Status CheckOffsetKey(const OffsetKey& key) {
  RETURN_IF_ERROR(CheckName("topic", key.topic));
  return CheckName("client", key.client);
}

Status CheckOffset(std::string_view what, uint64_t offset) {
  if (offset <= kOffsetMax) return absl::OkStatus();
  return Invalid("{}: {} is above 2^63 - 2", what, offset);
}

Status CheckSource(const SourceKey& key) { return CheckName("topic", key.topic); }

}  // namespace holdfast
