// make_answers_store DIR: a small store with what a client began with and with acknowledgements
// that are remembered: by their removals, by statements of a compaction after whose end the
// removals are gone, in two checkpoints, and behind them; it is left as by a kill. It was run once,
// and what it made is never made again.
#include <unistd.h>

#include <string>

#include "holdfast/engine.h"
#include "journal/base/check.h"

namespace holdfast {
namespace {

// So few segments that nothing is compacted unless it is asked for.
EngineOptions Options(const char* directory) {
  return {.directory = directory,
          .segment_bytes = uint64_t{64} << 10,
          .space_ratio = 100,
          .remembered_answers = 150};
}

Delivery Pending(int number) {
  return {.id = "delivery-" + std::to_string(number),
          .epoch = 3,
          .topic = "orders",
          .incarnation = 2,
          .partition = 5,
          .offset = static_cast<uint64_t>(number),
          .client = number % 2 == 0 ? "billing" : std::string("au\0dit", 6),
          .due = absl::Seconds(30 + number),
          .created = absl::FromUnixSeconds(1'800'000'000 + number),
          .event = std::string(700, static_cast<char>('a' + number % 26))};
}

// One in ten stays, one in five is acknowledged without a key.
void Churn(Engine& engine, int first, int last) {
  for (int i = first; i < last; ++i) {
    const Commit done = engine.Transact([&](Transaction& t) {
      const Delivery put = Pending(i), old = Pending(i - 3);
      t.PutDelivery(put);
      t.WriteStart({"orders", put.client, 5}, {static_cast<uint64_t>(i), 2});
      if (i >= 3 && i % 10 != 0) {
        Removal ack{.id = old.id, .epoch = 3, .client = old.client, .idempotency_key = old.id};
        if (i % 5 == 1) ack.idempotency_key.reset();
        if (i % 5 == 2) ack.idempotency_key = "";
        t.RemoveDelivery(ack);
      }
      t.WriteOffset({"orders", put.client, 5}, OffsetPosition(static_cast<uint64_t>(i) + 1, 2));
      t.SourceSeen({"orders", 2, 5}, static_cast<uint64_t>(i));
    });
    CHECK_OK(done.Wait());
  }
}

int Main(const char* directory) {
  {
    auto engine = Engine::Open(Options(directory));
    CHECK_OK(engine);
    Churn(**engine, 0, 200);
    CHECK_OK((*engine)
                 ->Transact([](Transaction& t) {
                   t.WriteStart({"gone", "billing", 0}, 1);
                   t.WriteStart({"orders", "\xff\xfe", 0}, 17);
                   t.ForgetOffset({"gone", "billing", 0});
                 })
                 .Wait());
    for (int turn = 0; turn < 2; ++turn) {
      const auto report = (*engine)->Compact();
      CHECK_OK(report);
      CHECK(report->retired_segments > 0 && report->restated_records > 0);
      Churn(**engine, 200 + 20 * turn, 220 + 20 * turn);
    }
    CHECK_OK((*engine)->Close());
  }
  auto engine = Engine::Open(Options(directory));
  CHECK_OK(engine);
  Churn(**engine, 240, 260);
  CHECK_OK((*engine)->Checkpoint());
  Churn(**engine, 260, 270);
  CHECK_OK((*engine)->Checkpoint());
  Churn(**engine, 270, 280);
  CHECK((*engine)->stats().remembered_answers == 150);
  _exit(0);  // as killed
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return argc == 2 ? holdfast::Main(argv[1]) : 3; }
