// make_kept_store DIR: a small store that housekeeping has been at: segments retired and used
// again, two checkpoints with compressed blocks, a record of a later version that may be skipped,
// and a tail behind the newest checkpoint; it is left as by a kill. It was run once, and what it
// made is never made again.
#include <unistd.h>

#include <string>

#include "holdfast/engine.h"
#include "journal/base/check.h"
#include "journal/io/open_storage.h"
#include "tests/support/foreign_record.h"

namespace holdfast {
namespace {

constexpr uint64_t kSegmentBytes = uint64_t{64} << 10;

// So few segments that nothing is compacted unless it is asked for.
EngineOptions Options(const char* directory) {
  return {.directory = directory, .segment_bytes = kSegmentBytes, .space_ratio = 100};
}

std::string Event(int number) {
  // Not to be compressed well, and the same everywhere.
  SeededRng rng(static_cast<uint64_t>(number) + 1);
  std::string event;
  while (event.size() < 900) event += std::to_string(rng.Next());
  return event;
}

Delivery Pending(int number) {
  return {.id = "delivery-" + std::to_string(number),
          .epoch = 3,
          .topic = "orders",
          .incarnation = 2,
          .partition = 5,
          .offset = static_cast<uint64_t>(number),
          .client = "billing",
          .due = absl::Seconds(30 + number),
          .created = absl::FromUnixSeconds(1'800'000'000 + number),
          .event = Event(number)};
}

void Churn(Engine& engine, int first, int last) {
  for (int i = first; i < last; ++i) {
    const Commit done = engine.Transact([&](Transaction& t) {
      t.PutDelivery(Pending(i));
      // One in seven stays.
      if (i >= first + 3 && i % 7 != 0) {
        t.RemoveDelivery("delivery-" + std::to_string(i - 3), Reason::kAcked);
      }
      t.WriteOffset({"orders", "billing", 5}, OffsetPosition(static_cast<uint64_t>(i) + 1, 2));
      t.SourceSeen({"orders", 2, 5}, static_cast<uint64_t>(i));
    });
    CHECK_OK(done.Wait());
  }
}

int Main(const char* directory) {
  {
    auto engine = Engine::Open(Options(directory));
    CHECK_OK(engine);
    for (const char* id : {"dead", "dead-too"}) {
      DeadLetter dead{.delivery_id = id, .dlq_topic = "dlq", .reason = "attempts", .event = "e"};
      CHECK_OK((*engine)->dead_letters().Record(dead).Wait());
    }
    CHECK_OK((*engine)->offsets().Write({"orders", "\xff\xfe", 0}, 17).Wait());
    Churn(**engine, 0, 200);
    const auto report = (*engine)->Compact();
    CHECK_OK(report);
    CHECK(report->retired_segments > 0 && report->restated_records > 0);
    // Into the files that were retired.
    Churn(**engine, 200, 300);
    CHECK_OK((*engine)->Compact());
    CHECK_OK((*engine)->Close());
  }
  {
    auto storage = OpenPosixStorage(directory, {});
    CHECK_OK(storage);
    CHECK_OK(AppendForeignRecord(**storage, kRecordMaySkip, kSegmentBytes));
  }
  auto engine = Engine::Open(Options(directory));
  CHECK_OK(engine);
  Churn(**engine, 300, 330);
  CHECK_OK((*engine)->dead_letters().Redrive("dead", {.new_id = "again"}).Wait());
  CHECK_OK((*engine)->Checkpoint());
  Churn(**engine, 330, 340);
  CHECK_OK((*engine)->Checkpoint());
  Churn(**engine, 340, 350);
  const Commit changes = (*engine)->Transact([](Transaction& t) {
    t.UpdateDelivery({.id = "again", .epoch = 4, .attempt = 2, .due = absl::Seconds(90)});
    t.SourceCursor({"orders", 2, 5}, 320);
  });
  CHECK_OK(changes.Wait());
  _exit(0);  // as killed
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return argc == 2 ? holdfast::Main(argv[1]) : 3; }
