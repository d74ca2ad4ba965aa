#include "tools/value_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "journal/format/records_text.h"

namespace holdfast {
namespace {

// Members of one value, as text ("name=value …", or a line for each) or JSON.
class Line {
 public:
  explicit Line(const ValueForm& form)
      : json_(form.json), apart_(form.field_lines), writer_(text_) {
    if (json_) writer_.BeginObject();
  }
  Line& Name(const char* key, std::string_view name) {
    if (json_) {
      writer_.Field(key, name);
    } else {
      AddText(key, NameText(name));
    }
    return *this;
  }
  Line& Number(const char* key, std::optional<uint64_t> number) {
    if (!json_) {
      AddText(key, number.has_value() ? std::to_string(*number) : "-");
    } else if (number.has_value()) {
      writer_.Field(key, *number);
    } else {
      writer_.Key(key).Null();
    }
    return *this;
  }
  std::string Take() {
    if (json_) writer_.EndObject();
    return std::move(text_) + "\n";
  }

 private:
  void AddText(std::string_view key, std::string_view value) {
    if (apart_) {
      text_ += fmt::format("{}{:<14}{}", text_.empty() ? "" : "\n", key, value);
      return;
    }
    text_ += fmt::format("{}{}={}", text_.empty() ? "" : " ", key, value);
  }

  const bool json_;
  const bool apart_;
  std::string text_;
  JsonWriter writer_;
};

const char* TaskStatusName(TaskStatus status) {
  switch (status) {
    case TaskStatus::kPending:
      return "PENDING";
    case TaskStatus::kRunning:
      return "RUNNING";
    case TaskStatus::kCompleted:
      return "COMPLETED";
    case TaskStatus::kFailed:
      return "FAILED";
    case TaskStatus::kCanceled:
      return "CANCELED";
  }
  return "unknown";
}

}  // namespace

std::string OffsetLine(const StoredOffset& offset, const ValueForm& form) {
  return Line(form)
      .Name("topic", offset.key.topic)
      .Name("client", offset.key.client)
      .Number("partition", offset.key.partition)
      .Number("next", offset.position.next)
      .Take();
}

std::string DeliveryLine(const StoredDelivery& stored, const ValueForm& form) {
  const Delivery& delivery = stored.delivery;
  const absl::Duration wait = std::max(delivery.due - form.engine_now, absl::ZeroDuration());
  Line line(form);
  line.Name("id", delivery.id)
      .Number("epoch", delivery.epoch)
      .Name("topic", delivery.topic)
      .Number("partition", delivery.partition)
      .Number("offset", delivery.offset)
      .Name("client", delivery.client)
      .Number("attempt", delivery.attempt)
      .Number("next_attempt_ms", static_cast<uint64_t>(absl::ToInt64Milliseconds(wait)))
      .Number("bytes", delivery.event.size());
  if (form.event) line.Name("event", delivery.event);
  return line.Take();
}

std::string DeadLetterLine(const StoredDeadLetter& stored, const ValueForm& form) {
  const DeadLetter& dead = stored.dead_letter;
  Line line(form);
  line.Name("id", dead.delivery_id)
      .Name("dlq_topic", dead.dlq_topic)
      .Number("dlq_offset", dead.dlq_offset)
      .Name("reason", dead.reason)
      .Number("attempts", dead.attempts)
      .Number("epoch", dead.epoch)
      .Name("topic", dead.topic)
      .Number("incarnation", dead.incarnation)
      .Number("partition", dead.partition)
      .Number("offset", dead.offset)
      .Name("client", dead.client)
      .Name("died", absl::FormatTime(absl::RFC3339_full, dead.died, absl::UTCTimeZone()))
      .Number("replays", stored.replays)
      .Number("bytes", dead.event.size());
  if (form.event) line.Name("event", dead.event);
  return line.Take();
}

std::string TaskLine(const TaskRecord& task, const ValueForm& form) {
  return Line(form)
      .Name("id", task.id)
      .Name("agent", task.agent)
      .Name("client", task.client)
      .Name("status", TaskStatusName(task.status))
      .Number("epoch", task.epoch)
      .Take();
}

std::string InstanceLine(const Instance& instance, const ValueForm& form) {
  return Line(form)
      .Name("instance", instance.id)
      .Name("address", instance.address)
      .Number("joined", instance.joined)
      .Take();
}

std::string AssignmentLine(const Assignment& assignment, const ValueForm& form) {
  return Line(form)
      .Name("topic", assignment.partition.topic)
      .Number("incarnation", assignment.partition.incarnation)
      .Number("partition", assignment.partition.partition)
      .Name("owner", assignment.instance)
      .Number("token", assignment.token)
      .Name("state", assignment.alive              ? "owned"
                     : assignment.instance.empty() ? "released"
                                                   : "abandoned")
      .Take();
}

}  // namespace holdfast
