#include "stores/index_entry.h"

#include <limits>

#include "journal/format/segment_header.h"

namespace holdfast {
namespace {

constexpr uint64_t kU32Max = std::numeric_limits<uint32_t>::max();

}  // namespace

void EncodeIndexEntry(std::string_view key, const IndexState& state, std::string& out) {
  Encoder encode(out);
  encode.Bytes(key);
  encode.Varint(state.ref.segment);
  encode.Varint(state.ref.offset / kBatchAlignment);
  encode.Varint(state.ref.length);
  encode.Varint(state.record_bytes);
  encode.Varint(state.payload_lsn.value());
  encode.Varint(state.state_lsn - state.payload_lsn);
  encode.Varint(state.epoch);
  encode.Signed(state.due_ns);
  encode.Varint(state.attempt);
}

StatusOr<IndexEntry> TakeIndexEntry(Decoder& in) {
  IndexEntry entry;
  entry.key = in.Bytes();
  const uint64_t segment = in.Varint();
  const uint64_t place = in.Varint();
  const uint64_t length = in.Varint();
  const uint64_t record_bytes = in.Varint();
  const uint64_t payload_lsn = in.Varint();
  const uint64_t newer_by = in.Varint();
  entry.state.epoch = in.Varint();
  entry.state.due_ns = in.Signed();
  const uint64_t attempt = in.Varint();
  if (!in.ok()) return DataLoss("an entry of an index is cut short");
  if (entry.key.size() > HashIndex::kKeyBytesMax || segment == 0 || segment > kU32Max ||
      place >= kSegmentBytesMax / kBatchAlignment || length > kGroupBytesMax ||
      record_bytes > kGroupBytesMax || payload_lsn == 0 || newer_by > ~payload_lsn ||
      attempt > kU32Max) {
    return DataLoss("a field of an entry of an index is out of its range");
  }
  entry.state.ref = {.segment = static_cast<uint32_t>(segment),
                     .offset = static_cast<uint32_t>(place * kBatchAlignment),
                     .length = static_cast<uint32_t>(length)};
  entry.state.record_bytes = static_cast<uint32_t>(record_bytes);
  entry.state.payload_lsn = Lsn(payload_lsn);
  entry.state.state_lsn = Lsn(payload_lsn + newer_by);
  entry.state.attempt = static_cast<uint32_t>(attempt);
  return entry;
}

}  // namespace holdfast
