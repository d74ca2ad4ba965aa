#include "tests/mutation/built_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "journal/format/segment_header.h"
#include "stores/engine_on_storage.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/sim/workload.h"

namespace holdfast {
namespace {

EngineOptions OptionsFor(Clock& clock, Rng& rng) {
  EngineOptions options;
  options.segment_bytes = uint64_t{64} << 10;
  options.remembered_answers = Model::kAnswersMax;
  options.clock = &clock;
  options.rng = &rng;
  return options;
}

void FillOneBoot(SimStorage& storage, const BuildOptions& options, size_t calls, bool last,
                 SimClock& clock, SeededRng& rng, Workload& workload, History& history) {
  EngineOptions engine_options = OptionsFor(clock, rng);
  engine_options.commit_interval = options.commit_interval;
  auto engine = OpenEngineOn(storage, engine_options, /*threads=*/false);
  ASSERT_TRUE(engine.ok()) << engine.status();
  for (size_t i = 0; i < calls; ++i) {
    const std::vector<Change> changes = workload.Next(**engine);
    const size_t index = history.Begin(changes);
    ASSERT_EQ(history.End(index, Perform(**engine, changes)), "");
    if (i % 6 != 5) continue;
    ASSERT_TRUE((*engine)->Flush().ok());
  }
  if (!last || options.clean) {
    ASSERT_TRUE((*engine)->Close().ok());
  } else {
    ASSERT_TRUE((*engine)->Flush().ok());
    storage.PowerOff();
  }
  history.Poll();
  ASSERT_TRUE(history.AllConfirmed());
  history.CloseCommits();
}

std::vector<GroupPlace> FindGroups(const std::string& bytes) {
  std::vector<GroupPlace> places;
  const auto header = DecodeSegmentHeader(AsBytes(bytes).first(kSegmentHeaderBytes));
  EXPECT_TRUE(header.ok()) << header.status();
  if (!header.ok()) return places;
  const Life life = header->life_of();
  for (uint64_t at = kSegmentHeaderBytes; at + kBlockBytes <= bytes.size();) {
    const ByteView rest = AsBytes(bytes).subspan(at);
    const GroupView group = ReadGroupHeader(rest.first(kGroupHeaderBytes), life, at, rest.size());
    if (group.shape != Shape::kValid) break;
    GroupPlace& place = places.emplace_back();
    place.offset = at;
    place.bytes = group.header.length;
    place.synced = group.header.synced.value();
    if (!group.header.is_link()) {
      BatchCursor cursor(rest.first(group.header.length), group.header, life, at);
      while (cursor.Next() == BatchCursor::Step::kBatch) {
        place.batches.emplace_back(cursor.batch().offset, cursor.batch().header.length);
      }
    }
    at += place.bytes;
  }
  return places;
}

}  // namespace

uint64_t BuiltStore::end(const std::string& segment) const {
  const std::vector<GroupPlace>& places = groups.at(segment);
  return places.empty() ? kSegmentHeaderBytes : places.back().offset + places.back().bytes;
}

BuiltStore BuildStore(const BuildOptions& options) {
  BuiltStore store;
  SimClock clock;
  clock.JumpWhenAsked(absl::Milliseconds(50));
  SeededRng rng(options.seed);
  Workload workload(options.seed + 1, 500, store.history, clock);
  for (size_t boot = 0; boot < options.boots.size() && !testing::Test::HasFailure(); ++boot) {
    SimStorage storage(store.disk, {.seed = options.seed});
    FillOneBoot(storage, options, options.boots[boot], boot + 1 == options.boots.size(), clock, rng,
                workload, store.history);
    store.disk = storage.disk();
    // Every byte of the journal is read then. (Checkpoints have sweeps of their own.)
    for (const std::string& name : store.disk.Names()) {
      if (name.starts_with("checkpoint/")) store.disk.Erase(name);
    }
  }
  store.disk = store.disk.Kill(1, false);
  for (const std::string& name : store.disk.Names()) {
    if (name.ends_with(".seg")) store.groups[name] = FindGroups(store.disk.Contents(name));
  }
  return store;
}

Verdict OpenDamaged(const BuiltStore& store, const SimDisk& damaged, size_t required) {
  Verdict verdict;
  SimClock clock;
  clock.JumpWhenAsked(absl::Milliseconds(50));
  SeededRng rng(99);
  SimStorage storage(damaged);
  const auto engine = OpenEngineOn(storage, OptionsFor(clock, rng), /*threads=*/false);
  if (!engine.ok()) {
    verdict.told = engine.status().code() == StatusCode::kDataLoss;
    if (!verdict.told) verdict.complaint = "refused with " + engine.status().ToString();
    if (storage.disk().Fingerprint() != damaged.Fingerprint()) {
      verdict.complaint = "a refused open changed a byte; it said " + engine.status().ToString();
    }
    return verdict;
  }
  verdict.opened = true;
  const auto found = ReadModel(**engine, store.history.names());
  storage.PowerOff();
  if (!found.ok()) {
    verdict.complaint = "opened, but cannot be read: " + found.status().ToString();
    return verdict;
  }
  const History::Verdict prefix =
      store.history.Judge(*found, (*engine)->recovery().last_lsn, required, store.history.begun());
  verdict.count = prefix.count;
  verdict.complaint = prefix.complaint;
  return verdict;
}

}  // namespace holdfast
