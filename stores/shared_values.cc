#include "stores/shared_values.h"

#include <optional>

#include "journal/format/codec.h"
#include "stores/nanos.h"

namespace holdfast {
namespace {

constexpr uint64_t kSubscriptionVersion = 1;
constexpr uint64_t kAgentVersion = 1;
constexpr uint64_t kSessionVersion = 1;
constexpr uint64_t kTaskVersion = 1;

Status CheckVersion(std::string_view what, uint64_t version, uint64_t newest) {
  if (version == 0) return DataLoss("{} in the Meta has no version", what);
  if (version <= newest) return absl::OkStatus();
  return MakeStatus(StatusCode::kUnimplemented, Detail::kNone,
                    fmt::format("{} in the Meta is of version {}, this program knows up to {}: "
                                "upgrade it",
                                what, version, newest));
}

// Nothing but what was read may be left.
Status CheckEnd(std::string_view what, const Decoder& in) {
  if (in.ok() && in.remaining() == 0) return absl::OkStatus();
  return DataLoss("{} in the Meta does not decode", what);
}

void EncodeOptional(const std::optional<std::string>& text, Encoder& out) {
  out.Varint(text.has_value() ? 1 : 0);
  if (text.has_value()) out.Bytes(*text);
}

std::optional<std::string> DecodeOptional(Decoder& in) {
  const uint64_t present = in.Varint();
  if (present > 1) in.Fail();
  if (present != 1) return std::nullopt;
  return std::string(in.Bytes());
}

// An enumerator from 1 to `last`.
template <typename Enum>
Enum DecodeEnum(Decoder& in, Enum last) {
  const uint64_t value = in.Varint();
  if (value == 0 || value > static_cast<uint64_t>(last)) in.Fail();
  return static_cast<Enum>(value);
}

template <typename Enum>
void EncodeEnum(Enum value, Encoder& out) {
  out.Varint(static_cast<uint64_t>(value));
}

}  // namespace

std::string EncodeSubscription(const Subscription& subscription) {
  std::string value;
  Encoder out(value);
  out.Varint(kSubscriptionVersion);
  out.Bytes(subscription.instance);
  EncodeEnum(subscription.mode, out);
  out.Varint(subscription.filters.size());
  for (const EventFilter& filter : subscription.filters) {
    out.Bytes(filter.attribute);
    EncodeEnum(filter.match, out);
    out.Bytes(filter.value);
  }
  return value;
}

StatusOr<Subscription> DecodeSubscription(std::string_view value) {
  Decoder in(AsBytes(value));
  RETURN_IF_ERROR(CheckVersion("a subscription", in.Varint(), kSubscriptionVersion));
  Subscription subscription;
  subscription.instance = in.Bytes();
  subscription.mode = DecodeEnum(in, DispatchMode::kA2aDispatch);
  // As many as it says, or as there are bytes for.
  for (uint64_t left = in.Varint(); left > 0 && in.ok(); --left) {
    EventFilter& filter = subscription.filters.emplace_back();
    filter.attribute = in.Bytes();
    filter.match = DecodeEnum(in, EventFilter::Match::kSuffix);
    filter.value = in.Bytes();
  }
  RETURN_IF_ERROR(CheckEnd("a subscription", in));
  return subscription;
}

std::string EncodeAgent(const Agent& agent) {
  std::string value;
  Encoder out(value);
  out.Varint(kAgentVersion);
  out.Bytes(agent.instance);
  out.Bytes(agent.card);
  out.Varint(agent.capacity);
  EncodeEnum(agent.state, out);
  out.Varint(agent.owner_epoch);
  return value;
}

StatusOr<Agent> DecodeAgent(std::string_view id, std::string_view value) {
  Decoder in(AsBytes(value));
  RETURN_IF_ERROR(CheckVersion("an agent", in.Varint(), kAgentVersion));
  Agent agent{.id = std::string(id)};
  agent.instance = in.Bytes();
  agent.card = in.Bytes();
  const uint64_t capacity = in.Varint();
  if (capacity > UINT32_MAX) in.Fail();
  agent.capacity = static_cast<uint32_t>(capacity);
  agent.state = DecodeEnum(in, AgentState::kReady);
  agent.owner_epoch = in.Varint();
  RETURN_IF_ERROR(CheckEnd("an agent", in));
  return agent;
}

std::string EncodeSession(const Session& session) {
  std::string value;
  Encoder out(value);
  out.Varint(kSessionVersion);
  out.Bytes(session.client);
  out.Bytes(session.instance);
  out.Bytes(session.agent);
  out.Varint(session.owner_epoch);
  return value;
}

StatusOr<Session> DecodeSession(std::string_view id, std::string_view value) {
  Decoder in(AsBytes(value));
  RETURN_IF_ERROR(CheckVersion("a session", in.Varint(), kSessionVersion));
  Session session{.id = std::string(id)};
  session.client = in.Bytes();
  session.instance = in.Bytes();
  session.agent = in.Bytes();
  session.owner_epoch = in.Varint();
  RETURN_IF_ERROR(CheckEnd("a session", in));
  return session;
}

std::string EncodeTask(const TaskRecord& task) {
  std::string value;
  Encoder out(value);
  out.Varint(kTaskVersion);
  out.Bytes(task.agent);
  out.Bytes(task.client);
  EncodeEnum(task.status, out);
  out.Bytes(task.detail);
  out.Signed(ToNanos(task.created));
  out.Signed(ToNanos(task.updated));
  out.Varint(task.epoch);
  out.Bytes(task.input);
  EncodeOptional(task.output, out);
  out.Signed(ToNanos(task.deadline));
  EncodeOptional(task.parent, out);
  EncodeOptional(task.context, out);
  out.Varint(task.transitions.size());
  for (const TaskTransition& transition : task.transitions) {
    out.Varint(transition.epoch);
    EncodeEnum(transition.status, out);
    out.Signed(ToNanos(transition.at));
    out.Bytes(transition.detail);
  }
  return value;
}

StatusOr<TaskRecord> DecodeTask(std::string_view id, std::string_view value) {
  Decoder in(AsBytes(value));
  RETURN_IF_ERROR(CheckVersion("a task", in.Varint(), kTaskVersion));
  TaskRecord task{.id = std::string(id)};
  task.agent = in.Bytes();
  task.client = in.Bytes();
  task.status = DecodeEnum(in, TaskStatus::kCanceled);
  task.detail = in.Bytes();
  task.created = TimeFromNanos(in.Signed());
  task.updated = TimeFromNanos(in.Signed());
  task.epoch = in.Varint();
  task.input = in.Bytes();
  task.output = DecodeOptional(in);
  task.deadline = TimeFromNanos(in.Signed());
  task.parent = DecodeOptional(in);
  task.context = DecodeOptional(in);
  const uint64_t transitions = in.Varint();
  if (transitions > TaskRecord::kTransitionsMax) in.Fail();
  for (uint64_t left = transitions; left > 0 && in.ok(); --left) {
    TaskTransition& transition = task.transitions.emplace_back();
    transition.epoch = in.Varint();
    transition.status = DecodeEnum(in, TaskStatus::kCanceled);
    transition.at = TimeFromNanos(in.Signed());
    transition.detail = in.Bytes();
  }
  RETURN_IF_ERROR(CheckEnd("a task", in));
  return task;
}

}  // namespace holdfast
