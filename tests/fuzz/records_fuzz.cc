#include <cstring>
#include <variant>

#include "journal/base/check.h"
#include "journal/base/json.h"
#include "journal/format/compression.h"
#include "journal/format/records.h"
#include "journal/format/records_text.h"
#include "tests/fuzz/targets.h"

namespace holdfast {
namespace {

constexpr uint64_t kUnpackedMax = 1 << 16;  // what claims more is left to FuzzCompression

uint64_t EventBytes(const AnyRecord& any) {
  return std::visit(
      []<typename Record>(const Record& record) -> uint64_t {
        if constexpr (requires { record.event; }) return record.event.raw_bytes;
        return 0;
      },
      any);
}

// A text form and a JSON form that other programs can read, whatever stands there.
void Print(const RawRecord& raw, const RecordTextOptions& options) {
  CHECK(RecordText(raw, options).find('\n') == std::string::npos);
  std::string text;
  JsonWriter writer(text);
  writer.BeginObject();
  RecordJson(raw, writer, options);
  writer.EndObject();
  CHECK_OK(Json::Parse(text));
}

}  // namespace

void FuzzRecords(ByteView input) {
  ByteView rest = input;
  while (true) {
    const ByteView before = rest;
    const StatusOr<RawRecord> raw = TakeRecord(rest);
    if (!raw.ok()) break;
    CHECK(rest.size() + kRecordHeaderBytes + raw->fields.size() == before.size());
    const StatusOr<AnyRecord> record = DecodeRecord(*raw);
    Print(*raw, {.event = !record.ok() || EventBytes(*record) <= kUnpackedMax});
    Print(*raw, {.event = false});
    if (!record.ok()) continue;
    std::string again;
    EncodeAnyRecord(*record, again);
    CHECK(AsText(AsBytes(again).subspan(kRecordHeaderBytes)) == AsText(raw->fields));
  }
}

void FuzzCompression(ByteView input) {
  if (input.size() < 4) return;
  uint32_t raw_bytes = 0;
  std::memcpy(&raw_bytes, input.data(), sizeof raw_bytes);
  const std::string_view frame = AsText(input.subspan(sizeof raw_bytes));
  for (const bool compressed : {false, true}) {
    const StatusOr<std::string> raw = UnpackEvent(
        {.raw_bytes = raw_bytes, .compressed = compressed, .bytes = frame}, kUnpackedMax);
    if (raw.ok()) CHECK(raw->size() == raw_bytes && raw_bytes <= kUnpackedMax);
  }
  std::string scratch;
  const StatusOr<std::string> back = UnpackEvent(PackEvent(frame, scratch));
  CHECK_OK(back);
  CHECK(*back == frame);
}

void FuzzJson(ByteView input) {
  const StatusOr<Json> json =
      Json::Parse(AsText(input), {.bytes_max = 4096, .depth_max = 16, .values_max = 256});
  if (json.ok()) CHECK(IsUtf8(AsText(input)));
  std::string text;
  JsonWriter(text).Value(AsText(input));
  const StatusOr<Json> back = Json::Parse(text);
  CHECK_OK(back);
  if (back->string() != nullptr) {
    CHECK(*back->string() == AsText(input));
  } else {
    CHECK(FromBase64(*back->Find("base64")->string()) == AsText(input));
  }
}

void FuzzCanary(ByteView input) { CHECK(!AsText(input).starts_with("HF!")); }

}  // namespace holdfast
