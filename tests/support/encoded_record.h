// EncodedRecord: one record with its bytes, as a batch would hold it.
#pragma once

#include <string>

#include "journal/format/records.h"

namespace holdfast {

class EncodedRecord {
 public:
  template <typename Record>
  explicit EncodedRecord(const Record& record) {
    EncodeRecord(record, bytes_);
  }
  // Views into this.
  RawRecord raw() const {
    ByteView rest = AsBytes(bytes_);
    return TakeRecord(rest).value();
  }

 private:
  std::string bytes_;
};

}  // namespace holdfast
