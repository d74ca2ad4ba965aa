// make_store DIR: a small store with every record of the catalogue, over two boots; the second is
// killed. It was run once for each version of the format; what it made is never made again.
#include <unistd.h>

#include <string>

#include "holdfast/engine.h"
#include "journal/base/check.h"

namespace holdfast {
namespace {

EngineOptions Options(const char* directory) {
  return {.directory = directory, .segment_bytes = uint64_t{64} << 10};
}

Delivery Pending(const std::string& id, std::string event) {
  return {.id = id,
          .epoch = 7,
          .topic = "orders \xc3\xa9",
          .incarnation = 1,
          .partition = 300,
          .offset = 4711,
          .client = std::string("bill\0ing", 8),
          .due = absl::Seconds(30),
          .created = absl::FromUnixSeconds(1'700'000'000),
          .event = std::move(event)};
}

void FirstBoot(Engine& engine) {
  Delivery bare{.id = "bare", .client = "\xff\xfe", .created = absl::UnixEpoch()};
  CHECK_OK(engine.deliveries().Put(bare).Wait());
  CHECK_OK(engine.deliveries().Put(Pending("small", "{\"a\":1}")).Wait());
  CHECK_OK(engine.deliveries().Put(Pending("large", std::string(9'000, 'z'))).Wait());
  const Commit changes = engine.Transact([](Transaction& t) {
    t.UpdateDelivery({.id = "small", .epoch = 7, .attempt = 2, .due = absl::Seconds(60)});
    t.SourceSeen({"orders", 1, 300}, 4'711);
    t.SourceCursor({"orders", 1, 300}, 4'000);
    t.WriteOffset({"orders", "billing", 300}, 4'712);
    t.WriteOffset({"gone", "billing", 0}, 1);
  });
  CHECK_OK(changes.Wait());
  CHECK_OK(engine.Transact([](Transaction& t) { t.ForgetOffset({"gone", "billing", 0}); }).Wait());
  CHECK_OK(engine.Flush());
}

void SecondBoot(Engine& engine) {
  for (int i = 0; i < 12; ++i) {
    const std::string id = "many-" + std::to_string(i);
    CHECK_OK(engine.deliveries().Put(Pending(id, std::string(3'000, 'm'))).Wait());
  }
  const Commit changes = engine.Transact([](Transaction& t) {
    t.RemoveDelivery({.id = "many-3",
                      .reason = Reason::kAcked,
                      .epoch = 7,
                      .client = std::string_view("bill\0ing", 8),
                      .idempotency_key = "",
                      .answer = "ok"});
    t.RemoveDelivery({.id = "small", .reason = Reason::kWithdrawn, .epoch = 7});
  });
  CHECK_OK(changes.Wait());
  for (const char* id : {"dead", "purged"}) {
    DeadLetter dead{.delivery_id = id, .dlq_topic = "dlq", .reason = "attempts", .event = "e"};
    CHECK_OK(engine.dead_letters().Record(dead).Wait());
  }
  CHECK_OK(engine.dead_letters().Redrive("dead", {.new_id = "again"}).Wait());
  CHECK_OK(engine.dead_letters().Purge("purged").Wait());
}

int Main(const char* directory) {
  {
    auto engine = Engine::Open(Options(directory));
    CHECK_OK(engine);
    FirstBoot(**engine);
    CHECK_OK((*engine)->Close());
  }
  auto engine = Engine::Open(Options(directory));
  CHECK_OK(engine);
  SecondBoot(**engine);
  _exit(0);  // as killed
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return argc == 2 ? holdfast::Main(argv[1]) : 3; }
