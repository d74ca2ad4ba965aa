#include "stores/memory_engine.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/stores/fake_stores.h"
#include "tests/support/recording_log.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(MemoryEngineTest, SaysThatNothingSurvives) {
  RecordingLog log;
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory, .log = &log}));
  EXPECT_EQ(log.Count("nothing survives"), 1u);
  EXPECT_EQ(engine->stats().io_backend, "memory");
}

TEST(MemoryEngineTest, ChangesAreRefusedAfterClose) {
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  EXPECT_OK(engine->deliveries().Put(DeliveryFor("a")).Wait());
  EXPECT_OK(engine->Close());
  EXPECT_FAILS(engine->deliveries().Put(DeliveryFor("b")).Wait(), kFailedPrecondition, kClosed);
  EXPECT_FAILS(engine->offsets().Write({"t", "c", 0}, 1).Wait(), kFailedPrecondition, kClosed);
  EXPECT_FAILS(engine->dead_letters().Record(DeadLetterFor("d")).Wait(), kFailedPrecondition,
               kClosed);
  EXPECT_FAILS(engine->Transact([](Transaction& t) { t.PutDelivery(DeliveryFor("c")); }).Wait(),
               kFailedPrecondition, kClosed);
  EXPECT_EQ(engine->deliveries().Count(), 1u);
}

TEST(MemoryEngineTest, IdsDoNotRepeat) {
  std::set<std::string> ids;
  for (int boot = 0; boot < 10; ++boot) {
    ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(ids.insert(engine->NewDeliveryId()).second);
  }
}

}  // namespace
}  // namespace holdfast
