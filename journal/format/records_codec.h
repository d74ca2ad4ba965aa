// How the fields of a record are laid down, by their type; the bodies of the templates in
// records.h. Included from records.h only.
//
//   uint64_t     varint                      string_view  varint length, bytes
//   int64_t      zigzag varint               optional<T>  u8 0 or 1, T if 1
//   StoredEvent  varint raw_bytes << 1 | compressed, varint length, bytes
//   StoredAnswers  varint count, then as many (stored_answers.h)
#pragma once

#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "journal/base/check.h"
#include "journal/format/codec.h"
#include "journal/format/records.h"

namespace holdfast::records_codec {

inline constexpr size_t kVarintBytesMax = 10;

// The most that a field takes. What it gives is reserved before the first byte is laid down.
inline size_t SizeMax(uint64_t) { return kVarintBytesMax; }
inline size_t SizeMax(int64_t) { return kVarintBytesMax; }
inline size_t SizeMax(std::string_view bytes) { return kVarintBytesMax + bytes.size(); }
inline size_t SizeMax(const StoredEvent& event) { return kVarintBytesMax + SizeMax(event.bytes); }
inline size_t SizeMax(const StoredAnswers& answers) {
  return kVarintBytesMax + answers.bytes.size();
}
template <typename T>
size_t SizeMax(const std::optional<T>& value) {
  return 1 + (value.has_value() ? SizeMax(*value) : 0);
}

// Lays fields down in memory that the caller made large enough.
class FieldWriter {
 public:
  explicit FieldWriter(char* place) : place_(place) {}

  [[gnu::always_inline]] void Put(uint64_t value) {
    while (value >= 0x80) {
      *place_++ = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    *place_++ = static_cast<char>(value);
  }
  [[gnu::always_inline]] void Put(int64_t value) {
    Put((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  [[gnu::always_inline]] void Put(std::string_view bytes) {
    Put(uint64_t{bytes.size()});
    if (!bytes.empty()) std::memcpy(place_, bytes.data(), bytes.size());
    place_ += bytes.size();
  }
  [[gnu::always_inline]] void Put(const StoredEvent& event) {
    CHECK(event.raw_bytes >> 63 == 0);
    Put(event.raw_bytes << 1 | uint64_t{event.compressed});
    Put(event.bytes);
  }
  void Put(const StoredAnswers& answers) {
    Put(answers.count);
    if (!answers.bytes.empty()) std::memcpy(place_, answers.bytes.data(), answers.bytes.size());
    place_ += answers.bytes.size();
  }
  template <typename T>
  [[gnu::always_inline]] void Put(const std::optional<T>& value) {
    *place_++ = value.has_value() ? 1 : 0;
    if (value.has_value()) Put(*value);
  }

  char* place() const { return place_; }

 private:
  char* place_;
};

// The way back: each takes its field from the front of `in`.
[[gnu::always_inline]] inline void Take(Decoder& in, uint64_t& value) { value = in.Varint(); }
[[gnu::always_inline]] inline void Take(Decoder& in, int64_t& value) { value = in.Signed(); }
[[gnu::always_inline]] inline void Take(Decoder& in, std::string_view& value) {
  value = in.Bytes();
}
[[gnu::always_inline]] inline void Take(Decoder& in, StoredEvent& value) {
  const uint64_t size_and_kind = in.Varint();
  value.raw_bytes = size_and_kind >> 1;
  value.compressed = (size_and_kind & 1) != 0;
  value.bytes = in.Bytes();
  if (!value.compressed && value.raw_bytes != value.bytes.size()) in.Fail();
}
inline void Take(Decoder& in, StoredAnswers& value) {
  value.count = in.Varint();
  const ByteView rest = in.rest();
  TakeAnswers(in, value.count, [](Lsn, uint64_t) {});
  if (in.ok()) value.bytes = AsText(rest.first(rest.size() - in.remaining()));
}
template <typename T>
[[gnu::always_inline]] inline void Take(Decoder& in, std::optional<T>& value) {
  const uint8_t present = in.Fixed<uint8_t>();
  if (present > 1) in.Fail();
  if (present == 1) Take(in, value.emplace());
}

}  // namespace holdfast::records_codec

namespace holdfast {

template <typename Record>
size_t EncodedBytesMax(const Record& record) {
  return std::apply(
      [&](auto... fields) {
        return kRecordHeaderBytes + (records_codec::SizeMax(record.*fields) + ...);
      },
      Record::Fields());
}

template <typename Record>
char* EncodeRecordAt(const Record& record, char* place) {
  static_assert(std::tuple_size_v<decltype(Record::Fields())> == std::size(Record::kFieldNames));
  records_codec::FieldWriter writer(place + kRecordHeaderBytes);
  std::apply([&](auto... fields)
                 __attribute__((always_inline)) { (writer.Put(record.*fields), ...); },
             Record::Fields());

  const auto length = static_cast<size_t>(writer.place() - place) - kRecordHeaderBytes;
  CHECK(length <= std::numeric_limits<uint32_t>::max());
  const RecordHeader header{static_cast<uint8_t>(Record::kType), kRecordVersion, 0,
                            static_cast<uint32_t>(length)};
  static_assert(sizeof header == kRecordHeaderBytes);  // no padding: copied as it is
  std::memcpy(place, &header, sizeof header);
  return writer.place();
}

template <typename Record>
void EncodeRecord(const Record& record, std::string& out) {
  const size_t start = out.size();
  out.resize(start + EncodedBytesMax(record));
  out.resize(static_cast<size_t>(EncodeRecordAt(record, out.data() + start) - out.data()));
}

template <typename Record>
bool DecodeFields(ByteView fields, Record& record) {
  Decoder in(fields);
  std::apply([&](auto... field)
                 __attribute__((always_inline)) { (records_codec::Take(in, record.*field), ...); },
             Record::Fields());
  return in.ok() && in.remaining() == 0;
}

template <typename Record>
Record FieldsOf(const RawRecord& raw) {
  Record record;
  CHECK(DecodeFields(raw.fields, record));
  return record;
}

}  // namespace holdfast
