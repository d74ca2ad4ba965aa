// Encoding and decoding one record of each kind that a cycle takes. Per record; bytes as encoded.
#include <benchmark/benchmark.h>

#include <string>

#include "journal/format/records.h"

namespace holdfast {
namespace {

const std::string kId = "00000001-9e3779b97f4a7c15-0000000004d2";
const std::string kEvent(256, 'e');

DeliveryPut Put() {
  return {.id = kId,
          .epoch = 1,
          .topic = "orders.created",
          .partition = 3,
          .offset = 1234,
          .client = "billing-0",
          .due_ns = 30'000'000'000,
          .created_ns = 1'790'000'000'000'000'000,
          .event = {.raw_bytes = kEvent.size(), .bytes = kEvent}};
}
DeliveryRemove Remove() { return {.id = kId, .epoch = 1, .client = "billing-0", .reason = 1}; }
OffsetAdvance Advance() {
  return {.topic = "orders.created", .client = "billing-0", .partition = 3, .next = 1235};
}

template <typename Record>
void Encode(benchmark::State& state, const Record& record) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    EncodeRecord(record, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(out.size()) * state.iterations());
}

template <typename Record>
void Decode(benchmark::State& state, const Record& record) {
  std::string encoded;
  EncodeRecord(record, encoded);
  for (auto _ : state) {
    ByteView bytes = AsBytes(encoded);
    StatusOr<RawRecord> raw = TakeRecord(bytes);
    StatusOr<AnyRecord> decoded = DecodeRecord(*raw);
    CHECK(decoded.ok());
    benchmark::DoNotOptimize(decoded);
  }
  state.SetBytesProcessed(static_cast<int64_t>(encoded.size()) * state.iterations());
}

BENCHMARK_CAPTURE(Encode, delivery_put, Put());
BENCHMARK_CAPTURE(Encode, delivery_remove, Remove());
BENCHMARK_CAPTURE(Encode, offset_advance, Advance());
BENCHMARK_CAPTURE(Decode, delivery_put, Put());
BENCHMARK_CAPTURE(Decode, delivery_remove, Remove());
BENCHMARK_CAPTURE(Decode, offset_advance, Advance());

}  // namespace
}  // namespace holdfast
