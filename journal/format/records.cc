#include "journal/format/records.h"

#include "journal/format/codec.h"

namespace holdfast {
namespace {

void Take(Decoder& in, uint64_t& value) { value = in.Varint(); }
void Take(Decoder& in, int64_t& value) { value = in.Signed(); }
void Take(Decoder& in, std::string_view& value) { value = in.Bytes(); }
void Take(Decoder& in, StoredEvent& value) {
  const uint64_t size_and_kind = in.Varint();
  value.raw_bytes = size_and_kind >> 1;
  value.compressed = (size_and_kind & 1) != 0;
  value.bytes = in.Bytes();
  if (!value.compressed && value.raw_bytes != value.bytes.size()) in.Fail();
}
template <typename T>
void Take(Decoder& in, std::optional<T>& value) {
  const uint8_t present = in.Fixed<uint8_t>();
  if (present > 1) in.Fail();
  if (present == 1) Take(in, value.emplace());
}

// False: the fields do not decode to their end.
template <typename Record>
bool DecodeFields(ByteView fields, Record& record) {
  Decoder in(fields);
  std::apply([&](auto... members) { (Take(in, record.*members), ...); }, Record::Fields());
  return in.ok() && in.remaining() == 0;
}

Status Unknown(const RecordHeader& header) {
  return MakeStatus(StatusCode::kUnimplemented, Detail::kNone,
                    fmt::format("record {}: version {}, flags {} are not known to this program",
                                RecordTypeName(header.type), header.version, header.flags));
}

// Calls `then.template operator()<Record>()` for the record with that number; false if there is
// none.
template <typename Then, typename... Records>
bool WithType(RecordList<Records...>*, uint8_t type, Then then) {
  return ((type == static_cast<uint8_t>(Records::kType) &&
           (then.template operator()<Records>(), true)) ||
          ...);
}
template <typename Then>
bool WithType(uint8_t type, Then then) {
  return WithType(static_cast<Catalogue*>(nullptr), type, then);
}

}  // namespace

StatusOr<AnyRecord> DecodeRecord(const RawRecord& raw) {
  const RecordHeader& header = raw.header;
  if (header.type == 0 || header.version == 0) {
    return DataLoss("record: type {}, version {}", header.type, header.version);
  }
  if (header.version > kRecordVersion || (header.flags & ~kRecordMaySkip) != 0)
    return Unknown(header);
  AnyRecord record;
  bool decoded = false;
  const bool known = WithType(header.type, [&]<typename Record>() {
    decoded = DecodeFields(raw.fields, record.emplace<Record>());
  });
  if (!known) return Unknown(header);
  if (!decoded) {
    return DataLoss("record {}: its {} bytes do not decode", RecordTypeName(header.type),
                    raw.fields.size());
  }
  return record;
}

StatusOr<RawRecord> TakeRecord(ByteView& records) {
  Decoder in(records);
  RawRecord raw;
  raw.header.type = in.Fixed<uint8_t>();
  raw.header.version = in.Fixed<uint8_t>();
  raw.header.flags = in.Fixed<uint16_t>();
  raw.header.length = in.Fixed<uint32_t>();
  raw.fields = in.Take(raw.header.length);
  if (!in.ok() || raw.header.type == 0 || raw.header.version == 0) {
    return DataLoss("record: no header with its fields in {} bytes", records.size());
  }
  records = records.subspan(kRecordHeaderBytes + raw.header.length);
  return raw;
}

void EncodeAnyRecord(const AnyRecord& record, std::string& out) {
  std::visit([&](const auto& known) { EncodeRecord(known, out); }, record);
}

std::string RecordTypeName(uint8_t type) {
  std::string name;
  if (!WithType(type, [&]<typename Record>() { name = Record::kName; })) {
    name = fmt::format("type-{}", type);
  }
  return name;
}

}  // namespace holdfast
