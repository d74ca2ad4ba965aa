// The simulated clients against a dispatcher that only writes down what it is asked.
#include "tools/demo_clients.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/support/status_matchers.h"
#include "tools/demo_temper.h"

namespace holdfast {
namespace {

class WrittenDown final : public Dispatcher {
 public:
  Status Recover() override { return absl::OkStatus(); }
  Status LetGo(const SourceKey&) override { return absl::OkStatus(); }
  Status Adopt(const SourceKey&, std::optional<uint64_t>) override { return absl::OkStatus(); }
  void Start() override {}
  StatusOr<DeliverResult> Deliver(const SourceEvent&, const std::vector<Target>&) override {
    return DeliverResult();
  }
  void Ack(const Acknowledgement& ack, std::function<void(Status)> done) override {
    Write("ack", ack);
    done(answer);
  }
  Status Nack(const Acknowledgement& nack) override {
    Write("nack", nack);
    return absl::OkStatus();
  }
  void Withdraw(std::string_view, std::function<void(Status)>) override {}
  void Resubscribe(const Resubscription&, std::function<void(Status)>) override {}
  void ChannelOpened(std::string_view client, std::shared_ptr<Channel> channel) override {
    MutexLock lock(mu_);
    open_[std::string(client)] = std::move(channel);
    calls_.push_back("open " + std::string(client));
    changed_.NotifyAll();
  }
  void ChannelClosed(std::string_view client, const Channel* channel) override {
    MutexLock lock(mu_);
    EXPECT_EQ(open_[std::string(client)].get(), channel);
    open_.erase(std::string(client));
    calls_.push_back("close " + std::string(client));
    changed_.NotifyAll();
  }
  void Tick() override {}
  uint64_t Pending(std::string_view) override { return 0; }
  StatusOr<std::vector<PendingDelivery>> Pending(const PendingFilter&) override {
    return std::vector<PendingDelivery>();
  }
  DispatcherStats Stats() override { return {}; }

  std::shared_ptr<Channel> ChannelOf(const std::string& client) {
    MutexLock lock(mu_);
    return open_.at(client);
  }
  void Push(const std::string& client, uint64_t offset, uint32_t attempt) {
    PushOver(*ChannelOf(client), offset, attempt);
  }
  static void PushOver(Channel& channel, uint64_t offset, uint32_t attempt) {
    Delivery delivery;
    delivery.id = std::to_string(offset);
    delivery.epoch = 1;
    delivery.offset = offset;
    delivery.attempt = attempt;
    channel.Push(delivery);
  }
  // The calls, once there are so many.
  std::vector<std::string> Calls(size_t count) {
    MutexLock lock(mu_);
    while (calls_.size() < count) changed_.Wait(mu_);
    return calls_;
  }

  Status answer;

 private:
  void Write(const std::string& what, const Acknowledgement& ack) {
    MutexLock lock(mu_);
    EXPECT_EQ(ack.epoch, 1U);
    calls_.push_back(fmt::format("{} {} {}", what, ack.client, ack.id));
    changed_.NotifyAll();
  }

  Mutex mu_;
  CondVar changed_;
  std::map<std::string, std::shared_ptr<Channel>> open_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mu_);
};

class DemoClientsTest : public testing::Test {
 protected:
  static constexpr uint64_t kSeed = 7;

  // The first offset to whose first push client `number` reacts so.
  static uint64_t OffsetWith(DemoReply::Act act, uint64_t number) {
    DemoPush push{.seed = kSeed, .client = number, .offset = 0, .attempt = 1};
    while (ReplyTo(push).act != act) ++push.offset;
    return push.offset;
  }
  DemoClientsOptions Options() {
    return {.seed = kSeed,
            .names = {"a", "b", "c", "d", "e"},
            .tell =
                [this](const DemoReport& report) {
                  MutexLock lock(mu_);
                  told_.push_back(report.step);
                  return tell_answer_;
                },
            .failed =
                [this](const Status& why) {
                  MutexLock lock(mu_);
                  failed_ = why;
                }};
  }
  // What was told, once nothing is answered any more.
  std::vector<DemoStep> Told() {
    clients_.Stop();
    MutexLock lock(mu_);
    return told_;
  }

  Mutex mu_;
  std::vector<DemoStep> told_ ABSL_GUARDED_BY(mu_);
  Status failed_ ABSL_GUARDED_BY(mu_);
  Status tell_answer_ ABSL_GUARDED_BY(mu_);
  WrittenDown dispatcher_;
  DemoClients clients_{RealClock(), Options()};
};

TEST_F(DemoClientsTest, APushIsToldBeforeItIsAcknowledged) {
  clients_.Start(dispatcher_);
  dispatcher_.Push("a", 3, 1);
  EXPECT_EQ(dispatcher_.Calls(6).back(), "ack a 3");
  EXPECT_EQ(Told(), (std::vector{DemoStep::kPush, DemoStep::kTry, DemoStep::kAck}));
}

TEST_F(DemoClientsTest, ARefusedAckIsTold) {
  dispatcher_.answer = NotFound("ended");
  clients_.Start(dispatcher_);
  dispatcher_.Push("a", 3, 1);
  dispatcher_.Calls(6);
  EXPECT_EQ(Told(), (std::vector{DemoStep::kPush, DemoStep::kTry, DemoStep::kRefuse}));
  MutexLock lock(mu_);
  EXPECT_OK(failed_);
}

TEST_F(DemoClientsTest, AJournalThatFailsEndsIt) {
  dispatcher_.answer = Unavailable(Detail::kPoisoned, "failed");
  clients_.Start(dispatcher_);
  dispatcher_.Push("a", 3, 1);
  dispatcher_.Calls(6);
  EXPECT_EQ(Told(), (std::vector{DemoStep::kPush, DemoStep::kTry}));
  MutexLock lock(mu_);
  EXPECT_FAILS(failed_, kUnavailable, kPoisoned);
}

TEST_F(DemoClientsTest, ANackedEventIsAcknowledgedWhenItComesAgain) {
  clients_.Start(dispatcher_);
  const uint64_t offset = OffsetWith(DemoReply::Act::kNack, 2);
  dispatcher_.Push("c", offset, 1);
  EXPECT_EQ(dispatcher_.Calls(6).back(), fmt::format("nack c {}", offset));
  dispatcher_.Push("c", offset, 2);
  EXPECT_EQ(dispatcher_.Calls(7).back(), fmt::format("ack c {}", offset));
}

TEST_F(DemoClientsTest, AClientThatDiesAnswersNothingThatItHadAndComesBack) {
  clients_.Start(dispatcher_);
  const uint64_t deadly = OffsetWith(DemoReply::Act::kClose, 3);
  const std::shared_ptr<Channel> channel = dispatcher_.ChannelOf("d");
  WrittenDown::PushOver(*channel, deadly, 1);
  WrittenDown::PushOver(*channel, OffsetWith(DemoReply::Act::kAck, 3), 1);
  const std::vector<std::string> calls = dispatcher_.Calls(7);
  EXPECT_EQ(calls[5], "close d");
  EXPECT_EQ(calls[6], "open d");
  dispatcher_.Push("d", deadly, 2);
  EXPECT_EQ(dispatcher_.Calls(8).back(), fmt::format("ack d {}", deadly));
}

TEST_F(DemoClientsTest, PoisonIsLeftAloneAndTheRestIsNot) {
  clients_.Start(dispatcher_);
  dispatcher_.Push("e", OffsetWith(DemoReply::Act::kNothing, 4), 1);
  const uint64_t good = OffsetWith(DemoReply::Act::kAck, 4);
  dispatcher_.Push("e", good, 1);
  EXPECT_EQ(dispatcher_.Calls(6).back(), fmt::format("ack e {}", good));
}

TEST_F(DemoClientsTest, AListenerThatIsGoneEndsIt) {
  {
    MutexLock lock(mu_);
    tell_answer_ = Unavailable(Detail::kIo, "nobody listens");
  }
  clients_.Start(dispatcher_);
  dispatcher_.Push("a", 3, 1);
  MutexLock lock(mu_);
  EXPECT_FAILS(failed_, kUnavailable, kIo);
}

}  // namespace
}  // namespace holdfast
