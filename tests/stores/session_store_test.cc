#include "stores/session_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "meta/memory_meta.h"
#include "tests/meta/faulty_meta.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Names = std::vector<std::string>;

class SessionStoreTest : public testing::Test {
 protected:
  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  FaultyMeta faulty_{meta_};
  const SessionStoreOptions options_{.agent_ttl = absl::Seconds(30),
                                     .session_idle_max = absl::Seconds(100)};
  MetaSessionStore store_{faulty_, 1, options_};
};

TEST_F(SessionStoreTest, AnAgentRegistersBecomesReadyAndLeaves) {
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
TEST_F(SessionStoreTest, AReplacedOwnerIsRefused) {
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

TEST_F(SessionStoreTest, WhoeverIsSilentIsGone) {
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

TEST_F(SessionStoreTest, TouchingKeepsASession) {
  const uint64_t session = *store_.OpenSession({.id = "s"});
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Seconds(99));
    ASSERT_OK(store_.TouchSession("s", session));
  }
  ASSERT_OK(store_.CloseSession("s", session));
  EXPECT_FAILS(store_.GetSession("s"), kNotFound, kNone);
}

TEST_F(SessionStoreTest, SessionsAreBoundToRegisteredAgents) {
  const uint64_t session = *store_.OpenSession({.id = "s"});
  EXPECT_FAILS(store_.Bind("s", session, "nobody"), kFailedPrecondition, kNotReady);
  const uint64_t agent = *store_.RegisterAgent({.id = "a"});
  ASSERT_OK(store_.Bind("s", session, "a"));
  EXPECT_EQ(store_.SessionsOf("a")->size(), 1u);
  ASSERT_OK(store_.UnregisterAgent("a", agent));
  EXPECT_EQ(store_.GetSession("s")->agent, "");
  ASSERT_OK(store_.Bind("s", session, ""));
}

TEST_F(SessionStoreTest, IdsAreNotEmpty) {
  EXPECT_FAILS(store_.RegisterAgent({.id = ""}), kInvalidArgument, kNone);
  EXPECT_FAILS(store_.OpenSession({.id = ""}), kInvalidArgument, kNone);
}

// Proves: S5, S8
TEST_F(SessionStoreTest, OfRacingOwnersTheLastOneHoldsItAndKnows) {
  for (int round = 0; round < 20; ++round) {
    const std::string id = "a" + std::to_string(round);
    std::vector<uint64_t> epochs(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < epochs.size(); ++i) {
      threads.emplace_back([&, i] {
        MetaSessionStore other(meta_, 10 + i, options_);
        const auto epoch = other.RegisterAgent({.id = id, .instance = std::to_string(i)});
        EXPECT_OK(epoch);
        epochs[i] = epoch.ok() ? *epoch : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto last = std::max_element(epochs.begin(), epochs.end());
    EXPECT_EQ(std::count(epochs.begin(), epochs.end(), *last), 1);
    EXPECT_EQ(store_.GetAgent(id)->owner_epoch, *last);
    EXPECT_EQ(store_.GetAgent(id)->instance, std::to_string(last - epochs.begin()));
    for (const uint64_t epoch : epochs) EXPECT_EQ(store_.Heartbeat(id, epoch).ok(), epoch == *last);
  }
}

// An agent that leaves and comes back is nobody's old agent.
// Proves: S8
TEST_F(SessionStoreTest, EpochsRiseOverRemovalAndExpiry) {
  uint64_t before = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t epoch, store_.RegisterAgent({.id = "a"}));
    EXPECT_GT(epoch, before);
    before = epoch;
    if (i % 2 == 0) {
      ASSERT_OK(store_.UnregisterAgent("a", epoch));
    } else {
      clock_.Advance(absl::Seconds(31));
      if (i == 1) {
        ASSERT_OK(store_.Expire());
      }
    }
  }
}

// Everybody looks for what expired; each is named by one.
TEST_F(SessionStoreTest, WhatExpiredIsNamedOnce) {
  MetaSessionStore other(meta_, 2, options_);
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(store_.RegisterAgent({.id = "a" + std::to_string(i)}));
    ASSERT_OK(store_.OpenSession({.id = "s" + std::to_string(i)}));
  }
  clock_.Advance(absl::Seconds(200));
  std::atomic<size_t> agents = 0, sessions = 0;
  std::vector<std::thread> threads;
  for (MetaSessionStore* store : {&store_, &other}) {
    threads.emplace_back([&agents, &sessions, store] {
      const auto expired = store->Expire();
      ASSERT_OK(expired);
      agents += expired->agents.size();
      sessions += expired->sessions.size();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(agents, 20u);
  EXPECT_EQ(sessions, 20u);
  EXPECT_TRUE(meta_.List("", {})->entries.empty());
}

// Whoever unregisters an agent may die before it comes to the agent's sessions.
TEST_F(SessionStoreTest, SessionsOfAnAgentThatIsGoneAreFoundLater) {
  const uint64_t agent = *store_.RegisterAgent({.id = "a"});
  const uint64_t session = *store_.OpenSession({.id = "s"});
  ASSERT_OK(store_.Bind("s", session, "a"));
  int writes = 0;
  faulty_.SetFaults([&](FaultyMeta::Call call) {
    const bool later = call == FaultyMeta::Call::kWrite && ++writes > 1;
    return later ? FaultyMeta::Fault::kUnreachable : FaultyMeta::Fault::kNone;
  });
  EXPECT_FAILS(store_.UnregisterAgent("a", agent), kUnavailable, kIo);
  faulty_.Heal();
  EXPECT_FAILS(store_.GetAgent("a"), kNotFound, kNone);
  EXPECT_EQ(store_.GetSession("s")->agent, "a");
  ASSERT_OK(store_.Expire());
  EXPECT_EQ(store_.GetSession("s")->agent, "");
  EXPECT_TRUE(store_.SessionsOf("a")->empty());
}

// Proves: S2, S3
TEST_F(SessionStoreTest, LostAnswersAreResolvedAndOutagesTold) {
  int calls = 0;
  faulty_.SetFaults([&](FaultyMeta::Call call) {
    if (call != FaultyMeta::Call::kWrite) return FaultyMeta::Fault::kNone;
    return ++calls % 2 == 1 ? FaultyMeta::Fault::kUnanswered : FaultyMeta::Fault::kLost;
  });
  const uint64_t agent = *store_.RegisterAgent({.id = "a"});
  const uint64_t session = *store_.OpenSession({.id = "s"});
  ASSERT_OK(store_.Bind("s", session, "a"));
  ASSERT_OK(store_.MarkReady("a", agent));
  EXPECT_EQ(store_.SessionsOf("a")->size(), 1u);
  EXPECT_EQ(store_.GetAgent("a")->state, AgentState::kReady);
  faulty_.SetFaults([](FaultyMeta::Call) { return FaultyMeta::Fault::kUnreachable; });
  EXPECT_FAILS(store_.Heartbeat("a", agent), kUnavailable, kIo);
  EXPECT_FAILS(store_.GetAgent("a"), kUnavailable, kIo);
  EXPECT_FAILS(store_.RegisterAgent({.id = "b"}), kUnavailable, kIo);
  EXPECT_FAILS(store_.Expire(), kUnavailable, kIo);
}

}  // namespace
}  // namespace holdfast
