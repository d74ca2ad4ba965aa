#include "stores/memory_session_store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Names = std::vector<std::string>;

class MemorySessionStoreTest : public testing::Test {
 protected:
  SimClock clock_;
  MemorySessionStore store_{
      {.agent_ttl = absl::Seconds(30), .session_idle_max = absl::Seconds(100)}, clock_};
};

TEST_F(MemorySessionStoreTest, AnAgentRegistersBecomesReadyAndLeaves) {
  const uint64_t epoch = *store_.RegisterAgent({.id = "a", .instance = "i", .card = "{}"});
  EXPECT_EQ(store_.GetAgent("a")->state, AgentState::kRegistered);
  EXPECT_EQ(store_.GetAgent("a")->owner_epoch, epoch);
  ASSERT_OK(store_.MarkReady("a", epoch));
  EXPECT_EQ(store_.GetAgent("a")->state, AgentState::kReady);
  EXPECT_EQ(store_.Agents()->size(), 1u);
  ASSERT_OK(store_.UnregisterAgent("a", epoch));
  EXPECT_FAILS(store_.GetAgent("a"), kNotFound, kNone);
  EXPECT_FAILS(store_.UnregisterAgent("a", epoch), kNotFound, kNone);
}

// Proves: S8
TEST_F(MemorySessionStoreTest, AReplacedOwnerIsRefused) {
  const uint64_t old_agent = *store_.RegisterAgent({.id = "a", .instance = "i1"});
  const uint64_t new_agent = *store_.RegisterAgent({.id = "a", .instance = "i2"});
  EXPECT_GT(new_agent, old_agent);
  EXPECT_FAILS(store_.Heartbeat("a", old_agent), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(store_.MarkReady("a", old_agent), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(store_.UnregisterAgent("a", old_agent), kPermissionDenied, kStaleOwner);
  EXPECT_EQ(store_.GetAgent("a")->instance, "i2");

  const uint64_t old_session = *store_.OpenSession({.id = "s", .client = "c", .instance = "i1"});
  ASSERT_OK(store_.Bind("s", old_session, "a"));
  const uint64_t new_session = *store_.OpenSession({.id = "s", .client = "c", .instance = "i2"});
  EXPECT_GT(new_session, old_session);
  EXPECT_FAILS(store_.TouchSession("s", old_session), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(store_.Bind("s", old_session, ""), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(store_.CloseSession("s", old_session), kPermissionDenied, kStaleOwner);
  EXPECT_EQ(store_.GetSession("s")->agent, "a");  // the binding moved along
}

TEST_F(MemorySessionStoreTest, WhoeverIsSilentIsGone) {
  const uint64_t silent = *store_.RegisterAgent({.id = "silent"});
  const uint64_t alive = *store_.RegisterAgent({.id = "alive"});
  const uint64_t session = *store_.OpenSession({.id = "s"});
  ASSERT_OK(store_.Bind("s", session, "silent"));
  clock_.Advance(absl::Seconds(20));
  ASSERT_OK(store_.Heartbeat("alive", alive));
  EXPECT_TRUE(store_.Expire()->agents.empty());
  clock_.Advance(absl::Seconds(10));
  EXPECT_FAILS(store_.Heartbeat("silent", silent), kNotFound, kNone);  // before Expire, too
  EXPECT_FAILS(store_.GetAgent("silent"), kNotFound, kNone);
  const auto expired = store_.Expire();
  EXPECT_EQ(expired->agents, Names{"silent"});
  EXPECT_TRUE(expired->sessions.empty());
  EXPECT_EQ(store_.GetSession("s")->agent, "");
  clock_.Advance(absl::Seconds(70));
  EXPECT_EQ(store_.Expire()->sessions, Names{"s"});
  EXPECT_FAILS(store_.TouchSession("s", session), kNotFound, kNone);
}

TEST_F(MemorySessionStoreTest, TouchingKeepsASession) {
  const uint64_t session = *store_.OpenSession({.id = "s"});
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Seconds(99));
    ASSERT_OK(store_.TouchSession("s", session));
  }
  ASSERT_OK(store_.CloseSession("s", session));
  EXPECT_FAILS(store_.GetSession("s"), kNotFound, kNone);
}

TEST_F(MemorySessionStoreTest, SessionsAreBoundToRegisteredAgents) {
  const uint64_t session = *store_.OpenSession({.id = "s"});
  EXPECT_FAILS(store_.Bind("s", session, "nobody"), kFailedPrecondition, kNotReady);
  const uint64_t agent = *store_.RegisterAgent({.id = "a"});
  ASSERT_OK(store_.Bind("s", session, "a"));
  EXPECT_EQ(store_.SessionsOf("a")->size(), 1u);
  ASSERT_OK(store_.UnregisterAgent("a", agent));
  EXPECT_EQ(store_.GetSession("s")->agent, "");
  ASSERT_OK(store_.Bind("s", session, ""));
}

TEST_F(MemorySessionStoreTest, IdsAreNotEmpty) {
  EXPECT_FAILS(store_.RegisterAgent({.id = ""}), kInvalidArgument, kNone);
  EXPECT_FAILS(store_.OpenSession({.id = ""}), kInvalidArgument, kNone);
}

}  // namespace
}  // namespace holdfast
