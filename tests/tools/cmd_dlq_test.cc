#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "tests/sim/sim_clock.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

using Ids = std::vector<std::string>;

// Three dead letters: "old" died ten days ago, "middle" two hours and "young" a minute. Ids do not
// sort as the times do.
class DlqTest : public SmallStoreTest {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
    for (const DeadLetter& dead_letter : {Middle(), Young(), Old()}) {
      ASSERT_OK(engine->dead_letters().Record(dead_letter).Wait());
    }
    ASSERT_OK(engine->Close());
  }

  DeadLetter Old() const {
    return {.delivery_id = "old",
            .dlq_topic = "orders.dlq",
            .dlq_offset = 5,
            .reason = "timeout after 30 s",
            .attempts = 6,
            .epoch = 2,
            .topic = "orders",
            .incarnation = 4,
            .partition = 3,
            .offset = 17,
            .client = "billing",
            .died = start_ - absl::Hours(240),
            .event = "first"};
  }
  DeadLetter Middle() const {
    return {.delivery_id = "middle",
            .reason = "refused",
            .topic = "orders",
            .client = "mailer",
            .died = start_ - absl::Hours(2),
            .event = std::string("\xff\0binary", 8)};
  }
  DeadLetter Young() const {
    return {.delivery_id = "an id",
            .reason = "a timeout",
            .topic = "",
            .client = "billing",
            .died = start_ - absl::Minutes(1),
            .event = "third"};
  }

  ToolRun Dlq(const std::string& action, const std::vector<std::string>& rest = {}) const {
    std::vector<std::string> arguments = {"dlq", action, store_};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    return RunTool(arguments);
  }
  // The same for what opens the store for writing.
  ToolRun Change(const std::string& action, std::vector<std::string> rest) const {
    rest.insert(rest.end(), {"--io", "posix"});
    return Dlq(action, rest);
  }
  // The ids in JSON lines that have one.
  static Ids IdsIn(const ToolRun& run) {
    Ids ids;
    for (const std::string& line : run.lines()) {
      const StatusOr<Json> json = Json::Parse(line);
      EXPECT_OK(json.status()) << line;
      if (json.ok() && json->Find("id") != nullptr) ids.push_back(*json->Find("id")->string());
    }
    return ids;
  }
  Ids Listed(std::vector<std::string> filter = {}) const {
    filter.push_back("--json");
    const ToolRun run = Dlq("list", filter);
    EXPECT_EQ(run.exit_code, kExitOk) << run.err;
    return IdsIn(run);
  }

  const absl::Time start_ = RealClock().WallNow();
};

TEST_F(DlqTest, ListsWhatDiedFirstFirst) {
  EXPECT_EQ(Listed(), (Ids{"old", "middle", "an id"}));
  const ToolRun text = Dlq("list");
  EXPECT_EQ(text.err, "");
  ASSERT_EQ(text.lines().size(), 3u) << text.out;
  EXPECT_TRUE(text.lines()[0].starts_with(
      "id=old dlq_topic=orders.dlq dlq_offset=5 reason=\"timeout after 30 s\" attempts=6 epoch=2 "
      "topic=orders incarnation=4 partition=3 offset=17 client=billing died="))
      << text.out;
  EXPECT_TRUE(text.lines()[0].ends_with(" replays=0 bytes=5")) << text.out;
}

TEST_F(DlqTest, EachConditionLeavesLessAndTogetherTheyLeaveTheLeast) {
  const std::pair<std::vector<std::string>, Ids> kTaken[] = {
      {{"--topic", "orders"}, {"old", "middle"}},
      {{"--topic", ""}, {"an id"}},
      {{"--topic", "order"}, {}},
      {{"--client", "billing"}, {"old", "an id"}},
      {{"--client", "base64:" + Base64("mailer")}, {"middle"}},
      {{"--client", ""}, {}},
      {{"--reason", "timeout"}, {"old", "an id"}},
      {{"--older-than", "1h30m"}, {"old", "middle"}},
      {{"--older-than", "9d"}, {"old"}},
      {{"--max", "2"}, {"old", "middle"}},
      {{"--not-redriven"}, {"old", "middle", "an id"}},
      {{"--client", "billing", "--reason", "timeout", "--max", "1"}, {"old"}},
  };
  for (const auto& [filter, taken] : kTaken) {
    SCOPED_TRACE(testing::PrintToString(filter));
    EXPECT_EQ(Listed(filter), taken);
    // The others take the same ones, in the same order.
    std::vector<std::string> all = filter;
    all.insert(all.end(), {"--all", "--dry-run", "--json"});
    EXPECT_EQ(IdsIn(Dlq("redrive", all)), taken);
    EXPECT_EQ(IdsIn(Dlq("purge", all)), taken);
  }
}

// Proves: D1
TEST_F(DlqTest, ShowsEverythingOfOne) {
  const ToolRun text = Dlq("show", {"old"});
  EXPECT_EQ(text.exit_code, kExitOk) << text.err;
  EXPECT_EQ(text.lines().size(), 15u) << text.out;
  for (const char* line : {"id            old\n", "reason        \"timeout after 30 s\"\n",
                           "incarnation   4\n", "offset        17\n", "event         first\n"}) {
    EXPECT_NE(text.out.find(line), std::string::npos) << text.out;
  }
  ASSERT_OK_AND_ASSIGN(const Json json, Json::Parse(Dlq("show", {"middle", "--json"}).out));
  EXPECT_EQ(*json.Find("client")->string(), "mailer");
  EXPECT_TRUE(json.Find("offset")->is_null());
  EXPECT_EQ(*json.Find("event")->Find("base64")->string(), Base64(Middle().event));
  EXPECT_NE(Dlq("show", {"middle"}).out.find("base64:" + Base64(Middle().event)),
            std::string::npos);
}

// Proves: T10
TEST_F(DlqTest, ARedriveIsANewDeliveryThatIsDueNowAndIsCounted) {
  const ToolRun run = Change("redrive", {"old", "an id"});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_EQ(run.err, "");
  ASSERT_EQ(run.lines().size(), 3u) << run.out;
  ASSERT_TRUE(run.lines()[0].starts_with("old -> ")) << run.out;
  EXPECT_TRUE(run.lines()[1].starts_with("\"an id\" -> ")) << run.out;
  EXPECT_EQ(run.lines()[2], "redriven 2 of 2 dead letters");

  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  EXPECT_EQ(engine->deliveries().Count(), 2u);
  const std::string new_id = run.lines()[0].substr(std::string("old -> ").size());
  ASSERT_OK_AND_ASSIGN(const StoredDelivery stored, engine->deliveries().Get(new_id));
  EXPECT_LE(stored.delivery.due, engine->EngineNow());
  EXPECT_GE(stored.delivery.created, start_);
  EXPECT_LE(stored.delivery.created, RealClock().WallNow());
  const DeadLetter old = Old();
  EXPECT_EQ(stored.delivery, (Delivery{.id = new_id,
                                       .epoch = old.epoch,
                                       .topic = old.topic,
                                       .incarnation = old.incarnation,
                                       .partition = old.partition,
                                       .client = old.client,
                                       .due = stored.delivery.due,
                                       .created = stored.delivery.created,
                                       .redriven_from = "old",
                                       .event = old.event}));
  ASSERT_OK_AND_ASSIGN(const StoredDeadLetter kept, engine->dead_letters().Get("old"));
  EXPECT_EQ(kept.dead_letter, old);
  EXPECT_EQ(kept.replays, 1u);
}

TEST_F(DlqTest, WhatWasRedrivenCanBeLeftOut) {
  EXPECT_EQ(IdsIn(Change("redrive", {"--all", "--max", "1", "--json"})), (Ids{"old"}));
  EXPECT_EQ(Listed({"--not-redriven"}), (Ids{"middle", "an id"}));
  EXPECT_EQ(IdsIn(Change("redrive", {"--all", "--not-redriven", "--max", "1", "--json"})),
            (Ids{"middle"}));
  EXPECT_EQ(Listed({"--not-redriven"}), (Ids{"an id"}));
  EXPECT_EQ(Listed().size(), 3u) << "dead letters stay";
}

TEST_F(DlqTest, AnIdThatIsGivenTwiceIsMeantOnce) {
  EXPECT_EQ(IdsIn(Change("redrive", {"old", "old", "--json"})), (Ids{"old"}));
}

TEST_F(DlqTest, PurgesThoseThatAreNamed) {
  const ToolRun run = Change("purge", {"an id", "old"});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_EQ(run.out, "purged \"an id\"\npurged old\npurged 2 of 2 dead letters\n");
  EXPECT_EQ(Listed(), (Ids{"middle"}));
}

TEST_F(DlqTest, PurgesWhatTheFilterTakesAndNoMore) {
  const ToolRun run = Change("purge", {"--all", "--client", "billing", "--json"});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_EQ(IdsIn(run), (Ids{"old", "an id"}));
  ASSERT_FALSE(run.lines().empty());
  ASSERT_OK_AND_ASSIGN(const Json summary, Json::Parse(run.lines().back()));
  EXPECT_EQ(*summary.Find("dry_run")->boolean(), false);
  EXPECT_EQ(summary.Find("selected")->unsigned_integer(), 2u);
  EXPECT_EQ(summary.Find("purged")->unsigned_integer(), 2u);
  EXPECT_EQ(Listed(), (Ids{"middle"}));
  EXPECT_EQ(Change("purge", {"--all", "--client", "billing"}).out, "purged 0 of 0 dead letters\n");
}

// Proves: O3
TEST_F(DlqTest, IdsOfAnyBytesAreListedAsTheyAreTaken) {
  DeadLetter odd = Young();
  odd.delivery_id = std::string("\xff\0", 2);
  {
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
    ASSERT_OK(engine->dead_letters().Record(odd).Wait());
  }
  const std::string word = "base64:" + Base64(odd.delivery_id);
  EXPECT_NE(Dlq("list").out.find("id=" + word + " "), std::string::npos);
  EXPECT_EQ(Dlq("show", {word}).exit_code, kExitOk);
  EXPECT_EQ(Change("purge", {word}).exit_code, kExitOk);
  EXPECT_EQ(Dlq("show", {word}).exit_code, kExitNotFound);
}

// Proves: G7
TEST_F(DlqTest, LookingAndDryRunsLeaveEveryByte) {
  const auto before = Snapshot(store_);
  EXPECT_EQ(Dlq("list", {"--topic", "orders"}).exit_code, kExitOk);
  EXPECT_EQ(Dlq("show", {"old"}).exit_code, kExitOk);
  EXPECT_EQ(Dlq("redrive", {"--all", "--max", "1", "--dry-run"}).out,
            "would redrive old\nwould redrive 1 dead letters; nothing was changed\n");
  EXPECT_EQ(Dlq("purge", {"an id", "--dry-run"}).out,
            "would purge \"an id\"\nwould purge 1 dead letters; nothing was changed\n");
  const ToolRun json = Dlq("purge", {"old", "--dry-run", "--json"});
  ASSERT_FALSE(json.lines().empty());
  ASSERT_OK_AND_ASSIGN(const Json summary, Json::Parse(json.lines().back()));
  EXPECT_EQ(*summary.Find("dry_run")->boolean(), true);
  EXPECT_EQ(summary.Find("selected")->unsigned_integer(), 1u);
  EXPECT_EQ(summary.Find("purged")->unsigned_integer(), 0u);
  EXPECT_TRUE(Snapshot(store_) == before);
}

TEST_F(DlqTest, AnUnknownIdIsNotFoundAndNothingIsChanged) {
  const auto before = Snapshot(store_);
  for (const ToolRun& run : {Dlq("show", {"gone"}), Dlq("redrive", {"old", "gone", "--dry-run"}),
                             Dlq("purge", {"gone", "old", "--dry-run"})}) {
    EXPECT_EQ(run.exit_code, kExitNotFound) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find("no dead letter gone"), std::string::npos) << run.err;
  }
  EXPECT_TRUE(Snapshot(store_) == before);
  for (const char* action : {"redrive", "purge"}) {
    const ToolRun run = Change(action, {"old", "gone", "never was"});
    EXPECT_EQ(run.exit_code, kExitNotFound) << run.out;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err, std::string("holdfast dlq ") + action +
                           ": no dead letter gone, \"never was\"; nothing was changed\n");
  }
  EXPECT_EQ(Listed({"--not-redriven"}).size(), 3u);
}

// Proves: G9
TEST_F(DlqTest, AStoreInUseIsLockedButMayBeLookedAt) {
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  ASSERT_OK(engine->dead_letters().Purge("old").Wait());
  for (const char* action : {"redrive", "purge"}) {
    const ToolRun run = Change(action, {"--all", "--lock-wait", "0"});
    EXPECT_EQ(run.exit_code, kExitUsageOrIo);
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find("lock"), std::string::npos) << run.err;
    EXPECT_EQ(IdsIn(Dlq(action, {"--all", "--dry-run", "--json"})), (Ids{"middle", "an id"}));
  }
  EXPECT_EQ(Listed(), (Ids{"middle", "an id"}));
  EXPECT_EQ(Dlq("show", {"middle"}).exit_code, kExitOk);
  EXPECT_EQ(engine->deliveries().Count(), 0u);
}

// An open reads the newest checkpoint and what is behind it; the damage lies in an older segment.
TEST_F(DlqTest, ADamagedOneStopsWhatNeedsItAndCanBePurged) {
  {
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting(/*space_ratio=*/100));
    // A hundred times what is alive is more than the store will ever take, so nothing is compacted.
    for (uint64_t i = 0; i < 8; ++i) {
      ASSERT_OK(engine->deliveries()
                    .Put({.id = "large-" + std::to_string(i),
                          .epoch = 1,
                          .event = std::string(4'000, 'e')})
                    .Wait());
    }
    for (uint64_t i = 1; i <= 40; ++i) ASSERT_OK(engine->offsets().Write({"t", "c", 0}, i).Wait());
    ASSERT_OK(engine->Close());
  }
  const std::string path = Segments().front();
  const size_t at = ReadWholeFile(path).find("timeout after 30 s");
  ASSERT_NE(at, std::string::npos);
  FlipByte(path, at);
  const ToolRun list = Dlq("list", {"--json"});
  EXPECT_EQ(list.exit_code, kExitFault) << list.err;
  EXPECT_EQ(IdsIn(list), (Ids{"middle", "an id"}));
  const ToolRun all = Change("redrive", {"--all"});
  EXPECT_EQ(all.exit_code, kExitFault);
  EXPECT_EQ(all.out, "");

  const ToolRun named = Change("redrive", {"middle", "old", "an id", "--json"});
  EXPECT_EQ(named.exit_code, kExitFault);
  EXPECT_EQ(IdsIn(named), (Ids{"middle"}));
  EXPECT_NE(named.err.find("old: "), std::string::npos) << named.err;
  EXPECT_NE(named.err.find("2 of 3 dead letters were not redriven"), std::string::npos)
      << named.err;
  ASSERT_FALSE(named.lines().empty());
  ASSERT_OK_AND_ASSIGN(const Json summary, Json::Parse(named.lines().back()));
  EXPECT_EQ(summary.Find("selected")->unsigned_integer(), 3u);
  EXPECT_EQ(summary.Find("redriven")->unsigned_integer(), 1u);

  EXPECT_EQ(Change("purge", {"old"}).exit_code, kExitOk);
  EXPECT_EQ(Listed({"--not-redriven"}), (Ids{"an id"}));
}

// With a clock that moves when it is asked how long to wait.
class PacedDlqTest : public DlqTest {
 protected:
  void SetUp() override {
    DlqTest::SetUp();
    clock_.JumpWhenAsked(absl::Milliseconds(100));
  }
  int RedriveAll(const std::string& rate) {
    return RunHoldfast({"dlq", "redrive", store_, "--all", "--io", "posix", "--rate", rate},
                       console_);
  }

  std::ostringstream out_, err_;
  SimClock clock_;
  Console console_{.out = out_, .err = err_, .clock = clock_};
};

TEST_F(PacedDlqTest, GoesNoFasterThanTheRate) {
  const absl::Duration start = clock_.Now();
  ASSERT_EQ(RedriveAll("0"), kExitOk) << err_.str();
  EXPECT_EQ(clock_.Now(), start);
  ASSERT_EQ(RedriveAll("2"), kExitOk) << err_.str();
  EXPECT_EQ(clock_.Now(), start + absl::Seconds(1));
}

TEST_F(PacedDlqTest, ALongOneShowsHowFarItIs) {
  console_.terminal = true;
  ASSERT_EQ(RedriveAll("2"), kExitOk);
  EXPECT_EQ(err_.str(), "") << "one second is not long";
  ASSERT_EQ(RedriveAll("1"), kExitOk);
  EXPECT_NE(err_.str().find("dead letters redriven: 2 of 3 (66 %)"), std::string::npos)
      << err_.str();
}

TEST_F(PacedDlqTest, AskedToStopItFinishesWhatItBeganAndSaysSo) {
  console_.stop_requested = [this] { return out_.str().find(" -> ") != std::string::npos; };
  EXPECT_EQ(RedriveAll("1"), kExitUsageOrIo);
  EXPECT_TRUE(out_.str().ends_with("\nredriven 1 of 3 dead letters\n")) << out_.str();
  EXPECT_EQ(err_.str(), "holdfast dlq redrive: stopped: 2 of 3 dead letters were not redriven\n");
  EXPECT_EQ(Listed({"--not-redriven"}), (Ids{"middle", "an id"}));
}

TEST_F(PacedDlqTest, NothingIsChangedThatCannotBeTold) {
  out_.setstate(std::ios::badbit);
  EXPECT_EQ(RedriveAll("0"), kExitUsageOrIo);
  EXPECT_NE(err_.str(), "");
  EXPECT_EQ(Listed({"--not-redriven"}).size(), 3u);
}

}  // namespace
}  // namespace holdfast
