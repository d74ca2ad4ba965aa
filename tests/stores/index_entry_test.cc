#include "stores/index_entry.h"

#include <gtest/gtest.h>

#include "journal/format/segment_header.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

IndexState Full() {
  return {.ref = {.segment = 7, .offset = 4096 + 64, .length = 500},
          .record_bytes = 460,
          .payload_lsn = Lsn(10),
          .state_lsn = Lsn(12),
          .epoch = 3,
          .due_ns = -1,
          .attempt = 2};
}

StatusOr<IndexEntry> Again(std::string_view key, const IndexState& state, std::string& bytes) {
  EncodeIndexEntry(key, state, bytes);
  Decoder in(AsBytes(bytes));
  return TakeIndexEntry(in);
}

TEST(IndexEntryTest, EveryFieldComesBack) {
  for (const std::string_view key : {"", "key", "another key"}) {
    std::string bytes;
    ASSERT_OK_AND_ASSIGN(const IndexEntry entry, Again(key, Full(), bytes));
    EXPECT_EQ(entry.key, key);
    EXPECT_EQ(entry.state, Full());
  }
}

TEST(IndexEntryTest, TheUsualEntryIsSmall) {
  std::string bytes;
  ASSERT_OK(Again("1-0123456789abcdef-1234567", Full(), bytes));
  EXPECT_LE(bytes.size(), 26 + 14u);
}

TEST(IndexEntryTest, WhatAnIndexCannotHoldIsRefused) {
  const auto refused = [](auto change) {
    IndexState state = Full();
    change(state);
    std::string bytes;
    EXPECT_FAILS(Again("key", state, bytes), kDataLoss, kDamage);
  };
  refused([](IndexState& state) { state.ref.segment = 0; });
  refused([](IndexState& state) { state.ref.offset = static_cast<uint32_t>(kSegmentBytesMax); });
  refused([](IndexState& state) { state.ref.length = (32u << 20) + 1; });
  refused([](IndexState& state) { state.record_bytes = (32u << 20) + 1; });
  refused([](IndexState& state) { state.payload_lsn = Lsn(); });
  std::string bytes;
  EXPECT_FAILS(Again(std::string(HashIndex::kKeyBytesMax + 1, 'k'), Full(), bytes), kDataLoss,
               kDamage);
}

TEST(IndexEntryTest, ACutOneIsRefused) {
  std::string bytes;
  ASSERT_OK(Again("key", Full(), bytes));
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    Decoder in(AsBytes(bytes).first(cut));
    EXPECT_FAILS(TakeIndexEntry(in), kDataLoss, kDamage) << cut;
  }
}

}  // namespace
}  // namespace holdfast
