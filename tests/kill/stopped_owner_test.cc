// Owners of a partition that are stopped exactly between the look at their lease and what they do
// upon it, until another instance has taken the partition: what each of them then still does.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/dispatcher.h"
#include "holdfast/engine.h"
#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "meta/membership.h"
#include "tests/kill/meta_server.h"
#include "tests/support/child_process.h"

namespace holdfast {
namespace {

constexpr absl::Duration kLeaseTtl = absl::Seconds(2);
constexpr char kClient[] = "billing";
constexpr char kValue[] = "/em/test/value";

// What the process does behind its look.
enum class Effect { kPush, kSourceAck, kMetaWrite };

SourceKey PartitionOf(Effect effect) { return {"orders", 1, static_cast<uint64_t>(effect)}; }
std::string KeyOf(Effect effect) { return kValue + std::to_string(static_cast<int>(effect)); }
std::string NameOf(Effect effect) { return "owner-" + std::to_string(static_cast<int>(effect)); }

std::unique_ptr<Membership> Join(MetaStore& meta, const std::string& name, uint64_t nonce) {
  return Membership::Join(meta, nonce, RealClock(),
                          {.instance = name, .lease_ttl = kLeaseTtl, .margin = kLeaseTtl / 10})
      .value();
}

// Asks the membership, and stops the process behind one of its answers.
class StoppingGuard final : public OwnershipGuard {
 public:
  explicit StoppingGuard(Membership& membership) : membership_(membership) {}
  bool Owns(const SourceKey& source) override {
    const bool owns = membership_.Owns(source);
    if (++looks_ == stop_at_) {
      CHECK(owns);
      raise(SIGSTOP);
    }
    return owns;
  }
  uint64_t looks() const { return looks_; }
  // Behind the `count`th look from now on.
  void StopAfter(uint64_t count) { stop_at_ = looks_ + count; }

 private:
  Membership& membership_;
  std::atomic<uint64_t> looks_ = 0, stop_at_ = 0;
};

// Counts what gets out, and how many looks there were by then.
class Outside final : public Channel, public SourceAck {
 public:
  explicit Outside(StoppingGuard& guard) : guard_(guard) {}
  void Push(const Delivery& delivery) override {
    epoch_ = delivery.epoch;
    Note(pushes_);
  }
  void Finished(const SourceKey&, std::optional<uint64_t>, uint64_t) override { Note(finished_); }

  // Return the looks when the last came.
  uint64_t AwaitPushes(uint64_t count) const { return Await(pushes_, count); }
  uint64_t AwaitFinished(uint64_t count) const { return Await(finished_, count); }
  uint64_t epoch() const { return epoch_; }
  uint64_t pushes() const { return pushes_; }
  uint64_t finished() const { return finished_; }

 private:
  void Note(std::atomic<uint64_t>& count) {
    looks_ = guard_.looks();
    ++count;
  }
  uint64_t Await(const std::atomic<uint64_t>& count, uint64_t wanted) const {
    while (count < wanted) std::this_thread::yield();
    return looks_;
  }

  StoppingGuard& guard_;
  std::atomic<uint64_t> pushes_ = 0, finished_ = 0, looks_ = 0, epoch_ = 0;
};

// What a process tells at its end.
struct Told {
  uint64_t pushes = 0, finished = 0;
  int write = 0, ack = 0, deliver = 0;  // codes of what it tried after it went on
};

// The process of one owner. It stops once, and goes on when another has its partition.
class Owner {
 public:
  Owner(const HttpEndpoint& meta, Effect effect)
      : effect_(effect), partition_(PartitionOf(effect)), transport_(NewHttpTransport({}).value()) {
    EtcdOptions options;
    options.endpoints = {meta};
    meta_ = EtcdMeta::Create(*transport_, RealClock(), options).value();
    membership_ = Join(*meta_, NameOf(effect), static_cast<uint64_t>(getpid()));
    CHECK(membership_->Acquire(partition_).ok());
    guard_ = std::make_unique<StoppingGuard>(*membership_);
    outside_ = std::make_shared<Outside>(*guard_);
    engine_ = Engine::Open({.backend = Backend::kMemory}).value();
    DispatcherOptions dispatching;
    dispatching.ack_timeout = dispatching.backoff_min = absl::Milliseconds(50);
    dispatching.tick_interval = absl::Milliseconds(10);
    dispatching.attempts_max = 1'000'000;
    dispatcher_ = Dispatcher::Make(*engine_, rng_, dispatching,
                                   {.source_ack = outside_.get(), .guard = guard_.get()})
                      .value();
    CHECK(dispatcher_->Recover().ok());
    dispatcher_->ChannelOpened(kClient, outside_);
  }

  Told Run() {
    // One event in full, to know at which look each effect comes.
    uint64_t before = guard_->looks();
    const std::string first = Deliver(0).value();
    const uint64_t looks_of_push = outside_->AwaitPushes(1) - before;
    before = guard_->looks();
    CHECK(Ack(first).ok());
    const uint64_t looks_of_ack = outside_->AwaitFinished(1) - before;

    const MetaCondition fence = membership_->Fence(partition_).value();
    if (effect_ == Effect::kPush) guard_->StopAfter(looks_of_push);
    const std::string second = Deliver(1).value();
    outside_->AwaitPushes(2);
    if (effect_ == Effect::kSourceAck) {
      guard_->StopAfter(looks_of_ack);
      CHECK(Ack(second).ok());
      outside_->AwaitFinished(2);
    }
    if (effect_ == Effect::kMetaWrite) raise(SIGSTOP);

    // Another has the partition. Whatever is tried now, all of it at once and again and again.
    const auto write = meta_->Transact(
        {.conditions = {fence}, .changes = {{.key = KeyOf(effect_), .value = "late", .lease = 0}}},
        {.timeout = absl::Seconds(20)});
    Told told{.write = static_cast<int>(write.status().code())};
    told.ack = static_cast<int>(Ack(second).code());
    told.deliver = static_cast<int>(Deliver(2).status().code());
    // Retries that come due are held back too.
    dispatcher_->Start();
    const uint64_t looks = guard_->looks();
    while (effect_ != Effect::kSourceAck && guard_->looks() < looks + 3) std::this_thread::yield();
    dispatcher_->ChannelClosed(kClient, outside_.get());
    dispatcher_.reset();
    told.pushes = outside_->pushes();
    told.finished = outside_->finished();
    return told;
  }

 private:
  StatusOr<std::string> Deliver(uint64_t offset) {
    ASSIGN_OR_RETURN(const DeliverResult answer,
                     dispatcher_->Deliver({.source = partition_, .offset = offset, .event = "e"},
                                          {{.client = kClient}}));
    return answer.targets.at(0).id;
  }
  Status Ack(const std::string& id) {
    Mutex mu;
    CondVar changed;
    std::optional<Status> outcome;
    dispatcher_->Ack({.id = id, .client = kClient, .epoch = outside_->epoch()},
                     [&](const Status& status) {
                       MutexLock lock(mu);
                       outcome = status;
                       changed.NotifyAll();
                     });
    MutexLock lock(mu);
    while (!outcome.has_value()) changed.Wait(mu);
    return *outcome;
  }

  const Effect effect_;
  const SourceKey partition_;
  SeededRng rng_{7};
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<EtcdMeta> meta_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<StoppingGuard> guard_;
  std::shared_ptr<Outside> outside_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

// Proves: S5, S9
TEST(StoppedOwnerTest, OnlyTheOneEffectBehindItsLookComesLate) {
  MetaServer server;
  constexpr Effect kEffects[] = {Effect::kPush, Effect::kSourceAck, Effect::kMetaWrite};
  std::vector<std::unique_ptr<ChildProcess>> owners;
  for (const Effect effect : kEffects) {
    owners.push_back(std::make_unique<ChildProcess>([&](int tell) {
      const Told told = Owner(server.endpoint(), effect).Run();
      const std::string line = fmt::format("{:4}{:4}{:4}{:4}{:4}", told.pushes, told.finished,
                                           told.write, told.ack, told.deliver);
      CHECK(write(tell, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    }));
  }
  for (const auto& owner : owners) {
    int status = 0;
    ASSERT_EQ(waitpid(owner->pid(), &status, WUNTRACED), owner->pid());
    ASSERT_TRUE(WIFSTOPPED(status)) << status;
  }
  // Their leases end, and everything moves.
  const auto other = Join(server.store(), "other", 99);
  for (const Effect effect : kEffects) {
    const SourceKey partition = PartitionOf(effect);
    StatusOr<uint64_t> token = other->Acquire(partition);
    while (!token.ok()) {
      ASSERT_EQ(token.status().code(), StatusCode::kAborted) << token.status();
      std::this_thread::yield();
      token = other->Acquire(partition);
    }
    ASSERT_OK(server.store().Transact(
        {.conditions = {other->Fence(partition).value()},
         .changes = {{.key = KeyOf(effect), .value = "of the new owner", .lease = 0}}},
        {}));
  }
  for (size_t i = 0; i < owners.size(); ++i) {
    ASSERT_EQ(kill(owners[i]->pid(), SIGCONT), 0);
    Told told;
    std::istringstream(owners[i]->Hear(20)) >> told.pushes >> told.finished >> told.write >>
        told.ack >> told.deliver;
    SCOPED_TRACE(NameOf(kEffects[i]));
    // The first event, and of the second no more than what was looked at before the stop.
    EXPECT_EQ(told.pushes, 2u);
    EXPECT_EQ(told.finished, kEffects[i] == Effect::kSourceAck ? 2u : 1u);
    EXPECT_EQ(told.write, static_cast<int>(StatusCode::kAborted)) << "no write passes its fence";
    // That of an acknowledgement that was made before the stop is the same again.
    EXPECT_EQ(told.ack,
              static_cast<int>(kEffects[i] == Effect::kSourceAck ? StatusCode::kOk
                                                                 : StatusCode::kPermissionDenied));
    EXPECT_EQ(told.deliver, static_cast<int>(StatusCode::kPermissionDenied));
    EXPECT_EQ(server.store().Get(KeyOf(kEffects[i]), {})->value, "of the new owner");
    EXPECT_TRUE(other->Owns(PartitionOf(kEffects[i])));
  }
}

}  // namespace
}  // namespace holdfast
