// A process with a dispatcher is killed by SIGKILL at a gate; another one recovers the store and
// finishes everything. What both did is told in a file, which outlives them.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "holdfast/dispatcher.h"
#include "journal/base/seeded_rng.h"
#include "tests/support/child_process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

enum class Gate {
  kNone,
  kAfterPut,   // durable, before its push
  kAfterPush,  // before the client has done anything
  kAfterAckBatch,
  kBetweenSinkAndLedger,
  kBetweenLedgerAndBatch,
  kDuringRecover,
};
constexpr uint64_t kEvents = 6;
constexpr uint64_t kGateAt = 3;  // the offset at which the process dies

[[noreturn]] void Die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// Lines of a file, each written by one call: what was written stays when the writer is killed.
class Diary {
 public:
  explicit Diary(const std::string& path)
      : descriptor_(open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600)) {
    CHECK(descriptor_ >= 0);
  }
  ~Diary() { close(descriptor_); }
  void Tell(const std::string& what, std::string_view id) {
    const std::string line = what + " " + std::string(id) + "\n";
    CHECK(write(descriptor_, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  }
  static std::vector<std::pair<std::string, std::string>> Read(const std::string& path) {
    std::vector<std::pair<std::string, std::string>> lines;
    std::ifstream in(path);
    for (std::string what, id; in >> what >> id;) lines.emplace_back(what, id);
    return lines;
  }

 private:
  const int descriptor_;
};

// Everything that a dispatcher's host has, and one client that acknowledges what it should.
class Host final : public Channel,
                   public SourceAck,
                   public DeadLetterSink,
                   public DeadLetterLedger {
 public:
  Host(const std::string& directory, Gate gate)
      : path_(directory + "/diary"), diary_(path_), gate_(gate) {}

  // Never acknowledged: it ends as a dead letter.
  static bool IsPoison(uint64_t offset) { return offset == kGateAt; }

  void Push(const Delivery& delivery) override {
    diary_.Tell("push", delivery.id);
    if (gate_ == Gate::kAfterPush && delivery.offset == kGateAt) Die();
    const bool poison = with_poison && IsPoison(*delivery.offset);
    if (poison) return;
    dispatcher->Ack(
        {.id = delivery.id, .client = delivery.client, .epoch = delivery.epoch},
        [this, id = delivery.id, offset = *delivery.offset](const absl::Status& status) {
          if (!status.ok()) return;
          if (gate_ == Gate::kAfterAckBatch && offset == kGateAt) Die();
          diary_.Tell("acked", id);
        });
  }
  void Finished(const SourceKey&, std::optional<uint64_t> offset, uint64_t) override {
    diary_.Tell("source", std::to_string(*offset));
  }
  void Write(const Delivery& delivery, std::string_view,
             std::function<void(absl::StatusOr<DeadLetterPlace>)> done) override {
    diary_.Tell("body", delivery.id);
    if (gate_ == Gate::kBetweenSinkAndLedger) Die();
    done(DeadLetterPlace{"dlq", 1});
  }
  void Record(const Delivery& delivery, const DeadLetterPlace&,
              std::function<void(absl::Status)> done) override {
    if (!InLedger(delivery.id)) diary_.Tell("ledger", delivery.id);
    if (gate_ == Gate::kBetweenLedgerAndBatch) Die();
    done(absl::OkStatus());
  }
  absl::StatusOr<bool> Has(std::string_view id) override {
    if (gate_ == Gate::kDuringRecover) Die();
    return InLedger(id);
  }

  Dispatcher* dispatcher = nullptr;
  bool with_poison = false;
  Diary& diary() { return diary_; }

 private:
  bool InLedger(std::string_view id) const {
    for (const auto& [what, of] : Diary::Read(path_)) {
      if (what == "ledger" && of == id) return true;
    }
    return false;
  }

  const std::string path_;
  Diary diary_;
  const Gate gate_;
};

// Acknowledges once more, twice, what was pushed up to the gate: the diary says what. Of what came
// behind it not even the put need be durable.
void AcknowledgeAgain(Dispatcher& dispatcher, Diary& diary, const std::string& path) {
  std::atomic<int> open{0};
  uint64_t pushes = 0;
  for (const auto& [what, id] : Diary::Read(path)) {
    if (what != "push" || pushes++ > kGateAt) continue;
    for (int turn = 0; turn < 2; ++turn) {
      ++open;
      dispatcher.Ack({.id = id, .client = "billing", .epoch = 1},
                     [&, id](const absl::Status& told) {
                       diary.Tell(told.ok() ? "again" : "refused", id);
                       --open;
                     });
    }
  }
  while (open > 0) usleep(1'000);
}

// Opens the store, recovers, delivers `events` more, and works until nothing is pending.
void Work(const std::string& directory, Gate gate, bool with_poison, uint64_t first,
          uint64_t events, bool acknowledge_again = false) {
  Host host(directory, gate);
  host.with_poison = with_poison;
  EngineOptions options;
  options.directory = directory + "/store";
  options.io = BackendUnderTest();
  options.segment_bytes = uint64_t{256} << 10;
  const auto engine = Engine::Open(options);
  CHECK(engine.ok());
  SeededRng rng(7);
  DispatcherOptions dispatcher_options;
  dispatcher_options.attempts_max = with_poison ? 1 : 6;
  dispatcher_options.ack_timeout = absl::Milliseconds(60);
  dispatcher_options.backoff_min = absl::Milliseconds(5);
  dispatcher_options.backoff_max = absl::Milliseconds(20);
  dispatcher_options.recover_spread = absl::Milliseconds(5);
  dispatcher_options.tick_interval = absl::Milliseconds(5);
  auto dispatcher = Dispatcher::Make(**engine, rng, dispatcher_options,
                                     {.source_ack = &host, .sink = &host, .ledger = &host});
  CHECK(dispatcher.ok());
  host.dispatcher = dispatcher->get();
  CHECK((*dispatcher)->Recover().ok());
  const std::shared_ptr<Channel> channel(std::shared_ptr<void>(), &host);  // owned by this frame
  if (acknowledge_again) {
    AcknowledgeAgain(**dispatcher, host.diary(), directory + "/diary");
    host.diary().Tell("effects", std::to_string((*dispatcher)->Stats().acked));
  }
  // At the gate after the put nobody is there yet to push to.
  if (gate != Gate::kAfterPut) (*dispatcher)->ChannelOpened("billing", channel);
  (*dispatcher)->Start();
  for (uint64_t offset = first; offset < first + events; ++offset) {
    const auto result = (*dispatcher)
                            ->Deliver({.source = {"orders", 1, 0},
                                       .offset = offset,
                                       .event = "event " + std::to_string(offset)},
                                      {{.client = "billing"}});
    CHECK(result.ok() && result->durable.Wait().ok());
    host.diary().Tell("delivered", result->targets[0].id);
    if (gate == Gate::kAfterPut && offset == kGateAt) Die();
  }
  while ((*engine)->deliveries().Count() > 0 || (*dispatcher)->Stats().in_flight > 0) {
    usleep(1'000);
  }
  (*dispatcher)->ChannelClosed("billing", &host);
  dispatcher->reset();
}

// Runs Work() in a process of its own; true if it was killed, false if it came to its end.
bool IsKilled(const std::string& directory, Gate gate, bool with_poison, uint64_t first = 0,
              uint64_t events = kEvents, bool acknowledge_again = false) {
  ChildProcess child(
      [&](int) { Work(directory, gate, with_poison, first, events, acknowledge_again); });
  const int status = child.Wait();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return true;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return false;
}

// What must hold of every diary once everything is finished.
std::string Judge(const std::string& directory) {
  std::set<std::string> delivered, ended;
  std::map<std::string, int> ledgered, pushes;
  for (const auto& [what, id] : Diary::Read(directory + "/diary")) {
    if (what == "delivered") delivered.insert(id);
    if (what == "push") {
      ++pushes[id];
      if (ended.contains(id)) return id + " was pushed after its end was told";
    }
    if (what == "acked") ended.insert(id);
    if (what == "ledger") {
      ended.insert(id);
      if (++ledgered[id] > 1) return id + " is twice in the ledger";
    }
  }
  for (const std::string& id : delivered) {
    if (pushes[id] == 0) return id + " was never pushed";
  }
  return "";
}
int CountOf(const std::string& directory, const std::string& what, const std::string& id = "") {
  int count = 0;
  for (const auto& [told, of] : Diary::Read(directory + "/diary")) {
    count += told == what && (id.empty() || of == id);
  }
  return count;
}
// The id that the process died over: the newest that `what` names.
std::string NewestOf(const std::string& directory, const std::string& what) {
  std::string id;
  for (const auto& [told, of] : Diary::Read(directory + "/diary")) {
    if (told == what) id = of;
  }
  return id;
}

constexpr int kRounds = 5;

// Proves: A7
TEST(DispatcherKillTest, BetweenPutAndPushItIsPushedOnceUnderTheSameId) {
  for (int round = 0; round < kRounds; ++round) {
    const TempDir directory;
    ASSERT_TRUE(IsKilled(directory.path(), Gate::kAfterPut, false));
    const std::string id = NewestOf(directory.path(), "delivered");
    ASSERT_FALSE(IsKilled(directory.path(), Gate::kNone, false, 0, 0));
    EXPECT_EQ(Judge(directory.path()), "");
    EXPECT_EQ(CountOf(directory.path(), "push", id), 1);
    EXPECT_EQ(CountOf(directory.path(), "source"), static_cast<int>(kGateAt) + 1);
  }
}

// Proves: A7, A9
TEST(DispatcherKillTest, AfterThePushItComesAgainUnderTheSameId) {
  for (int round = 0; round < kRounds; ++round) {
    const TempDir directory;
    ASSERT_TRUE(IsKilled(directory.path(), Gate::kAfterPush, false));
    const std::string id = NewestOf(directory.path(), "push");
    ASSERT_FALSE(IsKilled(directory.path(), Gate::kNone, false, 0, 0));
    EXPECT_EQ(Judge(directory.path()), "");
    // A first push may come before its put is durable: then the put may be lost with it.
    EXPECT_GE(CountOf(directory.path(), "push", id), 1);
    EXPECT_LE(CountOf(directory.path(), "push", id), 2);
  }
}

// Proves: A4, A5
TEST(DispatcherKillTest, AfterTheAckBatchItDoesNotComeAgain) {
  for (int round = 0; round < kRounds; ++round) {
    const TempDir directory;
    ASSERT_TRUE(IsKilled(directory.path(), Gate::kAfterAckBatch, false));
    std::map<std::string, int> before;
    for (const auto& [told, id] : Diary::Read(directory.path() + "/diary"))
      before[id] += told == "push";
    ASSERT_FALSE(IsKilled(directory.path(), Gate::kNone, false, 0, 0));
    EXPECT_EQ(Judge(directory.path()), "");
    // The batch of the event at the gate was durable when the process died.
    const std::string at_gate = [&] {
      std::vector<std::string> pushed;
      for (const auto& [told, id] : Diary::Read(directory.path() + "/diary")) {
        if (told == "push") pushed.push_back(id);
      }
      return pushed.at(kGateAt);
    }();
    EXPECT_EQ(CountOf(directory.path(), "push", at_gate), 1);
  }
}

// Whoever did not hear the answer asks again: it is the same, and nothing happens a second time.
// Proves: A3, A4, A8
TEST(DispatcherKillTest, AnAckThatIsRepeatedAfterTheKillGetsItsAnswerAndHasNoEffect) {
  for (int round = 0; round < kRounds; ++round) {
    const TempDir directory;
    ASSERT_TRUE(IsKilled(directory.path(), Gate::kAfterAckBatch, false));
    for (int boots = 1; boots <= 2; ++boots) {
      ASSERT_FALSE(IsKilled(directory.path(), Gate::kNone, false, 0, 0, true));
      EXPECT_EQ(Judge(directory.path()), "");
      EXPECT_EQ(CountOf(directory.path(), "again"), 2 * boots * static_cast<int>(kGateAt + 1));
      EXPECT_EQ(CountOf(directory.path(), "refused"), 0);
      EXPECT_EQ(CountOf(directory.path(), "effects", "0"), boots);
    }
  }
}

// Proves: T4
TEST(DispatcherKillTest, BetweenSinkAndLedgerItEndsOnceInTheLedger) {
  for (int round = 0; round < kRounds; ++round) {
    const TempDir directory;
    ASSERT_TRUE(IsKilled(directory.path(), Gate::kBetweenSinkAndLedger, true));
    const std::string id = NewestOf(directory.path(), "body");
    EXPECT_EQ(CountOf(directory.path(), "ledger"), 0);
    ASSERT_FALSE(IsKilled(directory.path(), Gate::kNone, true, 0, 0));
    EXPECT_EQ(Judge(directory.path()), "");
    EXPECT_EQ(CountOf(directory.path(), "ledger", id), 1);
    EXPECT_EQ(CountOf(directory.path(), "body", id), 2);
  }
}

// Proves: T4, T5
TEST(DispatcherKillTest, BetweenLedgerAndBatchItIsRetiredAndNotPushed) {
  for (int round = 0; round < kRounds; ++round) {
    const TempDir directory;
    ASSERT_TRUE(IsKilled(directory.path(), Gate::kBetweenLedgerAndBatch, true));
    const std::string id = NewestOf(directory.path(), "ledger");
    const int pushes = CountOf(directory.path(), "push", id);
    ASSERT_FALSE(IsKilled(directory.path(), Gate::kNone, true, 0, 0));
    EXPECT_EQ(Judge(directory.path()), "");
    EXPECT_EQ(CountOf(directory.path(), "push", id), pushes);
    EXPECT_EQ(CountOf(directory.path(), "ledger", id), 1);
    EXPECT_EQ(CountOf(directory.path(), "body", id), 1);
  }
}

// Proves: T7
TEST(DispatcherKillTest, AKillDuringRecoverIsRecovered) {
  for (int round = 0; round < kRounds; ++round) {
    const TempDir directory;
    ASSERT_TRUE(IsKilled(directory.path(), Gate::kAfterPut, false));
    for (int again = 0; again < 3; ++again) {
      ASSERT_TRUE(IsKilled(directory.path(), Gate::kDuringRecover, false, 0, 0));
    }
    ASSERT_FALSE(IsKilled(directory.path(), Gate::kNone, false, 0, 0));
    EXPECT_EQ(Judge(directory.path()), "");
    EXPECT_EQ(CountOf(directory.path(), "source"), static_cast<int>(kGateAt) + 1);
  }
}

// Proves: A7
TEST(DispatcherKillTest, AtAnyMomentNothingIsLost) {
  for (uint64_t round = 0; round < 2 * kRounds; ++round) {
    const TempDir directory;
    uint64_t first = 0;
    for (int kills = 0; kills < 3; ++kills) {
      ChildProcess child(
          [&](int) { Work(directory.path(), Gate::kNone, round % 2 == 0, first, 100'000); });
      while (CountOf(directory.path(), "delivered") < static_cast<int>(20 * (kills + 1) + round)) {
        usleep(500);
      }
      child.Kill();
      child.Wait();
      first += 100'000;  // a source of its own numbering: what was not handed in is left out
    }
    ASSERT_FALSE(IsKilled(directory.path(), Gate::kNone, round % 2 == 0, first, 1));
    EXPECT_EQ(Judge(directory.path()), "");
  }
}

}  // namespace
}  // namespace holdfast
