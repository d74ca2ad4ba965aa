#include <algorithm>
#include <cstring>

#include "journal/base/check.h"
#include "journal/base/checksum.h"
#include "journal/format/frame.h"
#include "tests/fuzz/targets.h"

namespace holdfast {
namespace {

constexpr Life kLife{.salt = 11, .segment = 3, .stamp = 0x5354414d50};
constexpr uint64_t kOffset = 3 * kBlockBytes;
constexpr uint64_t kRoom = uint64_t{1} << 16;

template <typename T>
void Store(std::vector<std::byte>& bytes, size_t place, T value) {
  std::memcpy(bytes.data() + place, &value, sizeof value);
}
template <typename T>
T Load(const std::vector<std::byte>& bytes, size_t place) {
  T value;
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

// Walks all batches and checks what the walk promises.
void Walk(ByteView group, const GroupHeader& header) {
  BatchCursor cursor(group, header, kLife, kOffset);
  uint64_t behind = kOffset + kGroupHeaderBytes;
  Lsn next = header.first_lsn;
  while (true) {
    const BatchCursor::Step step = cursor.Next();
    if (step == BatchCursor::Step::kEnd) break;
    if (step == BatchCursor::Step::kBad && !cursor.Resync()) continue;
    const BatchView& batch = cursor.batch();
    CHECK(batch.offset >= behind);
    CHECK(IsAligned(batch.offset, kBatchAlignment));
    CHECK(batch.header.first_lsn >= next);
    CHECK(step == BatchCursor::Step::kBad || batch.header.first_lsn == next);
    CHECK(batch.header.last_lsn() - header.first_lsn < header.records);
    CHECK(batch.records.size() == batch.header.length - kBatchHeaderBytes);
    CHECK(batch.records.data() >= group.data());
    CHECK(batch.records.data() + batch.records.size() <= group.data() + group.size());
    behind = batch.offset + batch.header.length;
    next = batch.header.last_lsn() + 1;
    CHECK(cursor.next_lsn() == next);
  }
  (void)cursor.PaddingIsZero();  // either answer is right
}

void Judge(const std::vector<std::byte>& group) {
  const GroupView view = ReadGroupHeader(group, kLife, kOffset, kRoom);
  Walk(group, BatchCursor::HeaderFor(Lsn(1), group.size()));
  if (view.shape != Shape::kValid) return;
  CHECK(view.header.length <= kRoom);
  CHECK(IsAligned(view.header.length, kBlockBytes));
  if (!view.header.is_link()) Walk(group, view.header);
}

// Gives the batch at `place` good checks, if it fits there. Returns where the next one may be.
size_t MakeGood(std::vector<std::byte>& group, size_t place) {
  const size_t room = group.size() - place;
  if (room < kBatchHeaderBytes) return group.size();
  const size_t length = std::clamp<size_t>(Load<uint32_t>(group, place), kBatchHeaderBytes, room);
  const uint64_t seed = SeedAt(kLife, kOffset + place);
  const ByteView batch = ByteView(group).subspan(place, length);
  Store(group, place + 24, Checksum(batch.subspan(kBatchHeaderBytes), seed));
  Store(group, place + 4, uint32_t{0});
  const uint64_t check = Checksum(batch.first(kBatchHeaderBytes), seed);
  Store(group, place + 4, static_cast<uint32_t>(check));
  return AlignUp(place + length, kBatchAlignment);
}

}  // namespace

void FuzzFrame(ByteView input) {
  std::vector<std::byte> group(input.begin(), input.end());
  Judge(group);
  group.resize(std::max(group.size(), kGroupHeaderBytes));
  size_t place = kGroupHeaderBytes;
  while (place < group.size()) place = MakeGood(group, place);
  Store(group, 0, kLife.stamp);
  Store(group, 56, Checksum(ByteView(group).first(56), SeedAt(kLife, kOffset)));
  Judge(group);
}

}  // namespace holdfast
