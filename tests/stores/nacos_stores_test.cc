// The shared stores on a Nacos: what engines share there, and what they are told that it cannot do.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "holdfast/engine.h"
#include "tests/support/nacos_double.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class NacosStoresTest : public testing::TestWithParam<NacosApi> {
 protected:
  static EngineOptions OptionsFor(const NacosDouble& nacos) {
    EngineOptions options{.backend = Backend::kMemory};
    options.shared.backend = SharedBackend::kNacosMeta;
    options.shared.meta_endpoints = {"http://" + EndpointText(nacos.endpoint())};
    options.shared.nacos.api = GetParam();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Nacos, NacosStoresTest, testing::Values(NacosApi::kV1, NacosApi::kV3),
                         [](const auto& info) {
                           return std::string(info.param == NacosApi::kV1 ? "V1" : "V3");
                         });

// Proves: S4, W2
TEST_P(NacosStoresTest, EnginesShareSubscriptionsAndTasks) {
  NacosDouble nacos;
  const EngineOptions options = OptionsFor(nacos);
  ASSERT_OK_AND_ASSIGN(const auto one, Engine::Open(options));
  ASSERT_OK_AND_ASSIGN(const auto two, Engine::Open(options));
  ASSERT_OK_AND_ASSIGN(TaskRecord task, one->tasks().Create({.id = "t", .input = "in"}));
  EXPECT_EQ(two->tasks().Get("t")->input, "in");
  EXPECT_FAILS(two->tasks().Create({.id = "t"}), kAlreadyExists, kNone);
  ASSERT_OK(one->subscriptions().Put("topic", "c", {.instance = "i"}));
  EXPECT_EQ(one->subscriptions().Topics()->size(), 1u);  // at once
  while (two->subscriptions().Topics()->empty()) std::this_thread::yield();
  ASSERT_OK(two->subscriptions().Remove({.topic = "topic", .client = "c", .instance = "i"}));
  while (!one->subscriptions().Topics()->empty()) std::this_thread::yield();
  nacos.Kill();
  EXPECT_EQ(two->tasks().Get("t").status().code(), StatusCode::kUnavailable);
}

TEST_P(NacosStoresTest, WhatNeedsALeaseIsRefusedAndNamesWhy) {
  NacosDouble nacos;
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open(OptionsFor(nacos)));
  const auto agent = engine->sessions().RegisterAgent({.id = "a"});
  EXPECT_FAILS(agent, kUnimplemented, kNone);
  EXPECT_NE(Message(agent.status()).find("leases"), std::string_view::npos) << agent.status();
}

// Proves: S6
TEST_P(NacosStoresTest, AnEngineDoesNotStartWithoutANacosThatItCanUse) {
  NacosDouble old({"--ignore-cas"});
  const auto on_old = Engine::Open(OptionsFor(old));
  EXPECT_FAILS(on_old, kFailedPrecondition, kNone);
  EXPECT_TRUE(Message(on_old.status()).starts_with("shared.meta_endpoints")) << on_old.status();
  old.Kill();
  const auto alone = Engine::Open(OptionsFor(old));
  EXPECT_EQ(alone.status().code(), StatusCode::kUnavailable) << alone.status();
  EXPECT_TRUE(Message(alone.status()).starts_with("shared.meta_endpoints")) << alone.status();
}

}  // namespace
}  // namespace holdfast
