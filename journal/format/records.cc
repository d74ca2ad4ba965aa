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

// Decodes into the result itself: a record is large, and this runs once for each.
template <typename Record>
StatusOr<AnyRecord> DecodeAs(const RawRecord& raw) {
  StatusOr<AnyRecord> result(absl::in_place, std::in_place_type<Record>);
  Record& record = *std::get_if<Record>(&*result);
  Decoder in(raw.fields);
  std::apply([&](auto... fields) { (Take(in, record.*fields), ...); }, Record::Fields());
  if (!in.ok() || in.remaining() != 0) {
    result = DataLoss("record {}: its {} bytes do not decode", Record::kName, raw.fields.size());
  }
  return result;
}

Status Unknown(const RecordHeader& header) {
  return MakeStatus(StatusCode::kUnimplemented, Detail::kNone,
                    fmt::format("record {}: version {}, flags {} are not known to this program",
                                RecordTypeName(header.type), header.version, header.flags));
}

StatusOr<AnyRecord> DecodeAsOneOf(RecordList<>*, const RawRecord& raw) {
  return Unknown(raw.header);
}
template <typename Record, typename... Others>
StatusOr<AnyRecord> DecodeAsOneOf(RecordList<Record, Others...>*, const RawRecord& raw) {
  if (raw.header.type == static_cast<uint8_t>(Record::kType)) return DecodeAs<Record>(raw);
  return DecodeAsOneOf(static_cast<RecordList<Others...>*>(nullptr), raw);
}

template <typename... Records>
const char* NameOf(RecordList<Records...>*, uint8_t type) {
  const char* name = nullptr;
  ((type == static_cast<uint8_t>(Records::kType) ? void(name = Records::kName) : void()), ...);
  return name;
}

constexpr Catalogue* kCatalogue = nullptr;  // only its type counts

}  // namespace

StatusOr<AnyRecord> DecodeRecord(const RawRecord& raw) {
  const RecordHeader& header = raw.header;
  if (header.type == 0 || header.version == 0) {
    return DataLoss("record: type {}, version {}", header.type, header.version);
  }
  if (header.version > kRecordVersion || (header.flags & ~kRecordMaySkip) != 0) {
    return Unknown(header);
  }
  return DecodeAsOneOf(kCatalogue, raw);
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
  const char* name = NameOf(kCatalogue, type);
  return name != nullptr ? name : fmt::format("type-{}", type);
}

}  // namespace holdfast
