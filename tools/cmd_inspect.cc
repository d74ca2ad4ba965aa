// What a store holds and how it was left. The salt that seeds its checks is never shown.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "journal/base/json.h"
#include "journal/format/records_text.h"
#include "meta/meta_key.h"
#include "meta/meta_pages.h"
#include "recovery/retention.h"
#include "stores/engine_options.h"
#include "tools/command.h"
#include "tools/damage_printer.h"
#include "tools/store_access.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "inspect";

class Collector final : public SurveyVisitor {
 public:
  explicit Collector(Console& console) : progress_(console, "bytes", 0) {}

  void OnMark(const MarkView& mark) override { mark_ = mark; }
  void OnCheckpoint(const CheckpointSurvey& checkpoint) override {
    checkpoints_.push_back(checkpoint);
  }
  void OnSegment(const SegmentSurvey& segment) override {
    file_bytes_ += segment.file_bytes;
    segments_.push_back(segment);
  }
  void OnRecord(const SurveyedRecord& record) override {
    progress_.Update(file_bytes_);
    if (RecordTypeName(record.raw.header.type).starts_with("type-")) ++unknown_records_;
  }

  const MarkView& mark() const { return mark_; }
  const std::vector<CheckpointSurvey>& checkpoints() const { return checkpoints_; }
  const std::vector<SegmentSurvey>& segments() const { return segments_; }
  uint64_t unknown_records() const { return unknown_records_; }

 private:
  MarkView mark_;
  std::vector<CheckpointSurvey> checkpoints_;
  std::vector<SegmentSurvey> segments_;
  uint64_t file_bytes_ = 0;
  uint64_t unknown_records_ = 0;
  Progress progress_;
};

struct ClientLoad {
  uint64_t pending = 0;
  absl::Time oldest = absl::InfiniteFuture();
};

// What the engine's own Meta holds.
struct SharedLoad {
  uint64_t subscriptions = 0, agents = 0, sessions = 0, tasks = 0;
  uint64_t entries = 0;  // all, those of others and signs of life too
  uint64_t revision = 0;
};

// What only the recovered state tells.
struct LiveState {
  SharedLoad shared;
  uint64_t deliveries = 0, offsets = 0, dead_letters = 0;
  std::map<std::string, ClientLoad> clients;
  EngineStats stats;
  uint64_t restart_bytes = 0;  // read by an open now
};

struct Inspection {
  SurveyReport survey;
  std::optional<LiveState> live;  // none: the store is damaged
  std::string io_backend, io_reason;
  absl::Time now;
};

StatusOr<SharedLoad> ReadShared(MetaStore& meta) {
  constexpr size_t kReadAtOnce = 100;
  SharedLoad load;
  const std::string subscriptions = MetaPrefix("subs", {}), agents = MetaPrefix("agents", {}),
                    sessions = MetaPrefix("sessions", {}), tasks = MetaPrefix("tasks", {});
  ASSIGN_OR_RETURN(load.revision, ForEachEntry(meta, "", kReadAtOnce, [&](const MetaEntry& entry) {
                     const bool record = entry.key.ends_with("/record");
                     ++load.entries;
                     load.subscriptions += entry.key.starts_with(subscriptions) ? 1 : 0;
                     load.agents += record && entry.key.starts_with(agents) ? 1 : 0;
                     load.sessions += record && entry.key.starts_with(sessions) ? 1 : 0;
                     load.tasks += entry.key.starts_with(tasks) ? 1 : 0;
                     return absl::OkStatus();
                   }));
  return load;
}

StatusOr<LiveState> ReadLiveState(const std::string& directory, Console& console, LogSink& log) {
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, OpenForReading(directory, console, log));
  LiveState live;
  live.deliveries = engine->deliveries().Count();
  live.offsets = engine->offsets().ReadAll().size();
  live.dead_letters = engine->dead_letters().Count();
  ASSIGN_OR_RETURN(live.shared, ReadShared(engine->meta()));
  live.stats = engine->stats();
  live.restart_bytes = engine->recovery().bytes;
  Progress progress(console, "deliveries", live.deliveries);
  uint64_t read = 0;
  RETURN_IF_ERROR(engine->deliveries().Iterate([&](const StoredDelivery& stored) {
    ClientLoad& load = live.clients[stored.delivery.client];
    ++load.pending;
    load.oldest = std::min(load.oldest, stored.delivery.created);
    progress.Update(++read);
    return true;
  }));
  return live;
}

const char* StopName(const Inspection& inspection) {
  if (!inspection.survey.open_status.ok()) return "unknown";
  if (inspection.survey.recovery.clean) return "clean";
  return inspection.survey.recovery.unproven_tail ? "unclean, unproven tail" : "unclean";
}

// As an open with default options, but the segment size of the store, would keep them.
RetentionOptions BoundsOf(const Collector& files) {
  RetentionOptions bounds{.segment_bytes = EngineOptions().segment_bytes,
                          .space_ratio = EngineOptions().space_ratio};
  for (const SegmentSurvey& segment : files.segments()) {
    if (segment.newest && segment.segment_bytes > 0) bounds.segment_bytes = segment.segment_bytes;
  }
  return bounds;
}

double AgeSeconds(const ClientLoad& load, absl::Time now) {
  return std::max(absl::ToDoubleSeconds(now - load.oldest), 0.0);
}

void PrintMarkText(const MarkView& view, Console& console) {
  if (!view.mark.has_value()) {
    console.out << "MARK          no valid slot\n";
    return;
  }
  const Mark& mark = *view.mark;
  console.out << fmt::format(
      "MARK          statement {}: epoch {}, durable up to LSN {} (segment {} byte {}), segments "
      "{} to {}, "
      "{}{}\n",
      mark.sequence, mark.epoch, mark.synced, mark.end_segment, mark.end_offset, mark.oldest,
      mark.newest, mark.clean ? "clean" : "not clean",
      view.slots_differ ? "; its two copies differ" : "");
}

void PrintCheckpointText(const CheckpointSurvey& checkpoint, Console& console) {
  console.out << fmt::format("checkpoint    {}, {} bytes, ", checkpoint.name, checkpoint.bytes);
  if (checkpoint.fault.empty()) {
    console.out << fmt::format(
        "about {} entries: replay begins behind LSN {}, nothing newer than {}\n",
        checkpoint.entries, checkpoint.from, checkpoint.through);
  } else {
    console.out << fmt::format("of no use: {}\n", checkpoint.fault);
  }
}

void PrintSegmentText(const SegmentSurvey& segment, Console& console) {
  console.out << fmt::format("segment       {} {}{}, {} bytes", segment.name,
                             SegmentStateName(segment.state), segment.newest ? " (newest)" : "",
                             segment.file_bytes);
  if (segment.end > 0) console.out << fmt::format(", used to byte {}", segment.end);
  if (segment.link.has_value()) {
    const Link& link = *segment.link;
    console.out << fmt::format(", epoch {}, from LSN {}, by {}", link.epoch, link.first,
                               link.reason == LinkReason::kOpen ? "an open" : "rotation");
  }
  console.out << "\n";
}

void PrintText(const Inspection& inspection, const Collector& files, Console& console) {
  const SurveyReport& survey = inspection.survey;
  console.out << fmt::format(
      "verdict       {}\nlast stop     {}\nepoch         {}\nlast LSN      {}\ndurable LSN   {} "
      "(proved by "
      "what is on disk)\n",
      VerdictName(survey.verdict), StopName(inspection), survey.epoch, survey.last_lsn,
      survey.proved_lsn);
  console.out << fmt::format("durability    {} (default of an open)\nI/O backend   {}{}\n",
                             DurabilityName(EngineOptions().durability), inspection.io_backend,
                             inspection.io_reason.empty() ? "" : ": " + inspection.io_reason);
  console.out << fmt::format("engine time   {}\n", absl::FormatDuration(survey.engine_time));
  PrintMarkText(files.mark(), console);
  for (const CheckpointSurvey& checkpoint : files.checkpoints()) {
    PrintCheckpointText(checkpoint, console);
  }
  for (const SegmentSurvey& segment : files.segments()) PrintSegmentText(segment, console);
  if (files.unknown_records() > 0) {
    console.out << fmt::format(
        "unknown       {} records of types that this version may skip keep their segments\n",
        files.unknown_records());
  }
  if (survey.torn.has_value()) console.out << TornTailText(*survey.torn) << "\n";
  if (!inspection.live.has_value()) return;
  const LiveState& live = *inspection.live;
  console.out << fmt::format("live          {} deliveries, {} offsets, {} dead letters\n",
                             live.deliveries, live.offsets, live.dead_letters);
  const SharedLoad& shared = live.shared;
  console.out << fmt::format(
      "shared        {} subscriptions, {} agents, {} sessions, {} tasks; {} entries in all, at "
      "revision {}\n",
      shared.subscriptions, shared.agents, shared.sessions, shared.tasks, shared.entries,
      shared.revision);
  console.out << fmt::format(
      "answers       {} acknowledgements are remembered, of at most {} (default of an open)\n",
      live.stats.remembered_answers, EngineOptions().remembered_answers);
  const RetentionOptions bounds = BoundsOf(files);
  console.out << fmt::format(
      "space         {} bytes of segment files for {} live ones; compaction keeps them below {} = "
      "max({} × live, live + 8 segments) (default of an open)\n",
      live.stats.disk_bytes, live.stats.live_bytes, DiskBound(bounds, live.stats.live_bytes),
      bounds.space_ratio);
  console.out << fmt::format(
      "restart       reads {} bytes; a checkpoint is due each {} bytes, or as many as it takes "
      "(default of an open)\n",
      live.restart_bytes, bounds.segment_bytes);
  for (const auto& [client, load] : live.clients) {
    console.out << fmt::format("client        {}: {} unacknowledged, the oldest for {:.1f} s\n",
                               NameText(client), load.pending, AgeSeconds(load, inspection.now));
  }
}

std::string StoreJson(const Inspection& inspection, const Collector& files) {
  const SurveyReport& survey = inspection.survey;
  std::string line;
  JsonWriter json(line);
  json.BeginObject()
      .Field("kind", "store")
      .Field("verdict", VerdictName(survey.verdict))
      .Field("last_stop", StopName(inspection))
      .Field("epoch", survey.epoch.value())
      .Field("last_lsn", survey.last_lsn.value())
      .Field("durable_lsn", survey.proved_lsn.value())
      .Field("torn_bytes", survey.torn.has_value() ? survey.torn->bytes : 0)
      .Field("damages", survey.damages)
      .Field("unknown_records", files.unknown_records())
      .Field("durability", DurabilityName(EngineOptions().durability))
      .Field("io", inspection.io_backend)
      .Field("io_reason", inspection.io_reason)
      .Field("engine_ms", absl::ToInt64Milliseconds(survey.engine_time));
  if (inspection.live.has_value()) {
    json.Field("deliveries", inspection.live->deliveries)
        .Field("offsets", inspection.live->offsets)
        .Field("dead_letters", inspection.live->dead_letters)
        .Field("subscriptions", inspection.live->shared.subscriptions)
        .Field("agents", inspection.live->shared.agents)
        .Field("sessions", inspection.live->shared.sessions)
        .Field("tasks", inspection.live->shared.tasks)
        .Field("meta_revision", inspection.live->shared.revision)
        .Field("remembered_answers", inspection.live->stats.remembered_answers)
        .Field("live_bytes", inspection.live->stats.live_bytes)
        .Field("disk_bytes", inspection.live->stats.disk_bytes)
        .Field("disk_bytes_bound", DiskBound(BoundsOf(files), inspection.live->stats.live_bytes))
        .Field("checkpoint_lsn", inspection.live->stats.checkpoint_lsn)
        .Field("checkpoint_bytes", inspection.live->stats.checkpoint_bytes);
  }
  json.EndObject();
  return line + "\n";
}

std::string MarkJson(const Mark& mark) {
  std::string line;
  JsonWriter(line)
      .BeginObject()
      .Field("kind", "mark")
      .Field("sequence", mark.sequence)
      .Field("epoch", mark.epoch.value())
      .Field("synced_lsn", mark.synced.value())
      .Field("end_segment", mark.end_segment.value())
      .Field("end_offset", mark.end_offset)
      .Field("oldest", mark.oldest.value())
      .Field("newest", mark.newest.value())
      .Field("clean", mark.clean)
      .EndObject();
  return line + "\n";
}

std::string CheckpointJson(const CheckpointSurvey& checkpoint) {
  std::string line;
  JsonWriter(line)
      .BeginObject()
      .Field("kind", "checkpoint")
      .Field("name", checkpoint.name)
      .Field("bytes", checkpoint.bytes)
      .Field("from_lsn", checkpoint.from.value())
      .Field("through_lsn", checkpoint.through.value())
      .Field("entries", checkpoint.entries)
      .Field("fault", checkpoint.fault)
      .EndObject();
  return line + "\n";
}

std::string SegmentJson(const SegmentSurvey& segment) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject()
      .Field("kind", "segment")
      .Field("name", segment.name)
      .Field("state", SegmentStateName(segment.state))
      .Field("newest", segment.newest)
      .Field("file_bytes", segment.file_bytes)
      .Field("end", segment.end);
  if (segment.link.has_value()) {
    json.Field("epoch", segment.link->epoch.value())
        .Field("first_lsn", segment.link->first.value());
  }
  json.EndObject();
  return line + "\n";
}

void PrintJson(const Inspection& inspection, const Collector& files, Console& console) {
  console.out << StoreJson(inspection, files);
  if (files.mark().mark.has_value()) console.out << MarkJson(*files.mark().mark);
  for (const CheckpointSurvey& checkpoint : files.checkpoints()) {
    console.out << CheckpointJson(checkpoint);
  }
  for (const SegmentSurvey& segment : files.segments()) console.out << SegmentJson(segment);
  if (!inspection.live.has_value()) return;
  for (const auto& [client, load] : inspection.live->clients) {
    std::string line;
    JsonWriter(line)
        .BeginObject()
        .Field("kind", "client")
        .Field("client", client)
        .Field("unacknowledged", load.pending)
        .Field("oldest_age_seconds", AgeSeconds(load, inspection.now))
        .EndObject();
    console.out << line << "\n";
  }
}

}  // namespace

int RunInspect(const InspectCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  StatusOr<std::unique_ptr<Storage>> storage = OpenFilesForReading(options.directory, log);
  if (!storage.ok()) return Fail(console, kCommand, storage.status());
  Inspection inspection;
  Collector files(console);
  StatusOr<SurveyReport> survey = Survey(**storage, files, {});
  if (!survey.ok()) return Fail(console, kCommand, survey.status());
  inspection.survey = std::move(*survey);
  inspection.now = console.clock.WallNow();

  // What a writer would get now; asking changes nothing.
  const auto for_writing = OpenFilesForWriting(options.directory, IoBackend::kAuto, log);
  inspection.io_backend = for_writing.ok() ? (*for_writing)->backend() : "none";
  inspection.io_reason = for_writing.ok() ? (*for_writing)->backend_reason()
                                          : std::string(Message(for_writing.status()));

  Status opened = inspection.survey.open_status;
  if (opened.ok()) {
    StatusOr<LiveState> live = ReadLiveState(options.directory, console, log);
    opened = live.status();
    if (live.ok()) inspection.live = std::move(*live);
  }
  (options.json ? PrintJson : PrintText)(inspection, files, console);
  return opened.ok() ? kExitOk : Fail(console, kCommand, opened);
}

}  // namespace holdfast
