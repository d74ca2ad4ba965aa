#include "tests/power/crash_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace holdfast {
EngineOptions EngineOptionsFor(const CrashRunOptions& options, Clock& clock, Rng& rng) {
  EngineOptions engine;
  engine.durability = options.durability;
  engine.commit_interval = options.commit_interval;
  engine.segment_bytes = uint64_t{64} << 10;
  // Small, so that values are read back from the journal.
  engine.value_cache_entries = 8;
  // Fewer than are acknowledged, so that some are forgotten.
  engine.remembered_answers = Model::kAnswersMax;
  if (options.housekeeping) engine.checkpoint_every_bytes = uint64_t{32} << 10;
  engine.clock = &clock;
  engine.rng = &rng;
  return engine;
}

CrashRun::CrashRun(const CrashRunOptions& options)
    : options_(options),
      choices_(options.seed),
      workload_(options.seed + 1, options.event_bytes_max, history_, clock_),
      engine_rng_(options.seed ^ 0x5eed),
      storage_(SimDisk({.sector_bytes = options.sector_bytes}),
               {.seed = options.seed,
                .depth_max = options.depth_max,
                .lying_syncs = options.lying_syncs}) {
  clock_.JumpWhenAsked(absl::Milliseconds(100));
  storage_.SetObserver([this](const SimOperation& operation, const SimDisk& disk) {
    if (!Changes(operation.call)) return;
    CrashExpectation expect = expect_;
    expect.begun = history_.begun();
    expect.required = std::max(expect.required, history_.required());
    moments_.push_back({operation, disk, expect});
  });
}

bool CrashRun::Run() {
  if (!Boot(options_.steps) || !Boot(options_.steps_reopened)) return false;
  // And one that nobody closed.
  moments_.push_back({{storage_.operations() + 1, SimCall::kList, ""}, storage_.disk(), expect_});
  moments_.back().expect.begun = history_.begun();
  moments_.back().expect.required = history_.required();
  return !testing::Test::HasFailure();
}

bool CrashRun::Boot(size_t steps) {
  auto engine = OpenEngineOn(storage_, EngineOptionsFor(options_, clock_, engine_rng_), false);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return false;
  EXPECT_GT((*engine)->boot_epoch(), expect_.epoch);
  expect_.epoch = (*engine)->boot_epoch();
  const auto model = ReadModel(**engine, history_.names());
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return false;
  EXPECT_EQ(history_.After(history_.begun()).DifferenceTo(*model), "");
  for (size_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
    Step(**engine);
    if (options_.housekeeping) KeepHouse(**engine);
  }
  const EngineStats stats = (*engine)->stats();
  housekept_.checkpoints += stats.checkpoints;
  housekept_.restated_records += stats.restated_records;
  housekept_.retired_segments += stats.retired_segments;
  const Status closed = (*engine)->Close();
  EXPECT_TRUE(closed.ok()) << closed;
  history_.Poll();
  EXPECT_TRUE(history_.AllConfirmed()) << "a clean close confirms everything";
  expect_.required_synced = history_.begun();
  history_.CloseCommits();
  return closed.ok();
}

void CrashRun::Note(TickingEngine& engine) {
  history_.Poll();
  const EngineStats stats = engine.stats();
  EXPECT_LE(stats.synced_lsn, stats.written_lsn);
  EXPECT_LE(stats.written_lsn, stats.appended_lsn);
  expect_.required_synced =
      std::max(expect_.required_synced, history_.CountThrough(stats.synced_lsn));
  expect_.lsn_max = history_.lsn_max();
  expect_.ids = workload_.ids().size();
  EXPECT_EQ(workload_.complaint(), "");
  segments_max_ = std::max(segments_max_, stats.segments);
}

void CrashRun::KeepHouse(TickingEngine& engine) {
  const uint64_t what = choices_.Below(24);
  if (what < 3) {
    engine.Tick();
  } else if (what == 3) {
    const Status taken = engine.Checkpoint();
    EXPECT_TRUE(taken.ok()) << taken;
  } else if (what == 4) {
    const auto compacted = engine.Compact();
    EXPECT_TRUE(compacted.ok()) << compacted.status();
  }
  Note(engine);
}

void CrashRun::Step(TickingEngine& engine) {
  const std::vector<Change> changes = workload_.Next(engine);
  SCOPED_TRACE(Describe(changes));
  const size_t index = history_.Begin(changes);
  const Commit commit = Perform(engine, changes);
  EXPECT_EQ(history_.End(index, commit), "");
  Note(engine);
  const uint64_t then = choices_.Below(10);
  if (then < 6) {
    const Status waited = commit.Wait();
    EXPECT_EQ(waited.code(), commit.refused().code()) << waited;
  } else if (then == 6) {
    clock_.Advance(absl::Milliseconds(choices_.Below(1500)));
    engine.Tick();
  } else if (then == 7) {
    bool called = false;
    commit.Then([&](const Status&) { called = true; });
    const Status flushed = engine.Flush();
    EXPECT_TRUE(flushed.ok()) << flushed;
    engine.Tick();
    EXPECT_TRUE(called) << "Then() after everything was confirmed";
  }
  Note(engine);
}

}  // namespace holdfast
