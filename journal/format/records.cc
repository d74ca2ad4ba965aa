#include "journal/format/records.h"

#include <array>

#include "journal/format/codec.h"

namespace holdfast {
namespace {

template <typename Record>
Status Undecodable(const RawRecord& raw) {
  return DataLoss("record {}: its {} bytes do not decode", Record::kName, raw.fields.size());
}

// Decodes into the result itself: a record is large, and this runs once for each.
template <typename Record>
StatusOr<AnyRecord> DecodeAs(const RawRecord& raw) {
  StatusOr<AnyRecord> result(absl::in_place, std::in_place_type<Record>);
  if (!DecodeFields(raw.fields, *std::get_if<Record>(&*result))) result = Undecodable<Record>(raw);
  return result;
}

template <typename Record>
Status CheckAs(const RawRecord& raw) {
  Record record;
  return DecodeFields(raw.fields, record) ? absl::OkStatus() : Undecodable<Record>(raw);
}

Status Unknown(const RecordHeader& header) {
  return MakeStatus(StatusCode::kUnimplemented, Detail::kNone,
                    fmt::format("record {}: version {}, flags {} are not known to this program",
                                RecordTypeName(header.type), header.version, header.flags));
}

// What is done with a record, by its type; null for a type that is not in the catalogue.
template <typename Result>
using ByType = std::array<Result (*)(const RawRecord&), 256>;

template <typename... Records>
constexpr auto DecodersOf(RecordList<Records...>*) {
  ByType<StatusOr<AnyRecord>> decoders{};
  ((decoders[static_cast<size_t>(Records::kType)] = &DecodeAs<Records>), ...);
  return decoders;
}
template <typename... Records>
constexpr auto ChecksOf(RecordList<Records...>*) {
  ByType<Status> checks{};
  ((checks[static_cast<size_t>(Records::kType)] = &CheckAs<Records>), ...);
  return checks;
}

template <typename... Records>
const char* NameOf(RecordList<Records...>*, uint8_t type) {
  const char* name = nullptr;
  ((type == static_cast<uint8_t>(Records::kType) ? void(name = Records::kName) : void()), ...);
  return name;
}

constexpr Catalogue* kCatalogue = nullptr;  // only its type counts
constexpr auto kDecoders = DecodersOf(kCatalogue);
constexpr auto kChecks = ChecksOf(kCatalogue);

template <typename Result>
Result DoByType(const ByType<Result>& table, const RawRecord& raw) {
  const RecordHeader& header = raw.header;
  if (header.type == 0 || header.version == 0) {
    return DataLoss("record: type {}, version {}", header.type, header.version);
  }
  const bool known = header.version <= kRecordVersion && (header.flags & ~kRecordMaySkip) == 0 &&
                     table[header.type] != nullptr;
  return known ? table[header.type](raw) : Unknown(header);
}

}  // namespace

StatusOr<AnyRecord> DecodeRecord(const RawRecord& raw) { return DoByType(kDecoders, raw); }

Status CheckRecord(const RawRecord& raw) { return DoByType(kChecks, raw); }

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
