#include <cstring>

#include "journal/base/check.h"
#include "journal/base/checksum.h"
#include "journal/format/segment_header.h"
#include "tests/fuzz/targets.h"

namespace holdfast {
namespace {

constexpr Life kLife{.salt = 11, .segment = 3, .stamp = 0x5354414d50};

// What is accepted can be written, and is then read as the same.
void JudgeHeader(ByteView block) {
  const StatusOr<SegmentHeader> header = DecodeSegmentHeader(block);
  if (!header.ok()) return;
  const StatusOr<SegmentHeader> again = DecodeSegmentHeader(EncodeSegmentHeader(*header));
  CHECK_OK(again);
  CHECK(again->segment == header->segment && again->life == header->life);
  CHECK(again->segment_bytes == header->segment_bytes && again->salt == header->salt);
}

void JudgeLink(ByteView block) {
  const LinkView view = DecodeLinkGroup(block, kLife);
  if (view.shape != Shape::kValid) return;
  const LinkView again = DecodeLinkGroup(EncodeLinkGroup(view.link, view.header, kLife), kLife);
  CHECK(again.shape == Shape::kValid);
  CHECK(again.link.first == view.link.first && again.link.next == view.link.next);
  CHECK(again.link.host_boot_id == view.link.host_boot_id);
  CHECK(again.header.synced == view.header.synced);
}

}  // namespace

void FuzzSegmentHeader(ByteView input) {
  JudgeHeader(input);
  JudgeLink(input);
  (void)ParseSegmentFileName(std::string(AsText(input)));  // any answer; it must not crash

  std::vector<std::byte> block(input.begin(), input.end());
  block.resize(kBlockBytes);
  const uint64_t header_check = Checksum(ByteView(block).first(kBlockBytes - 8), 0);
  std::memcpy(block.data() + kBlockBytes - 8, &header_check, 8);
  JudgeHeader(block);

  const uint64_t link_check =
      Checksum(ByteView(block).subspan(72, 160), SeedAt(kLife, kSegmentHeaderBytes + 64));
  std::memcpy(block.data() + 64, &link_check, 8);
  std::memcpy(block.data(), &kLife.stamp, 8);
  const uint64_t group_check =
      Checksum(ByteView(block).first(56), SeedAt(kLife, kSegmentHeaderBytes));
  std::memcpy(block.data() + 56, &group_check, 8);
  JudgeLink(block);
}

}  // namespace holdfast
