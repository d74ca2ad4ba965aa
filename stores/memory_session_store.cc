#include "stores/memory_session_store.h"

#include <utility>

#include "journal/base/status.h"
#include "stores/store_limits.h"

namespace holdfast {

template <typename Value>
MemorySessionStore::Entry<Value>* MemorySessionStore::FindLive(Entries<Value>& entries,
                                                               std::string_view id) {
  const auto found = entries.find(id);
  if (found == entries.end() || found->second.alive_until <= clock_.Now()) return nullptr;
  return &found->second;
}

template <typename Value>
StatusOr<MemorySessionStore::Entry<Value>*> MemorySessionStore::Owned(Entries<Value>& entries,
                                                                      std::string_view id,
                                                                      uint64_t owner_epoch) {
  Entry<Value>* entry = FindLive(entries, id);
  if (entry == nullptr) return NotFound("no such entry, or it expired");
  if (entry->value.owner_epoch != owner_epoch) {
    return MakeStatus(StatusCode::kPermissionDenied, Detail::kStaleOwner,
                      fmt::format("owner epoch {}: the entry belongs to epoch {}", owner_epoch,
                                  entry->value.owner_epoch));
  }
  return entry;
}

StatusOr<uint64_t> MemorySessionStore::RegisterAgent(const Agent& agent) {
  RETURN_IF_ERROR(CheckId("agent id", agent.id));
  RETURN_IF_ERROR(CheckName("instance", agent.instance));
  MutexLock lock(mu_);
  Entry<Agent>& entry = agents_[agent.id];
  entry.value = agent;
  entry.value.state = AgentState::kRegistered;
  entry.value.owner_epoch = ++newest_epoch_;
  entry.alive_until = clock_.Now() + options_.agent_ttl;
  return entry.value.owner_epoch;
}

Status MemorySessionStore::MarkReady(std::string_view agent, uint64_t owner_epoch) {
  MutexLock lock(mu_);
  ASSIGN_OR_RETURN(Entry<Agent>* const entry, Owned(agents_, agent, owner_epoch));
  entry->value.state = AgentState::kReady;
  return absl::OkStatus();
}

Status MemorySessionStore::Heartbeat(std::string_view agent, uint64_t owner_epoch) {
  MutexLock lock(mu_);
  ASSIGN_OR_RETURN(Entry<Agent>* const entry, Owned(agents_, agent, owner_epoch));
  entry->alive_until = clock_.Now() + options_.agent_ttl;
  return absl::OkStatus();
}

Status MemorySessionStore::UnregisterAgent(std::string_view agent, uint64_t owner_epoch) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Owned(agents_, agent, owner_epoch).status());
  Unbind(agent);
  agents_.erase(agents_.find(agent));
  return absl::OkStatus();
}

StatusOr<Agent> MemorySessionStore::GetAgent(std::string_view agent) {
  MutexLock lock(mu_);
  const Entry<Agent>* entry = FindLive(agents_, agent);
  if (entry == nullptr) return NotFound("no such agent, or it expired");
  return entry->value;
}

StatusOr<std::vector<Agent>> MemorySessionStore::Agents() {
  MutexLock lock(mu_);
  std::vector<Agent> live;
  for (const auto& [id, entry] : agents_) {
    if (entry.alive_until > clock_.Now()) live.push_back(entry.value);
  }
  return live;
}

StatusOr<uint64_t> MemorySessionStore::OpenSession(const Session& session) {
  RETURN_IF_ERROR(CheckId("session id", session.id));
  RETURN_IF_ERROR(CheckName("client", session.client));
  RETURN_IF_ERROR(CheckName("instance", session.instance));
  MutexLock lock(mu_);
  const Entry<Session>* before = FindLive(sessions_, session.id);
  std::string agent = before != nullptr ? before->value.agent : std::string();
  Entry<Session>& entry = sessions_[session.id];
  entry.value = session;
  entry.value.agent = std::move(agent);
  entry.value.owner_epoch = ++newest_epoch_;
  entry.alive_until = clock_.Now() + options_.session_idle_max;
  return entry.value.owner_epoch;
}

Status MemorySessionStore::TouchSession(std::string_view session, uint64_t owner_epoch) {
  MutexLock lock(mu_);
  ASSIGN_OR_RETURN(Entry<Session>* const entry, Owned(sessions_, session, owner_epoch));
  entry->alive_until = clock_.Now() + options_.session_idle_max;
  return absl::OkStatus();
}

Status MemorySessionStore::CloseSession(std::string_view session, uint64_t owner_epoch) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Owned(sessions_, session, owner_epoch).status());
  sessions_.erase(sessions_.find(session));
  return absl::OkStatus();
}

Status MemorySessionStore::Bind(std::string_view session, uint64_t owner_epoch,
                                std::string_view agent) {
  MutexLock lock(mu_);
  ASSIGN_OR_RETURN(Entry<Session>* const entry, Owned(sessions_, session, owner_epoch));
  if (!agent.empty() && FindLive(agents_, agent) == nullptr) {
    return WrongState(Detail::kNotReady, "no such agent is registered");
  }
  entry->value.agent = agent;
  return absl::OkStatus();
}

StatusOr<Session> MemorySessionStore::GetSession(std::string_view session) {
  MutexLock lock(mu_);
  const Entry<Session>* entry = FindLive(sessions_, session);
  if (entry == nullptr) return NotFound("no such session, or it expired");
  return entry->value;
}

StatusOr<std::vector<Session>> MemorySessionStore::SessionsOf(std::string_view agent) {
  MutexLock lock(mu_);
  std::vector<Session> bound;
  for (const auto& [id, entry] : sessions_) {
    if (entry.value.agent == agent && entry.alive_until > clock_.Now()) {
      bound.push_back(entry.value);
    }
  }
  return bound;
}

StatusOr<MemorySessionStore::Expired> MemorySessionStore::Expire() {
  MutexLock lock(mu_);
  const absl::Duration now = clock_.Now();
  Expired expired;
  std::erase_if(agents_, [&](const auto& agent) {
    if (agent.second.alive_until > now) return false;
    expired.agents.push_back(agent.first);
    return true;
  });
  for (const std::string& agent : expired.agents) Unbind(agent);
  std::erase_if(sessions_, [&](const auto& session) {
    if (session.second.alive_until > now) return false;
    expired.sessions.push_back(session.first);
    return true;
  });
  return expired;
}

void MemorySessionStore::Unbind(std::string_view agent) {
  for (auto& [id, entry] : sessions_) {
    if (entry.value.agent == agent) entry.value.agent.clear();
  }
}

}  // namespace holdfast
