// The SessionStore on a Meta. An agent is two entries: its record, and a sign of life that goes
// with a lease; a session likewise. So what has expired is seen by everybody at once, and what it
// leaves behind can still be named and cleaned up, by exactly one.
//
//   /em/agents/<agent>/record, …/alive            /em/sessions/<session>/record, …/alive
//   /em/bindings/<agent>/<session>                the session again; goes with the session's lease
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/meta_store.h"
#include "holdfast/session_store.h"
#include "journal/base/status.h"
#include "meta/meta_writer.h"

namespace holdfast {

// Threads: any.
class MetaSessionStore final : public SessionStore {
 public:
  // `meta` is borrowed and outlives it. `nonce`: as MetaWriter's.
  MetaSessionStore(MetaStore& meta, uint64_t nonce, const SessionStoreOptions& options)
      : meta_(meta), writer_(meta, nonce), options_(options) {}

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
  // An agent or a session as its entries show it, at one revision.
  template <typename Value>
  struct Found {
    std::optional<Value> value;  // its record, expired or not; none: there is none
    uint64_t revision = 0;       // of the record
    bool alive = false;
    uint64_t lease = 0;    // of the sign of life
    uint64_t read_at = 0;  // the newest revision then
  };
  template <typename Value>
  StatusOr<Found<Value>> Read(std::string_view id);
  // All of them, each with its id set; sorted by id.
  template <typename Value>
  StatusOr<std::vector<Found<Value>>> ReadAll();
  // Live, and of this owner. Errors: kNotFound, kStaleOwner
  template <typename Value>
  StatusOr<Found<Value>> Owned(std::string_view id, uint64_t owner_epoch);
  // Puts `value` as its record and gives it a new lease: it is the caller's from now on.
  template <typename Value>
  StatusOr<uint64_t> TakeOver(Value value, const Found<Value>& before, absl::Duration ttl);
  template <typename Value>
  Status Prolong(std::string_view id, uint64_t owner_epoch);
  // Takes the record away, and what goes with its lease.
  template <typename Value>
  Status End(std::string_view id, uint64_t owner_epoch);
  // Binds the session that was found; to an empty agent: to none.
  // Errors: kAborted  it was changed, or it or the agent is gone
  Status Rebind(const Found<Session>& found, std::string_view agent);
  // Sessions bound to an agent that is gone are bound to none.
  Status UnbindAll(std::string_view agent);

  MetaStore& meta_;
  MetaWriter writer_;
  const SessionStoreOptions options_;
};

}  // namespace holdfast
