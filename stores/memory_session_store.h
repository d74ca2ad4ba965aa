// MemorySessionStore: the agents and sessions of one instance that stands alone.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/session_store.h"
#include "journal/base/mutex.h"

namespace holdfast {

// Threads: any.
class MemorySessionStore final : public SessionStore {
 public:
  // `clock` is borrowed and outlives the store.
  MemorySessionStore(const SessionStoreOptions& options, Clock& clock)
      : options_(options), clock_(clock) {}

  absl::StatusOr<uint64_t> RegisterAgent(const Agent& agent) override;
  absl::Status MarkReady(std::string_view agent, uint64_t owner_epoch) override;
  absl::Status Heartbeat(std::string_view agent, uint64_t owner_epoch) override;
  absl::Status UnregisterAgent(std::string_view agent, uint64_t owner_epoch) override;
  absl::StatusOr<Agent> GetAgent(std::string_view agent) override;
  absl::StatusOr<std::vector<Agent>> Agents() override;
  absl::StatusOr<uint64_t> OpenSession(const Session& session) override;
  absl::Status TouchSession(std::string_view session, uint64_t owner_epoch) override;
  absl::Status CloseSession(std::string_view session, uint64_t owner_epoch) override;
  absl::Status Bind(std::string_view session, uint64_t owner_epoch,
                    std::string_view agent) override;
  absl::StatusOr<Session> GetSession(std::string_view session) override;
  absl::StatusOr<std::vector<Session>> SessionsOf(std::string_view agent) override;
  absl::StatusOr<Expired> Expire() override;

 private:
  template <typename Value>
  struct Entry {
    Value value;
    absl::Duration alive_until;  // monotonic; then it is gone, whether Expire ran or not
  };
  template <typename Value>
  using Entries = std::map<std::string, Entry<Value>, std::less<>>;

  // The live entry `id`, if `owner_epoch` is its owner's.
  template <typename Value>
  absl::StatusOr<Entry<Value>*> Owned(Entries<Value>& entries, std::string_view id,
                                      uint64_t owner_epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <typename Value>
  Entry<Value>* FindLive(Entries<Value>& entries, std::string_view id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sessions bound to an agent that is gone are bound to none.
  void Unbind(std::string_view agent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const SessionStoreOptions options_;
  Clock& clock_;
  Mutex mu_;
  Entries<Agent> agents_ ABSL_GUARDED_BY(mu_);
  Entries<Session> sessions_ ABSL_GUARDED_BY(mu_);
  uint64_t newest_epoch_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace holdfast
