#include "stores/index_entry.h"

#include <array>
#include <limits>

#include "journal/format/records.h"
#include "journal/format/segment_header.h"

namespace holdfast {
namespace {

constexpr uint64_t kU32Max = std::numeric_limits<uint32_t>::max();

}  // namespace

// The sequencer is held while ten million of them are laid down: the numbers go to the string at
// once.
void EncodeIndexEntry(std::string_view key, const IndexState& state, std::string& out) {
  Encoder(out).Bytes(key);
  std::array<char, 9 * records_codec::kVarintBytesMax> numbers;
  records_codec::FieldWriter writer(numbers.data());
  writer.Put(uint64_t{state.ref.segment});
  writer.Put(uint64_t{state.ref.offset / kBatchAlignment});
  writer.Put(uint64_t{state.ref.length});
  writer.Put(uint64_t{state.record_bytes});
  writer.Put(state.payload_lsn.value());
  writer.Put(uint64_t{state.state_lsn - state.payload_lsn});
  writer.Put(state.epoch);
  writer.Put(state.due_ns);
  writer.Put(uint64_t{state.attempt});
  out.append(numbers.data(), writer.place());
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
