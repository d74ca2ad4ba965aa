// SessionStore: the agents that are alive, the sessions of clients, and which agent serves which
// session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace holdfast {

struct SessionStoreOptions {
  // An agent without a heartbeat for this long is gone. 1 s .. 1 h.
  absl::Duration agent_ttl = absl::Seconds(30);
  // A session that nobody touched for this long is over. 1 s .. 30 days.
  absl::Duration session_idle_max = absl::Minutes(30);
};

enum class AgentState : uint8_t {
  kRegistered = 1,  // known, takes no work yet; a restarted agent starts here again
  kReady = 2,
};

struct Agent {
  std::string id;         // not empty
  std::string instance;   // that it is connected to: the owner of this entry
  std::string card;       // what it says about itself; kept as given
  uint32_t capacity = 0;  // tasks at once; 0: no limit of its own
  AgentState state = AgentState::kRegistered;
  uint64_t owner_epoch = 0;  // set by the store

  bool operator==(const Agent&) const = default;
};

struct Session {
  std::string id;  // not empty
  std::string client;
  std::string instance;      // that serves it: the owner of this entry
  std::string agent;         // that it is bound to; empty: none
  uint64_t owner_epoch = 0;  // set by the store

  bool operator==(const Session&) const = default;
};

// Shared between the instances of a cluster: kept in a Meta, or in memory where there is one
// instance. Names are arbitrary bytes, shorter than 64 KiB.
//
// Every entry has one owner. Registering or opening it takes it over and returns a new owner epoch,
// higher than any before; every later write must carry it, so that an owner that was replaced is
// refused whatever it still believes.
// Durable: when a mutation returns, as far as the backend goes.
// Threads: any.
// Errors:  of every call
//            kUnavailable       the Meta cannot be reached, or (kUnknownOutcome) did not answer
//          of every call with an owner epoch
//            kNotFound          no such entry, or it expired: register or open it again
//            kPermissionDenied  kStaleOwner: another owner took over; stop
class SessionStore {
 public:
  virtual ~SessionStore() = default;

  // Registers the agent, or takes it over; it is not ready. `state` and `owner_epoch` of `agent`
  // are ignored. Returns the owner epoch.
  // Errors: kInvalidArgument  an empty id, a name of 64 KiB or more
  virtual absl::StatusOr<uint64_t> RegisterAgent(const Agent& agent) = 0;
  virtual absl::Status MarkReady(std::string_view agent, uint64_t owner_epoch) = 0;
  virtual absl::Status Heartbeat(std::string_view agent, uint64_t owner_epoch) = 0;
  virtual absl::Status UnregisterAgent(std::string_view agent, uint64_t owner_epoch) = 0;
  // Errors: kNotFound
  virtual absl::StatusOr<Agent> GetAgent(std::string_view agent) = 0;
  // All agents, sorted by id.
  virtual absl::StatusOr<std::vector<Agent>> Agents() = 0;

  // Opens the session or takes it over; what it is bound to stays. `agent` and `owner_epoch` of
  // `session` are ignored. Returns the owner epoch.
  // Errors: kInvalidArgument  an empty id, a name of 64 KiB or more
  virtual absl::StatusOr<uint64_t> OpenSession(const Session& session) = 0;
  // Keeps the session from expiring.
  virtual absl::Status TouchSession(std::string_view session, uint64_t owner_epoch) = 0;
  virtual absl::Status CloseSession(std::string_view session, uint64_t owner_epoch) = 0;
  // Binds the session to a registered agent; an empty agent unbinds it. The agent need not be
  // ready.
  // Errors: kFailedPrecondition  kNotReady: no such agent
  virtual absl::Status Bind(std::string_view session, uint64_t owner_epoch,
                            std::string_view agent) = 0;
  // Errors: kNotFound
  virtual absl::StatusOr<Session> GetSession(std::string_view session) = 0;
  // The sessions bound to an agent, sorted by id.
  virtual absl::StatusOr<std::vector<Session>> SessionsOf(std::string_view agent) = 0;

  // What Expire took away.
  struct Expired {
    std::vector<std::string> agents;
    std::vector<std::string> sessions;
  };
  // Removes the agents without a heartbeat and the idle sessions, by the monotonic clock. Sessions
  // bound to an agent that is gone are unbound.
  virtual absl::StatusOr<Expired> Expire() = 0;
};

}  // namespace holdfast
