#include "stores/session_store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "meta/meta_key.h"
#include "meta/meta_pages.h"
#include "stores/shared_values.h"
#include "stores/store_limits.h"

namespace holdfast {
namespace {

constexpr std::string_view kBindings = "bindings";
constexpr std::string_view kRecord = "record", kAlive = "alive";
constexpr size_t kReadAtOnce = 1'000;
// A change is tried again when somebody else was faster, so often.
constexpr int kTriesMax = 16;

// What differs between an agent and a session.
template <typename Value>
struct Kind;
template <>
struct Kind<Agent> {
  static constexpr std::string_view kName = "agents";
  static std::string Encode(const Agent& agent) { return EncodeAgent(agent); }
  static StatusOr<Agent> Decode(std::string_view id, std::string_view value) {
    return DecodeAgent(id, value);
  }
};
template <>
struct Kind<Session> {
  static constexpr std::string_view kName = "sessions";
  static std::string Encode(const Session& session) { return EncodeSession(session); }
  static StatusOr<Session> Decode(std::string_view id, std::string_view value) {
    return DecodeSession(id, value);
  }
};

template <typename Value>
std::string KeyOf(std::string_view id, std::string_view what) {
  return MetaKey(Kind<Value>::kName, {id, what});
}

MetaCondition Absent(std::string key) {
  return {.key = std::move(key), .must = MetaCondition::Must::kBeAbsent};
}
MetaCondition Exists(std::string key) {
  return {.key = std::move(key), .must = MetaCondition::Must::kExist};
}
MetaCondition StandsAt(std::string key, uint64_t revision) {
  return {.key = std::move(key), .must = MetaCondition::Must::kStandAt, .revision = revision};
}
MetaChange ToPut(std::string key, std::string value, uint64_t lease = 0) {
  return {.kind = MetaChange::Kind::kPut,
          .key = std::move(key),
          .value = std::move(value),
          .lease = lease};
}
MetaChange ToDelete(std::string key) {
  return {.kind = MetaChange::Kind::kDelete, .key = std::move(key)};
}

bool IsConflict(const Status& status) { return MetaResultOf(status) == MetaResult::kConflict; }

Status Contended() {
  return MakeStatus(StatusCode::kAborted, Detail::kConflict,
                    "the entry was changed by others each time it was read; try again");
}

Status NoneLive(std::string_view what) { return NotFound("no such {}, or it expired", what); }

}  // namespace

template <typename Value>
StatusOr<MetaSessionStore::Found<Value>> MetaSessionStore::Read(std::string_view id) {
  ASSIGN_OR_RETURN(const MetaList list, meta_.List(MetaPrefix(Kind<Value>::kName, {id}), {}));
  Found<Value> found{.read_at = list.revision};
  for (const MetaEntry& entry : list.entries) {
    if (entry.key == KeyOf<Value>(id, kRecord)) {
      ASSIGN_OR_RETURN(found.value, Kind<Value>::Decode(id, entry.value));
      found.revision = entry.revision;
    } else if (entry.key == KeyOf<Value>(id, kAlive)) {
      found.alive = true;
      found.lease = entry.lease;
    }
  }
  return found;
}

template <typename Value>
StatusOr<std::vector<MetaSessionStore::Found<Value>>> MetaSessionStore::ReadAll() {
  std::map<std::string, Found<Value>> by_id;
  const auto gather = [&by_id](const MetaEntry& entry) -> Status {
    const auto parts = ParseMetaKey(Kind<Value>::kName, 2, entry.key);
    if (!parts.ok()) return absl::OkStatus();
    const std::string& id = parts->front();
    Found<Value>& found = by_id[id];
    if (parts->back() == kAlive) {
      found.alive = true;
      found.lease = entry.lease;
    } else if (StatusOr<Value> value = Kind<Value>::Decode(id, entry.value); value.ok()) {
      found.value = *std::move(value);
      found.revision = entry.revision;
    }
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const uint64_t read_at,
                   ForEachEntry(meta_, MetaPrefix(Kind<Value>::kName, {}), kReadAtOnce, gather));
  std::vector<Found<Value>> all;
  for (auto& [id, found] : by_id) {
    found.read_at = read_at;
    // One that this version cannot read fails its own readers, not those of all.
    if (found.value.has_value()) all.push_back(std::move(found));
  }
  return all;
}

template <typename Value>
StatusOr<MetaSessionStore::Found<Value>> MetaSessionStore::Owned(std::string_view id,
                                                                 uint64_t owner_epoch) {
  ASSIGN_OR_RETURN(Found<Value> found, Read<Value>(id));
  if (!found.value.has_value() || !found.alive) return NoneLive("entry");
  if (found.value->owner_epoch != owner_epoch) {
    return MakeStatus(StatusCode::kPermissionDenied, Detail::kStaleOwner,
                      fmt::format("owner epoch {}: the entry belongs to epoch {}", owner_epoch,
                                  found.value->owner_epoch));
  }
  return found;
}

// The new epoch is one more than the newest revision that was read: every write before had a lower
// revision than its epoch may have, and this one gets no lower revision than its own epoch.
template <typename Value>
StatusOr<uint64_t> MetaSessionStore::TakeOver(Value value, const Found<Value>& before,
                                              absl::Duration ttl) {
  const uint64_t owned_before = before.value.has_value() ? before.value->owner_epoch : 0;
  value.owner_epoch = std::max(before.read_at, owned_before) + 1;
  ASSIGN_OR_RETURN(const MetaLease lease, meta_.GrantLease(ttl, {}));
  const std::string key = KeyOf<Value>(value.id, kRecord);
  MetaTransaction change{
      .conditions = {before.value.has_value() ? StandsAt(key, before.revision) : Absent(key)},
      .changes = {ToPut(key, Kind<Value>::Encode(value)),
                  ToPut(KeyOf<Value>(value.id, kAlive), "", lease.id)}};
  if constexpr (std::is_same_v<Value, Session>) {
    if (!value.agent.empty()) {
      change.changes.push_back(
          ToPut(MetaKey(kBindings, {value.agent, value.id}), EncodeSession(value), lease.id));
    }
  }
  const StatusOr<uint64_t> written = writer_.Transact(change);
  if (!written.ok()) {
    (void)meta_.RevokeLease(lease.id, {});  // it would end by itself, too
    return written.status();
  }
  return value.owner_epoch;
}

template <typename Value>
Status MetaSessionStore::Prolong(std::string_view id, uint64_t owner_epoch) {
  ASSIGN_OR_RETURN(const Found<Value> found, Owned<Value>(id, owner_epoch));
  // Had another taken it over since, this lease would hold nothing any more.
  const Status kept = meta_.KeepAlive(found.lease, {}).status();
  return MetaResultOf(kept) == MetaResult::kNotFound ? NoneLive("entry") : kept;
}

template <typename Value>
Status MetaSessionStore::End(std::string_view id, uint64_t owner_epoch) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    ASSIGN_OR_RETURN(const Found<Value> found, Owned<Value>(id, owner_epoch));
    const Status deleted = writer_.Delete(KeyOf<Value>(id, kRecord), found.revision).status();
    if (IsConflict(deleted)) continue;
    if (MetaResultOf(deleted) == MetaResult::kNotFound) return NoneLive("entry");
    RETURN_IF_ERROR(deleted);
    (void)meta_.RevokeLease(found.lease, {});  // the sign of life and a binding; ends by itself too
    return absl::OkStatus();
  }
  return Contended();
}

StatusOr<uint64_t> MetaSessionStore::RegisterAgent(const Agent& agent) {
  RETURN_IF_ERROR(CheckId("agent id", agent.id));
  RETURN_IF_ERROR(CheckName("instance", agent.instance));
  Agent registered = agent;
  registered.state = AgentState::kRegistered;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    ASSIGN_OR_RETURN(const Found<Agent> before, Read<Agent>(agent.id));
    const StatusOr<uint64_t> epoch = TakeOver(registered, before, options_.agent_ttl);
    if (!IsConflict(epoch.status())) return epoch;
  }
  return Contended();
}

Status MetaSessionStore::MarkReady(std::string_view agent, uint64_t owner_epoch) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    ASSIGN_OR_RETURN(Found<Agent> found, Owned<Agent>(agent, owner_epoch));
    found.value->state = AgentState::kReady;
    const std::string key = KeyOf<Agent>(agent, kRecord);
    const Status written = writer_
                               .Transact({.conditions = {StandsAt(key, found.revision),
                                                         Exists(KeyOf<Agent>(agent, kAlive))},
                                          .changes = {ToPut(key, EncodeAgent(*found.value))}})
                               .status();
    if (!IsConflict(written)) return written;
  }
  return Contended();
}

Status MetaSessionStore::Heartbeat(std::string_view agent, uint64_t owner_epoch) {
  return Prolong<Agent>(agent, owner_epoch);
}

Status MetaSessionStore::UnregisterAgent(std::string_view agent, uint64_t owner_epoch) {
  RETURN_IF_ERROR(End<Agent>(agent, owner_epoch));
  return UnbindAll(agent);
}

StatusOr<Agent> MetaSessionStore::GetAgent(std::string_view agent) {
  ASSIGN_OR_RETURN(Found<Agent> found, Read<Agent>(agent));
  if (!found.value.has_value() || !found.alive) return NoneLive("agent");
  return *std::move(found.value);
}

StatusOr<std::vector<Agent>> MetaSessionStore::Agents() {
  ASSIGN_OR_RETURN(std::vector<Found<Agent>> all, ReadAll<Agent>());
  std::vector<Agent> live;
  for (Found<Agent>& found : all) {
    if (found.alive) live.push_back(*std::move(found.value));
  }
  return live;
}

StatusOr<uint64_t> MetaSessionStore::OpenSession(const Session& session) {
  RETURN_IF_ERROR(CheckId("session id", session.id));
  RETURN_IF_ERROR(CheckName("client", session.client));
  RETURN_IF_ERROR(CheckName("instance", session.instance));
  for (int tries = 0; tries < kTriesMax; ++tries) {
    ASSIGN_OR_RETURN(const Found<Session> before, Read<Session>(session.id));
    Session opened = session;
    opened.agent = before.value.has_value() && before.alive ? before.value->agent : "";
    const StatusOr<uint64_t> epoch = TakeOver(opened, before, options_.session_idle_max);
    if (!IsConflict(epoch.status())) return epoch;
  }
  return Contended();
}

Status MetaSessionStore::TouchSession(std::string_view session, uint64_t owner_epoch) {
  return Prolong<Session>(session, owner_epoch);
}

Status MetaSessionStore::CloseSession(std::string_view session, uint64_t owner_epoch) {
  return End<Session>(session, owner_epoch);
}

Status MetaSessionStore::Rebind(const Found<Session>& found, std::string_view agent) {
  Session session = *found.value;
  const std::string key = KeyOf<Session>(session.id, kRecord);
  MetaTransaction change{.conditions = {StandsAt(key, found.revision)}, .changes = {}};
  const std::string before = session.agent;
  session.agent = agent;
  change.changes.push_back(ToPut(key, EncodeSession(session)));
  if (!agent.empty()) {
    change.conditions.push_back(Exists(KeyOf<Session>(session.id, kAlive)));
    change.conditions.push_back(Exists(KeyOf<Agent>(agent, kRecord)));
    change.conditions.push_back(Exists(KeyOf<Agent>(agent, kAlive)));
    change.changes.push_back(
        ToPut(MetaKey(kBindings, {agent, session.id}), EncodeSession(session), found.lease));
  }
  if (!before.empty() && before != agent) {
    change.changes.push_back(ToDelete(MetaKey(kBindings, {before, session.id})));
  }
  return writer_.Transact(change).status();
}

Status MetaSessionStore::Bind(std::string_view session, uint64_t owner_epoch,
                              std::string_view agent) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    ASSIGN_OR_RETURN(const Found<Session> found, Owned<Session>(session, owner_epoch));
    if (!agent.empty()) {
      ASSIGN_OR_RETURN(const Found<Agent> to, Read<Agent>(agent));
      if (!to.value.has_value() || !to.alive) {
        return WrongState(Detail::kNotReady, "no such agent is registered");
      }
    }
    const Status bound = Rebind(found, agent);
    // NOT_FOUND: the session's lease has just ended, and the next look says so.
    if (!IsConflict(bound) && MetaResultOf(bound) != MetaResult::kNotFound) return bound;
  }
  return Contended();
}

Status MetaSessionStore::UnbindAll(std::string_view agent) {
  ASSIGN_OR_RETURN(const MetaList bindings, meta_.List(MetaPrefix(kBindings, {agent}), {}));
  for (const MetaEntry& entry : bindings.entries) {
    const auto names = ParseMetaKey(kBindings, 2, entry.key);
    if (!names.ok()) continue;
    Status unbound = absl::OkStatus();
    int tries = 0;
    do {
      ASSIGN_OR_RETURN(const Found<Session> found, Read<Session>(names->back()));
      if (!found.value.has_value() || found.value->agent != agent) break;
      unbound = Rebind(found, "");
    } while (IsConflict(unbound) && ++tries < kTriesMax);
    RETURN_IF_ERROR(unbound);
  }
  return absl::OkStatus();
}

StatusOr<Session> MetaSessionStore::GetSession(std::string_view session) {
  ASSIGN_OR_RETURN(Found<Session> found, Read<Session>(session));
  if (!found.value.has_value() || !found.alive) return NoneLive("session");
  return *std::move(found.value);
}

StatusOr<std::vector<Session>> MetaSessionStore::SessionsOf(std::string_view agent) {
  ASSIGN_OR_RETURN(const MetaList bindings, meta_.List(MetaPrefix(kBindings, {agent}), {}));
  std::vector<Session> bound;
  for (const MetaEntry& entry : bindings.entries) {
    const auto names = ParseMetaKey(kBindings, 2, entry.key);
    if (!names.ok()) continue;
    StatusOr<Session> session = DecodeSession(names->back(), entry.value);
    if (session.ok()) bound.push_back(*std::move(session));
  }
  std::sort(bound.begin(), bound.end(),
            [](const Session& a, const Session& b) { return a.id < b.id; });
  return bound;
}

StatusOr<MetaSessionStore::Expired> MetaSessionStore::Expire() {
  SessionStore::Expired expired;
  // Takes the record away if it is still without a sign of life; true if it was this call.
  const auto take = [this]<typename Value>(const Found<Value>& found) -> StatusOr<bool> {
    const std::string key = KeyOf<Value>(found.value->id, kRecord);
    const StatusOr<uint64_t> taken =
        meta_.Transact({.conditions = {StandsAt(key, found.revision),
                                       Absent(KeyOf<Value>(found.value->id, kAlive))},
                        .changes = {ToDelete(key)}},
                       {});
    if (IsConflict(taken.status())) return false;
    RETURN_IF_ERROR(taken.status());
    return true;
  };
  ASSIGN_OR_RETURN(const std::vector<Found<Agent>> agents, ReadAll<Agent>());
  for (const Found<Agent>& found : agents) {
    if (found.alive) continue;
    ASSIGN_OR_RETURN(const bool taken, take(found));
    if (!taken) continue;
    expired.agents.push_back(found.value->id);
    RETURN_IF_ERROR(UnbindAll(found.value->id));
  }
  ASSIGN_OR_RETURN(const std::vector<Found<Session>> sessions, ReadAll<Session>());
  for (const Found<Session>& found : sessions) {
    if (!found.alive) {
      ASSIGN_OR_RETURN(const bool taken, take(found));
      if (taken) expired.sessions.push_back(found.value->id);
    } else if (!found.value->agent.empty()) {
      // Whoever took its agent away may have died before it came to its sessions.
      ASSIGN_OR_RETURN(const Found<Agent> agent, Read<Agent>(found.value->agent));
      if (!agent.value.has_value()) RETURN_IF_ERROR(UnbindAll(found.value->agent));
    }
  }
  return expired;
}

}  // namespace holdfast
