// Random work on a dispatcher, its stores, a simulated disk and a simulated clock, with crashes at
// any moment; then an end without faults, in which everything must be finished. Single-threaded: a
// seed repeats its run byte for byte (HOLDFAST_SEED_FIRST=<seed> HOLDFAST_SEEDS=1).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/runtime/dispatcher_world.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

const std::vector<std::string> kClients{"a", "b", "c"};

// What the outside knows of one delivery: one event for one client.
struct Obligation {
  bool asked = false;         // an ACK was sent
  bool acknowledged = false;  // and answered with OK: durable
  bool accepted = false;      // Deliver took it
  uint64_t epoch = 0;         // at least, by a re-subscription that is durable
  uint32_t pushes = 0;
};

// One run: the dispatcher's host, source and clients, and the judge of it all.
class Simulation final : public SourceAck,
                         public DeadLetterSink,
                         public DeadLetterLedger,
                         public OwnershipGuard {
 public:
  explicit Simulation(uint64_t seed) : rng_(seed) {
    world_.options.attempts_max = 4;
    world_.options.ack_timeout = absl::Seconds(5);
    world_.options.backoff_max = absl::Seconds(4);
    world_.host.source_ack = this;
    world_.host.sink = this;
    world_.host.ledger = this;
    world_.host.guard = this;
    world_.StartAndRecover();
  }

  std::string Run(int steps) {
    for (int step = 0; step < steps && complaint_.empty(); ++step) Step();
    if (complaint_.empty()) End();
    return complaint_;
  }
  // What happened, as one number.
  uint64_t fingerprint() const { return fingerprint_; }
  uint64_t crashes() const { return crashes_; }

  // Changes its mind now and then, also between two asks of one call.
  bool Owns(const SourceKey&) override {
    if (!steady_ && rng_.OneIn(owns_ ? 60 : 6)) owns_ = !owns_;
    return owns_;
  }

  void Finished(const SourceKey&, std::optional<uint64_t> offset, uint64_t) override {
    if (!owns_) Complain("the source was told of its events by a stale owner");
    Note(offset.value());
    for (const std::string& client : targets_[*offset]) {
      if (!IsFinished(*offset, client)) {
        Complain(
            fmt::format("the source was told that {} is finished, but {} is not", *offset, client));
      }
    }
    finished_.insert(*offset);
  }

  // Sink and ledger are down now and then, and outlive every crash.
  void Write(const Delivery& delivery, std::string_view,
             std::function<void(absl::StatusOr<DeadLetterPlace>)> done) override {
    Note(delivery.offset.value() + 1'000);
    if (!owns_) Complain("a stale owner wrote a dead letter");
    const Obligation& obligation = obligations_[{*delivery.offset, delivery.client}];
    if (obligation.acknowledged) Complain("what was acknowledged goes to the dead letters");
    if (!writing_.insert(delivery.id).second) Complain("two calls of the sink for one id");
    if (Down()) {
      writing_.erase(delivery.id);
      return done(absl::UnavailableError("the sink is down"));
    }
    writing_.erase(delivery.id);
    bodies_[delivery.id] = {*delivery.offset, delivery.client};
    done(DeadLetterPlace{"dlq", bodies_.size()});
  }
  void Record(const Delivery& delivery, const DeadLetterPlace& place,
              std::function<void(absl::Status)> done) override {
    if (!bodies_.contains(delivery.id)) Complain("a ledger entry without a body");
    if (Down()) return done(absl::UnavailableError("the ledger is down"));
    ledger_.emplace(delivery.id, place.offset);
    dead_.insert(bodies_[delivery.id]);
    done(absl::OkStatus());
  }
  absl::StatusOr<bool> Has(std::string_view id) override {
    return ledger_.contains(std::string(id));
  }

 private:
  class SimChannel final : public Channel {
   public:
    SimChannel(Simulation& simulation, std::string client)
        : simulation_(simulation), client(std::move(client)) {}
    void Push(const Delivery& delivery) override { simulation_.OnPush(*this, delivery); }

   private:
    Simulation& simulation_;

   public:
    const std::string client;
    std::vector<Delivery> inbox;
  };

  void Complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what;
  }
  void Note(uint64_t value) { fingerprint_ = (fingerprint_ ^ value) * 0x9E3779B97F4A7C15u; }

  void OnPush(SimChannel& channel, const Delivery& delivery) {
    Note(delivery.offset.value() * 64 + delivery.attempt);
    Obligation& obligation = obligations_[{*delivery.offset, delivery.client}];
    ++obligation.pushes;
    if (!owns_) Complain("a stale owner pushed");
    if (delivery.epoch < obligation.epoch) {
      Complain(fmt::format("{} for {} was pushed with epoch {} after {} was durable",
                           *delivery.offset, delivery.client, delivery.epoch, obligation.epoch));
    }
    if (ledger_.contains(delivery.id)) Complain("what is in the ledger was pushed again");
    if (obligation.acknowledged) {
      Complain(fmt::format("{} was pushed to {} again after its ACK was answered", *delivery.offset,
                           delivery.client));
    }
    if (delivery.attempt > world_.options.attempts_max) {
      Complain(fmt::format("push {} of {}", delivery.attempt, *delivery.offset));
    }
    if (delivery.event != "event " + std::to_string(*delivery.offset)) Complain("another event");
    channel.inbox.push_back(delivery);
  }

  // Acknowledged, or on its way; or in the ledger.
  bool IsFinished(uint64_t offset, const std::string& client) {
    return obligations_[{offset, client}].asked || dead_.contains({offset, client});
  }

  void Step() {
    const uint64_t what = rng_.Below(100);
    if (what < 30) {
      HandIn(next_offset_);
    } else if (what < 60) {
      React();
    } else if (what < 70) {
      Advance(absl::Milliseconds(100 * static_cast<int64_t>(1 + rng_.Below(30))));
    } else if (what < 80) {
      OpenOne(kClients[rng_.Below(kClients.size())]);
    } else if (what < 87) {
      CloseOne();
    } else if (what < 92) {
      world_.engine->Tick();
    } else if (what < 94) {
      Resubscribe(kClients[rng_.Below(kClients.size())]);
    } else if (what < 95) {
      // The disk will fail: the journal is poisoned, and only a restart helps.
      world_.storage->SetFault(
          SimFault{.at = world_.storage->operations() + 1 + rng_.Below(20), .for_ever = true});
    } else if (what < 97) {
      // The source hands in again something that it was not told the end of.
      if (next_offset_ > 0) HandIn(rng_.Below(next_offset_));
    } else {
      Crash();
    }
  }

  // What a stale owner refuses is handed in again before any other.
  void HandIn(uint64_t offset) {
    std::vector<std::string>& clients = targets_[offset];
    if (clients.empty()) {
      for (const std::string& client : kClients) {
        if (rng_.OneIn(2)) clients.push_back(client);
      }
      if (clients.empty()) clients.push_back(kClients[0]);
    }
    std::vector<Target> targets;
    for (const std::string& client : clients) targets.push_back({.client = client, .epoch = 1});
    const auto result = world_.dispatcher->Deliver(
        {.source = world_.kSource, .offset = offset, .event = "event " + std::to_string(offset)},
        targets);
    if (DetailOf(result.status()) == Detail::kStaleOwner) {
      if (owns_) Complain("an owner was refused");
      return;
    }
    next_offset_ = std::max(next_offset_, offset + 1);
    if (!result.ok()) {
      if (result.status().code() != StatusCode::kUnavailable) {
        return Complain(result.status().ToString());
      }
      return Crash();
    }
    for (size_t i = 0; i < clients.size(); ++i) {
      Obligation& obligation = obligations_[{offset, clients[i]}];
      obligation.accepted = true;
      const DeliverOutcome outcome = result->targets[i].outcome;
      if (outcome == DeliverOutcome::kAlreadyAcknowledged && !IsFinished(offset, clients[i])) {
        Complain(fmt::format("{} is called acknowledged by {}", offset, clients[i]));
      }
      if (outcome == DeliverOutcome::kAccepted && obligation.acknowledged) {
        Complain(fmt::format("{} for {} is delivered anew after its ACK", offset, clients[i]));
      }
      if (outcome == DeliverOutcome::kOutOfRange) {
        Complain(fmt::format("{} for {} is out of range", offset, clients[i]));
      }
    }
  }

  // A client's subscriptions begin anew: what is in flight gets the next epoch.
  void Resubscribe(const std::string& client) {
    std::vector<Obligation*> concerned;
    for (auto& [name, obligation] : obligations_) {
      if (name.second == client && obligation.accepted) concerned.push_back(&obligation);
    }
    ++epoch_;
    world_.dispatcher->Resubscribe(
        {.client = client, .epoch = epoch_},
        [this, epoch = epoch_, concerned = std::move(concerned)](const Status& status) {
          Note(static_cast<uint64_t>(status.code()));
          if (!status.ok()) return;
          for (Obligation* const obligation : concerned) {
            obligation->epoch = std::max(obligation->epoch, epoch);
          }
        });
  }

  // One client does something with one delivery that it has.
  void React() {
    if (channels_.empty()) return;
    SimChannel& channel = *channels_[rng_.Below(channels_.size())];
    if (channel.inbox.empty()) return;
    const size_t at = rng_.Below(channel.inbox.size());
    const Delivery delivery = channel.inbox[at];
    const uint64_t how = rng_.Below(10);
    if (how < 6) {
      Ack(delivery);
      if (rng_.OneIn(8)) Ack(delivery);
    } else if (how < 8) {
      (void)world_.dispatcher->Nack(Ownership(delivery));  // may come too late
    } else if (how < 9) {
      world_.dispatcher->Ack({.id = delivery.id, .client = "stranger", .epoch = 1},
                             [this](const Status& status) {
                               if (status.ok()) Complain("a stranger acknowledged");
                             });
    }
    if (how < 8) channel.inbox.erase(channel.inbox.begin() + static_cast<std::ptrdiff_t>(at));
  }
  static Acknowledgement Ownership(const Delivery& delivery) {
    return {.id = delivery.id, .client = delivery.client, .epoch = delivery.epoch};
  }
  void Ack(const Delivery& delivery) {
    Obligation& obligation = obligations_[{*delivery.offset, delivery.client}];
    const bool asked_before = std::exchange(obligation.asked, true);
    const auto answered = [this, &obligation, asked_before,
                           epoch = delivery.epoch](const Status& status) {
      Note(static_cast<uint64_t>(status.code()));
      obligation.acknowledged |= status.ok();
      // Refused for certain: the source is another's, or the epoch is an old one.
      if (DetailOf(status) != Detail::kStaleOwner) return;
      obligation.asked = asked_before;
      if (owns_ && epoch >= epoch_) Complain("the newest owner's ACK was refused");
    };
    world_.dispatcher->Ack(Ownership(delivery), answered);
  }

  void OpenOne(const std::string& client) {
    channels_.push_back(std::make_shared<SimChannel>(*this, client));
    world_.dispatcher->ChannelOpened(client, channels_.back());
  }
  void CloseOne() {
    if (channels_.empty()) return;
    const size_t at = rng_.Below(channels_.size());
    const auto closed = channels_[at];
    channels_.erase(channels_.begin() + static_cast<std::ptrdiff_t>(at));
    world_.dispatcher->ChannelClosed(closed->client, closed.get());
  }
  void Advance(absl::Duration by) {
    for (const absl::Duration step = absl::Milliseconds(500); by > absl::ZeroDuration();
         by -= step) {
      world_.clock.Advance(std::min(step, by));
      world_.dispatcher->Tick();
      if (!rng_.OneIn(4)) world_.engine->Tick();
    }
  }

  // The process is killed, or the power is cut and any part of what was not synced stays.
  void Crash() {
    ++crashes_;
    channels_.clear();
    if (rng_.OneIn(2)) {
      world_.Kill(rng_.Next());
    } else {
      world_.CutPower([this] { return rng_.OneIn(2); });
    }
    // What was asked and not answered may have happened or not.
    for (auto& [name, obligation] : obligations_) obligation.asked = obligation.acknowledged;
    const bool steady = std::exchange(steady_, true);  // a new process, and it owns the source
    owns_ = true;
    world_.StartAndRecover();
    writing_.clear();
    EXPECT_OK(world_.engine->deliveries().Iterate([this](const StoredDelivery& stored) {
      const Delivery& delivery = stored.delivery;
      if (obligations_[{delivery.offset.value(), delivery.client}].acknowledged) {
        Complain(fmt::format("{} of {} is back after its ACK was answered", *delivery.offset,
                             delivery.client));
      }
      return true;
    }));
    MarkEndedByTheStore();
    CheckProgress();
    // The source hands in again what it was not told the end of, in order.
    for (uint64_t offset = 0; offset < next_offset_; ++offset) {
      if (!finished_.contains(offset)) HandIn(offset);
    }
    steady_ = steady;
  }

  // ACKs that were on their way and did reach the disk: the store says so, by what it does not
  // hold.
  void MarkEndedByTheStore() {
    std::set<std::pair<uint64_t, std::string>> pending;
    EXPECT_OK(world_.engine->deliveries().Iterate([&](const StoredDelivery& stored) {
      pending.emplace(stored.delivery.offset.value(), stored.delivery.client);
      return true;
    }));
    const auto progress = world_.engine->offsets().ReadSource(world_.kSource);
    for (auto& [name, obligation] : obligations_) {
      const bool decided = progress.ok() && progress->has_seen && name.first <= progress->seen;
      if (decided && obligation.pushes > 0 && !pending.contains(name)) obligation.asked = true;
    }
  }

  // Neither the source's cursor nor any client's offset has passed what is unfinished.
  void CheckProgress() {
    const auto progress = world_.engine->offsets().ReadSource(world_.kSource);
    if (progress.ok() && progress->has_cursor) {
      for (const std::string& client : kClients) CheckBelow(progress->cursor, client, "the cursor");
    }
    for (const std::string& client : kClients) {
      CheckBelow(world_.NextOf(client), client, "the offset of " + client);
    }
  }
  void CheckBelow(uint64_t end, const std::string& client, const std::string& what) {
    for (uint64_t offset = 0; offset < end && complaint_.empty(); ++offset) {
      if (IsTarget(offset, client) && !IsFinished(offset, client)) {
        Complain(
            fmt::format("{} is at {}, but {} is not finished for {}", what, end, offset, client));
      }
    }
  }
  bool IsTarget(uint64_t offset, const std::string& client) {
    return std::ranges::count(targets_[offset], client) > 0;
  }

  // No more faults: every client has a channel and acknowledges what it gets.
  void End() {
    faultless_ = true;
    steady_ = true;
    Crash();  // the journal may have failed
    for (const std::string& client : kClients) OpenOne(client);
    for (int turn = 0; turn < 400 && complaint_.empty(); ++turn) {
      for (const auto& channel : channels_) {
        std::vector<Delivery> inbox;
        inbox.swap(channel->inbox);
        for (const Delivery& delivery : inbox) Ack(delivery);
      }
      world_.clock.Advance(absl::Milliseconds(500));
      world_.dispatcher->Tick();
      world_.Settle();
      if (finished_.size() == next_offset_ && world_.dispatcher->Stats().in_flight == 0) break;
    }
    if (!complaint_.empty()) return;
    if (finished_.size() != next_offset_) {
      return Complain(
          fmt::format("the source was told of {} of {} events", finished_.size(), next_offset_));
    }
    if (world_.engine->deliveries().Count() != 0) return Complain("deliveries are left");
    world_.clock.Advance(absl::Seconds(1));
    world_.dispatcher->Tick();
    world_.Settle();
    CheckProgress();
    const auto progress = world_.engine->offsets().ReadSource(world_.kSource);
    if (next_offset_ > 0 && progress->cursor != next_offset_) Complain("the cursor lags behind");
    for (const auto& [offset, clients] : targets_) {
      if (offset >= next_offset_) continue;  // refused to the end
      for (const std::string& client : clients) {
        if (!IsFinished(offset, client)) {
          Complain(fmt::format("{} was never finished for {}", offset, client));
        }
        if (world_.NextOf(client) <= offset) Complain("the offset of " + client + " lags behind");
      }
    }
  }

  bool Down() { return !faultless_ && rng_.OneIn(3); }

  SeededRng rng_;
  DispatcherWorld world_;
  std::vector<std::shared_ptr<SimChannel>> channels_;
  std::map<uint64_t, std::vector<std::string>> targets_;
  std::map<std::pair<uint64_t, std::string>, Obligation> obligations_;
  std::set<uint64_t> finished_;  // the source was told; it does not forget
  std::map<std::string, std::pair<uint64_t, std::string>> bodies_;  // by id
  std::set<std::string> writing_;
  std::set<std::pair<uint64_t, std::string>> dead_;
  std::map<std::string, uint64_t> ledger_;
  bool faultless_ = false;
  bool owns_ = true;
  bool steady_ = false;  // the guard keeps its mind
  uint64_t epoch_ = 1;
  uint64_t next_offset_ = 0;
  uint64_t crashes_ = 0;
  uint64_t fingerprint_ = 0;
  std::string complaint_;
};

// Proves: A2, A5, A6, A7, A9, D2, O4, T7, T8
TEST(DispatcherSimulationTest, NothingIsLostWhateverHappens) {
  uint64_t crashes = 0;
  for (const uint64_t seed : Seeds(2'000)) {
    Simulation simulation(seed);
    ASSERT_EQ(simulation.Run(/*steps=*/150), "") << "seed " << seed;
    crashes += simulation.crashes();
  }
  RecordProperty("crashes", static_cast<int>(crashes));
}

TEST(DispatcherSimulationTest, ASeedRepeatsItsRun) {
  for (const uint64_t seed : {uint64_t{3}, uint64_t{4}}) {
    Simulation one(seed), two(seed);
    ASSERT_EQ(one.Run(150), "");
    ASSERT_EQ(two.Run(150), "");
    EXPECT_EQ(one.fingerprint(), two.fingerprint());
  }
}

}  // namespace
}  // namespace holdfast
