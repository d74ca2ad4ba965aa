// Records of every type of the catalogue with random fields, made from the list of fields, so that
// a record that joins the catalogue joins the tests.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "journal/base/seeded_rng.h"
#include "journal/format/records.h"

namespace holdfast {

// Owns the bytes that its records view.
class RandomRecords {
 public:
  static constexpr size_t kTypes = std::variant_size_v<AnyRecord>;

  explicit RandomRecords(uint64_t seed) : rng_(seed) {}

  AnyRecord Next() { return OfType(rng_.Below(kTypes)); }
  // `index` is the place of the type in the catalogue.
  AnyRecord OfType(size_t index) { return OfType(index, std::make_index_sequence<kTypes>()); }
  SeededRng& rng() { return rng_; }

 private:
  template <size_t... kIndexes>
  AnyRecord OfType(size_t index, std::index_sequence<kIndexes...>) {
    AnyRecord record;
    ((index == kIndexes ? Fill(record.emplace<kIndexes>()) : void()), ...);
    return record;
  }
  template <typename Record>
  void Fill(Record& record) {
    std::apply([&](auto... fields) { (Set(record.*fields), ...); }, Record::Fields());
  }
  void Set(uint64_t& value) { value = rng_.Next() >> rng_.Below(65) % 64; }
  void Set(int64_t& value) {
    value = static_cast<int64_t>(rng_.Next());
    value >>= rng_.Below(64);
  }
  void Set(std::string_view& value) {
    std::string& bytes = strings_.emplace_back(rng_.OneIn(4) ? 0 : rng_.Below(40), '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng_.Next());
    value = bytes;
  }
  void Set(StoredEvent& event) {
    Set(event.bytes);
    event.compressed = rng_.OneIn(2);
    event.raw_bytes = event.compressed ? rng_.Next() >> 1 : event.bytes.size();
  }
  void Set(StoredAnswers& answers) {
    AnswersWriter writer;
    Lsn lsn;
    for (uint64_t i = rng_.Below(5); i > 0; --i) {
      lsn = lsn + 1 + (rng_.Next() >> (2 + rng_.Below(62)) >> 2);
      writer.Add(lsn, rng_.Next());
    }
    answers = writer.stored();
    answers.bytes = strings_.emplace_back(answers.bytes);
  }
  template <typename T>
  void Set(std::optional<T>& value) {
    value.reset();
    if (rng_.OneIn(2)) Set(value.emplace());
  }

  SeededRng rng_;
  std::deque<std::string> strings_;
};

inline bool Same(const StoredEvent& a, const StoredEvent& b) {
  return a.raw_bytes == b.raw_bytes && a.compressed == b.compressed && a.bytes == b.bytes;
}
inline bool Same(const StoredAnswers& a, const StoredAnswers& b) {
  return a.count == b.count && a.bytes == b.bytes;
}
template <typename T>
bool Same(const T& a, const T& b) {
  return a == b;
}
inline bool Same(const AnyRecord& a, const AnyRecord& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<typename Record>(const Record& left) {
        const Record& right = *std::get_if<Record>(&b);
        return std::apply(
            [&](auto... fields) { return (Same(left.*fields, right.*fields) && ...); },
            Record::Fields());
      },
      a);
}

}  // namespace holdfast
