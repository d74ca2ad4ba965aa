// StoredAnswers: remembered acknowledgements in a record, as bytes, and the way in and out of them.
//
// An acknowledgement that was answered is known by the number of the removal that it made, and by a
// hash of what the client sent. In a record they stand in order of their numbers, each as varint of
// the distance to the one before (the first: to 0), then 8 bytes of hash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "journal/base/check.h"
#include "journal/base/strong.h"
#include "journal/format/codec.h"

namespace holdfast {

// A view. Needs: made by AnswersWriter, or taken from a record that decodes.
struct StoredAnswers {
  uint64_t count = 0;
  std::string_view bytes;
};

// Threads: one at a time. Reusable: Clear() keeps the memory.
class AnswersWriter {
 public:
  // Needs: numbers above the one before.
  void Add(Lsn lsn, uint64_t hash) {
    CHECK(lsn > last_);
    Encoder out(bytes_);
    out.Varint(lsn - last_);
    out.Fixed(hash);
    last_ = lsn;
    ++count_;
  }
  void Clear() {
    bytes_.clear();
    count_ = 0;
    last_ = Lsn();
  }
  // Views into this.
  StoredAnswers stored() const { return {.count = count_, .bytes = bytes_}; }

 private:
  std::string bytes_;
  uint64_t count_ = 0;
  Lsn last_;  // none: it is empty
};

// Takes `count` answers off the front of `in`, which fails if they are not there, and calls
// `visit(Lsn, uint64_t hash)` for each.
template <typename Visit>
void TakeAnswers(Decoder& in, uint64_t count, Visit visit) {
  Lsn lsn;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const uint64_t distance = in.Varint();
    const auto hash = in.Fixed<uint64_t>();
    if (distance == 0 || distance > ~uint64_t{0} - lsn.value()) in.Fail();
    if (!in.ok()) return;
    lsn = lsn + distance;
    visit(lsn, hash);
  }
}
template <typename Visit>
void ForEachAnswer(const StoredAnswers& answers, Visit visit) {
  Decoder in(AsBytes(answers.bytes));
  TakeAnswers(in, answers.count, visit);
  CHECK(in.ok());
}

}  // namespace holdfast
