#include "bench/pending_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/child_process.h"
#include "bench/cycle_maker.h"
#include "bench/progress.h"
#include "bench/stopwatch.h"
#include "bench/store_files.h"
#include "holdfast/engine.h"
#include "journal/base/json.h"
#include "journal/base/seeded_rng.h"

namespace holdfast::bench {
namespace {

// The bytes of an event are a function of its number, so that nothing has to be kept to check them.
void FillEvent(uint64_t number, uint64_t bytes, std::string& event) {
  SeededRng rng(number);
  event.resize(bytes);
  for (uint64_t at = 0; at < bytes; at += 8) {
    const uint64_t word = rng.Next();
    std::memcpy(event.data() + at, &word, std::min<uint64_t>(8, bytes - at));
  }
}

EngineOptions StoreOptions(const PendingOptions& options) {
  return {.directory = options.directory + "/pending",
          .io = options.io,
          .commit_interval = absl::Milliseconds(100)};
}

struct Written {
  double seconds = 0;
  uint64_t resident = 0;
};

StatusOr<Written> PutAll(const PendingOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Open(StoreOptions(options)));
  const int64_t begin = NowNanos();
  Delivery put;
  put.topic = "orders.created";
  put.client = "billing";
  put.due = absl::Seconds(30);
  put.created = absl::FromUnixSeconds(1'790'000'000);
  Commit last;
  for (uint64_t number = 0; number < options.count; ++number) {
    put.id = MakeDeliveryId(0, number);
    put.offset = number;
    FillEvent(number, options.event_bytes, put.event);
    last = engine->deliveries().Put(put);
    RETURN_IF_ERROR(last.refused());
  }
  RETURN_IF_ERROR(last.Wait());
  Written written{.seconds = static_cast<double>(NowNanos() - begin) * 1e-9,
                  .resident = MemoryBytes("VmRSS")};
  engine.release();  // The process is killed from outside in a moment; closing would defeat the
                     // purpose.
  return written;
}

struct Read {
  double open_seconds = 0, cpu_open_seconds = 0, verify_seconds = 0;
  uint64_t resident = 0, resident_peak = 0, found = 0, intact = 0;
};

StatusOr<Read> ReadAll(const PendingOptions& options) {
  Read read;
  const double cpu_begin = CpuSeconds();
  int64_t begin = NowNanos();
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Open(StoreOptions(options)));
  read.open_seconds = static_cast<double>(NowNanos() - begin) * 1e-9;
  read.cpu_open_seconds = CpuSeconds() - cpu_begin;
  read.found = engine->deliveries().Count();
  read.resident = MemoryBytes("VmRSS");
  begin = NowNanos();
  std::vector<bool> seen(options.count);
  std::string event;
  RETURN_IF_ERROR(engine->deliveries().Iterate([&](const StoredDelivery& stored) {
    const uint64_t number = stored.delivery.offset.value_or(options.count);
    if (number >= options.count || seen[number]) return true;
    FillEvent(number, options.event_bytes, event);
    if (stored.delivery.id == MakeDeliveryId(0, number) && stored.delivery.event == event) {
      seen[number] = true;
      ++read.intact;
    }
    return true;
  }));
  read.verify_seconds = static_cast<double>(NowNanos() - begin) * 1e-9;
  read.resident_peak = MemoryBytes("VmHWM");
  RETURN_IF_ERROR(engine->Close());
  return read;
}

double Megabytes(uint64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

}  // namespace

StatusOr<PendingReport> RunPendingBench(const PendingOptions& options) {
  const std::string store = StoreOptions(options).directory;
  RemoveStore(store);
  Progress progress(2);
  progress.Step("putting the deliveries");
  ASSIGN_OR_RETURN(const Written written, InChild<Written>([&] { return PutAll(options); }));
  progress.Step("killed; opening again and reading all of them");
  ASSIGN_OR_RETURN(const Read read, InChild<Read>([&] { return ReadAll(options); }));
  RemoveStore(store);
  return PendingReport{.put_seconds = written.seconds,
                       .writer_resident = written.resident,
                       .open_seconds = read.open_seconds,
                       .cpu_open_seconds = read.cpu_open_seconds,
                       .reader_resident = read.resident,
                       .found = read.found,
                       .verify_seconds = read.verify_seconds,
                       .intact = read.intact,
                       .reader_resident_peak = read.resident_peak};
}

std::string PendingMarkdown(const PendingReport& report, const PendingOptions& options) {
  const double per_delivery =
      static_cast<double>(report.writer_resident) / static_cast<double>(options.count);
  return fmt::format(
      "# holdfast-bench pending\n\n"
      "{} pending deliveries with events of {} B, process killed, opened again.\n\n"
      "| what | |\n|---|---|\n"
      "| put and confirmed in | {:.1f} s |\n"
      "| resident memory with all pending | {:.0f} MB ({:.0f} B a delivery) |\n"
      "| open after the kill | {:.2f} s ({:.2f} s of processor time) |\n"
      "| resident memory after the open | {:.0f} MB |\n"
      "| found | {} |\n"
      "| intact to the byte | {} |\n"
      "| reading all of them | {:.1f} s |\n"
      "| peak of resident memory while opening and reading | {:.0f} MB |\n",
      options.count, options.event_bytes, report.put_seconds, Megabytes(report.writer_resident),
      per_delivery, report.open_seconds, report.cpu_open_seconds, Megabytes(report.reader_resident),
      report.found, report.intact, report.verify_seconds, Megabytes(report.reader_resident_peak));
}

std::string PendingJson(const PendingReport& report, const PendingOptions& options) {
  std::string out;
  JsonWriter(out)
      .BeginObject()
      .Field("kind", "pending")
      .Field("count", options.count)
      .Field("event_bytes", options.event_bytes)
      .Field("put_seconds", report.put_seconds)
      .Field("writer_resident_bytes", report.writer_resident)
      .Field("open_seconds", report.open_seconds)
      .Field("open_cpu_seconds", report.cpu_open_seconds)
      .Field("reader_resident_bytes", report.reader_resident)
      .Field("found", report.found)
      .Field("intact", report.intact)
      .Field("verify_seconds", report.verify_seconds)
      .Field("reader_resident_peak_bytes", report.reader_resident_peak)
      .EndObject();
  return out + "\n";
}

}  // namespace holdfast::bench
