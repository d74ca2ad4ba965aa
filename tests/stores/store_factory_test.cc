#include "holdfast/store_factory.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "holdfast/engine.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(StoreFactoryTest, MakesAllThreeStores) {
  SimClock clock;
  ASSERT_OK_AND_ASSIGN(const SharedStores stores,
                       MakeSharedStores({.backend = SharedBackend::kMemory}, clock));
  EXPECT_NE(stores.subscriptions, nullptr);
  EXPECT_NE(stores.sessions, nullptr);
  EXPECT_NE(stores.tasks, nullptr);
}

// Proves: S6, W2
TEST(StoreFactoryTest, WhatCannotBeIsRefusedByTheNameOfItsSetting) {
  const struct {
    std::string setting;
    std::function<void(SharedStoreOptions&)> spoil;
  } kCases[] = {
      // A cluster never starts on a store that is private to one process.
      {"shared.backend", [](auto& o) { o.cluster = true; }},
      {"shared.backend",
       [](auto& o) {
         o.cluster = true;
         o.backend = SharedBackend::kEmbeddedMeta;
       }},
      {"shared.backend",
       [](auto& o) {
         o.cluster = true;
         o.backend = SharedBackend::kMemory;
       }},
      {"shared.meta_endpoints", [](auto& o) { o.backend = SharedBackend::kRemoteMeta; }},
      {"shared.meta_endpoints",
       [](auto& o) {
         o.backend = SharedBackend::kRemoteMeta;
         o.meta_endpoints = {"http://localhost:2379", "https://localhost:2379"};
       }},
      {"shared.meta_endpoints",
       [](auto& o) {
         o.backend = SharedBackend::kRemoteMeta;
         o.meta_endpoints = {"localhost:2379"};
       }},
      // In plain it would go past what the files are for.
      {"shared.meta_ca_file",
       [](auto& o) {
         o.backend = SharedBackend::kRemoteMeta;
         o.meta_endpoints = {"http://localhost:2379"};
         o.meta_ca_file = "/ca.pem";
       }},
      {"shared.meta_cert_file", [](auto& o) { o.meta_cert_file = "/cert.pem"; }},
      {"shared.meta_endpoints",
       [](auto& o) {
         o.backend = SharedBackend::kRemoteMeta;
         o.meta_endpoints = {"http://localhost"};
       }},
      {"shared.meta_user", [](auto& o) { o.meta_user = "root"; }},
      {"shared.meta_endpoints", [](auto& o) { o.meta_endpoints = {"http://localhost:2379"}; }},
      // Nacos cannot tell who lives.
      {"shared.backend",
       [](auto& o) {
         o.cluster = true;
         o.backend = SharedBackend::kNacosMeta;
         o.meta_endpoints = {"http://localhost:8848"};
       }},
      {"shared.meta_endpoints", [](auto& o) { o.backend = SharedBackend::kNacosMeta; }},
      {"shared.nacos", [](auto& o) { o.nacos.space = "team"; }},
      {"shared.nacos",
       [](auto& o) {
         o.backend = SharedBackend::kRemoteMeta;
         o.meta_endpoints = {"http://localhost:2379"};
         o.nacos.api = NacosApi::kV1;
       }},
      {"shared.nacos: group",
       [](auto& o) {
         o.backend = SharedBackend::kNacosMeta;
         o.meta_endpoints = {"http://localhost:8848"};
         o.nacos.group = "not a name";
       }},
      {"shared.nacos: api",
       [](auto& o) {
         o.backend = SharedBackend::kNacosMeta;
         o.meta_endpoints = {"http://localhost:8848"};
         o.nacos.api = static_cast<NacosApi>(2);
       }},
      {"shared.backend", [](auto& o) { o.backend = static_cast<SharedBackend>(99); }},
      {"shared.sessions.agent_ttl", [](auto& o) { o.sessions.agent_ttl = {}; }},
      {"shared.sessions.session_idle_max",
       [](auto& o) { o.sessions.session_idle_max = absl::InfiniteDuration(); }},
      {"shared.tasks.pending_idle_max",
       [](auto& o) { o.tasks.pending_idle_max = -absl::Seconds(1); }},
      {"shared.tasks.terminal_kept", [](auto& o) { o.tasks.terminal_kept = {}; }},
  };
  SimClock clock;
  for (const auto& wrong : kCases) {
    SharedStoreOptions options;
    wrong.spoil(options);
    EXPECT_FAILS(CheckSharedStoreOptions(options), kInvalidArgument, kNone);
    const auto stores = MakeSharedStores(options, clock);
    EXPECT_FAILS(stores, kInvalidArgument, kNone) << wrong.setting;
    EXPECT_TRUE(Message(stores.status()).starts_with(wrong.setting)) << stores.status().ToString();
    // The engine hands the refusal on.
    EXPECT_FAILS(Engine::Open({.backend = Backend::kMemory, .shared = options}), kInvalidArgument,
                 kNone);
  }
}

// Proves: S6
TEST(StoreFactoryTest, FilesThatCannotServeAreNamedWithTheirSetting) {
  SimClock clock;
  SharedStoreOptions options{.backend = SharedBackend::kRemoteMeta,
                             .meta_endpoints = {"https://localhost:2379"}};
  options.meta_ca_file = "/nonexistent/ca.pem";
  EXPECT_OK(CheckSharedStoreOptions(options));
  EXPECT_EQ(Message(MakeSharedStores(options, clock).status()),
            "shared.meta_ca_file: /nonexistent/ca.pem: it cannot be read: No such file or "
            "directory");
  options.meta_ca_file = "";
  options.meta_key_file = "/nonexistent/key.pem";
  EXPECT_EQ(Message(MakeSharedStores(options, clock).status()),
            "shared.meta_cert_file: missing; it goes with shared.meta_key_file");
}

TEST(StoreFactoryTest, TheEmbeddedMetaIsAnEngines) {
  SimClock clock;
  const auto stores = MakeSharedStores({.backend = SharedBackend::kEmbeddedMeta}, clock);
  EXPECT_FAILS(stores, kInvalidArgument, kNone);
  EXPECT_TRUE(Message(stores.status()).starts_with("shared.backend"));
  EXPECT_OK(CheckSharedStoreOptions({}));
}

// Proves: W2
TEST(StoreFactoryTest, TheTimeLimitsReachTheStores) {
  SimClock clock;
  SharedStoreOptions options{.backend = SharedBackend::kMemory};
  options.sessions.agent_ttl = absl::Seconds(2);
  options.sessions.session_idle_max = absl::Seconds(3);
  options.tasks.pending_idle_max = absl::Seconds(4);
  options.tasks.terminal_kept = absl::Seconds(5);
  ASSERT_OK_AND_ASSIGN(const SharedStores stores, MakeSharedStores(options, clock));
  ASSERT_OK(stores.sessions->RegisterAgent({.id = "a"}));
  ASSERT_OK(stores.sessions->OpenSession({.id = "s"}));
  ASSERT_OK(stores.tasks->Create({.id = "t"}));
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(stores.sessions->Expire()->agents.size(), 1u);
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(stores.sessions->Expire()->sessions.size(), 1u);
  EXPECT_TRUE(stores.tasks->ExpireStale()->failed.empty());
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(stores.tasks->ExpireStale()->failed.size(), 1u);
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(stores.tasks->ExpireStale()->forgotten.size(), 1u);
}

}  // namespace
}  // namespace holdfast
