#include "tests/runtime/dispatcher_world.h"
#include "tests/support/recording_log.h"

namespace holdfast {
namespace {

class DispatcherViewTest : public testing::Test {
 protected:
  // The lines about `id`, without it.
  std::vector<std::string> LinesOf(const std::string& id) {
    std::vector<std::string> lines;
    for (const std::string& line : audit_.lines()) {
      const size_t at = line.find(" id=" + id + " ");
      if (at != std::string::npos) lines.push_back(line.substr(0, at));
    }
    return lines;
  }
  std::vector<PendingDelivery> Pending(const PendingFilter& filter) {
    auto pending = world_.dispatcher->Pending(filter);
    EXPECT_OK(pending);
    if (!pending.ok()) return {};
    std::sort(pending->begin(), pending->end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    return *std::move(pending);
  }
  RecordingLog audit_;
  DispatcherWorld world_;
};

TEST_F(DispatcherViewTest, OfASampledDeliveryEveryLineIsThereAndOfTheOthersNone) {
  world_.options.audit = &audit_;
  world_.options.audit_one_in = 4;
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  std::vector<std::string> ids;
  for (uint64_t offset = 0; offset < 200; ++offset) {
    ids.push_back(world_.Deliver(offset, {"billing"}).targets[0].id);
  }
  for (const std::string& id : ids) EXPECT_FALSE(world_.Ack(id, "billing", 9).ok());
  world_.Kill();
  world_.StartAndRecover();
  for (const std::string& id : ids) EXPECT_OK(world_.Ack(id, "billing"));
  int sampled = 0;
  const std::vector<std::string> all{"push", "refuse-ack", "ack"};
  for (const std::string& id : ids) {
    const std::vector<std::string> lines = LinesOf(id);
    if (lines.empty()) continue;
    ++sampled;
    EXPECT_EQ(lines, all) << id;
  }
  EXPECT_GT(sampled, 25);
  EXPECT_LT(sampled, 80);
}

TEST_F(DispatcherViewTest, ALineIsOneLineWhateverAClientSends) {
  world_.options.audit = &audit_;
  world_.StartAndRecover();
  EXPECT_FALSE(world_.Ack("no\nsuch \"id\"", "a b", 7).ok());
  EXPECT_FALSE(world_.Ack(std::string("\xff\0", 2), "", 7).ok());
  ASSERT_EQ(audit_.lines().size(), 2u);
  EXPECT_EQ(audit_.lines()[0],
            R"(refuse-ack id="no\nsuch \"id\"" client="a b" epoch=7 why="no such )"
            R"(acknowledgement is remembered")");
  EXPECT_EQ(audit_.lines()[1].find('\n'), std::string::npos);
  EXPECT_TRUE(audit_.lines()[1].starts_with(R"(refuse-ack id={"base64":"/wA="} client="" )"));
}

TEST_F(DispatcherViewTest, SamplingOneInNoneIsRefused) {
  world_.options.audit_one_in = 0;
  world_.storage = std::make_unique<SimStorage>();
  EngineOptions options;
  options.backend = Backend::kMemory;
  const auto engine = Engine::Open(options).value();
  EXPECT_EQ(Dispatcher::Make(*engine, world_.rng, world_.options, world_.host).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(DispatcherViewTest, WhatIsInFlightIsShownAsItStands) {
  world_.options.attempts_max = 2;
  world_.StartAndRecover();
  const std::string waiting = world_.Deliver(7, {"audit"}).targets[0].id;
  world_.Advance(absl::Seconds(2));
  const auto channel = world_.Open("billing");
  const std::string pushed = world_.Deliver(8, {"billing"}).targets[0].id;
  world_.Advance(absl::Seconds(1));
  const std::vector<PendingDelivery> all = Pending({});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, waiting);
  EXPECT_EQ(all[0].client, "audit");
  EXPECT_EQ(all[0].source, world_.kSource);
  EXPECT_EQ(all[0].offset, 7u);
  EXPECT_EQ(all[0].epoch, 1u);
  EXPECT_EQ(all[0].attempt, 0u);
  EXPECT_EQ(all[0].phase, DeliveryPhase::kWaiting);
  EXPECT_EQ(all[0].due_in, absl::ZeroDuration());
  EXPECT_EQ(all[0].age, absl::Seconds(3));
  EXPECT_EQ(all[1].id, pushed);
  EXPECT_EQ(all[1].attempt, 1u);
  EXPECT_EQ(all[1].phase, DeliveryPhase::kScheduled);
  EXPECT_GE(all[1].due_in, absl::Seconds(29));
  EXPECT_LE(all[1].due_in, absl::Seconds(29.1));
  EXPECT_EQ(all[1].age, absl::Seconds(1));
  EXPECT_EQ(DeliveryPhaseName(all[1].phase), "scheduled");

  world_.clock.Advance(absl::Seconds(30));
  world_.dispatcher->Tick();
  EXPECT_EQ(Pending({.client = "billing"})[0].phase, DeliveryPhase::kCounting);
  EXPECT_EQ(Pending({.client = "billing"})[0].attempt, 2u);
  world_.Settle();
  EXPECT_EQ(Pending({.client = "billing"})[0].phase, DeliveryPhase::kScheduled);
  world_.dispatcher->Ack({.id = pushed, .client = "billing", .epoch = 1}, [](const Status&) {});
  EXPECT_EQ(Pending({.client = "billing"})[0].phase, DeliveryPhase::kEnding);
  world_.Settle();
  EXPECT_TRUE(Pending({.client = "billing"}).empty());
}

TEST_F(DispatcherViewTest, AFilterChoosesAndALimitBounds) {
  world_.StartAndRecover();
  for (uint64_t i = 0; i < 9'000; ++i) {
    ASSERT_OK(world_.dispatcher->Deliver(
        {.source = {i % 2 == 0 ? "orders" : "bills", 1, 0}, .offset = {}, .event = "e"},
        {{.client = i % 3 == 0 ? "audit" : "billing"}}));
  }
  world_.Settle();
  EXPECT_EQ(Pending({}).size(), 100u);
  EXPECT_EQ(Pending({.limit = 10'000}).size(), 9'000u);
  EXPECT_EQ(Pending({.client = "audit", .limit = 10'000}).size(), 3'000u);
  EXPECT_EQ(Pending({.client = "audit", .topic = "orders", .limit = 10'000}).size(), 1'500u);
  EXPECT_EQ(Pending({.client = "audit", .topic = "orders", .limit = 7}).size(), 7u);
  EXPECT_TRUE(Pending({.client = "nobody"}).empty());
  EXPECT_TRUE(Pending({.topic = "nothing"}).empty());
  EXPECT_FALSE(Pending({.topic = "bills", .limit = 1})[0].offset.has_value());
  EXPECT_EQ(world_.dispatcher->Pending("audit"), 3'000u);
  for (const size_t limit : {0, 10'001}) {
    EXPECT_EQ(world_.dispatcher->Pending({.limit = limit}).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(DispatcherViewTest, WhatIsWithTheDeadLettersSaysSo) {
  class DownSink final : public DeadLetterSink {
   public:
    void Write(const Delivery&, std::string_view,
               std::function<void(absl::StatusOr<DeadLetterPlace>)> done) override {
      done(absl::UnavailableError("the sink is down"));
    }
  } sink;
  world_.host.sink = &sink;
  world_.options.attempts_max = 1;
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  world_.Deliver(7, {"billing"});
  world_.Advance(absl::Seconds(31));
  ASSERT_EQ(Pending({}).size(), 1u);
  EXPECT_EQ(Pending({})[0].phase, DeliveryPhase::kDeadLettering);
  EXPECT_EQ(DeliveryPhaseName(DeliveryPhase::kDeadLettering), "dead-lettering");
  EXPECT_EQ(DeliveryPhaseName(DeliveryPhase::kWaiting), "waiting");
  EXPECT_EQ(DeliveryPhaseName(DeliveryPhase::kCounting), "counting");
  EXPECT_EQ(DeliveryPhaseName(DeliveryPhase::kEnding), "ending");
}

}  // namespace
}  // namespace holdfast
