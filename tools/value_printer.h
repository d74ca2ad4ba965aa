// The values of the stores as lines: text, or one JSON object each.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "holdfast/cluster.h"
#include "holdfast/engine.h"
#include "journal/base/json.h"

namespace holdfast {

// How values are shown. A JSON delivery has the members id, epoch, topic, partition, offset (null:
// none), client, attempt, next_attempt_ms and bytes; an offset topic, client, partition and next.
struct ValueForm {
  bool json = false;
  bool field_lines = false;     // text: each field on a line of its own
  bool event = false;           // with the event itself
  absl::Duration engine_now{};  // what the time to the next attempt counts from
};

// Each is one line with its end, unless the form asks for more.
std::string OffsetLine(const StoredOffset& offset, const ValueForm& form);
std::string DeliveryLine(const StoredDelivery& delivery, const ValueForm& form);
std::string DeadLetterLine(const StoredDeadLetter& dead_letter, const ValueForm& form);
std::string TaskLine(const TaskRecord& task, const ValueForm& form);
std::string InstanceLine(const Instance& instance, const ValueForm& form);
std::string AssignmentLine(const Assignment& assignment, const ValueForm& form);

}  // namespace holdfast
