#include "meta/backends/nacos_record.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using namespace std::string_literals;

NacosRecord Record() {
  return {.there = true,
          .revision = 7,
          .create_revision = 3,
          .version = 2,
          .writes = 4,
          .write_id = "00000000000000ff-12",
          .request_id = "r",
          .value = "\0v ä\xff"s};
}

TEST(NacosRecordTest, IsReadableTextAndComesBackWhole) {
  const std::string content = EncodeNacosRecord(Record());
  EXPECT_TRUE(content.starts_with("holdfast 1 put 7 3 2 4 00000000000000ff-12 .")) << content;
  for (const char byte : content) EXPECT_TRUE(byte >= ' ' && byte < 127);
  EXPECT_EQ(content.find_first_of("+/="), std::string::npos);
  ASSERT_OK_AND_ASSIGN(const NacosRecord back, DecodeNacosRecord(content));
  EXPECT_EQ(back, Record());
}

TEST(NacosRecordTest, EveryLengthOfAValueComesBack) {
  NacosRecord record = Record();
  for (size_t bytes = 0; bytes < 300; ++bytes) {
    record.value.assign(bytes, static_cast<char>(bytes * 37));
    record.request_id = bytes % 2 == 0 ? "" : std::string(bytes % 256, 'x');
    ASSERT_OK_AND_ASSIGN(const NacosRecord back, DecodeNacosRecord(EncodeNacosRecord(record)));
    EXPECT_EQ(back, record);
  }
}

TEST(NacosRecordTest, ATombstoneKeepsTheNumbersThatGoOn) {
  const NacosRecord gone{.there = false, .revision = 9, .writes = 5, .write_id = "a-1"};
  EXPECT_EQ(EncodeNacosRecord(gone), "holdfast 1 gone 9 0 0 5 a-1 .");
  ASSERT_OK_AND_ASSIGN(const NacosRecord back, DecodeNacosRecord(EncodeNacosRecord(gone)));
  EXPECT_EQ(back, gone);
}

TEST(NacosRecordTest, WhatIsNotOursIsToldAndNeverTakenForAnEntry) {
  const std::string whole = EncodeNacosRecord(Record());
  for (size_t bytes = 0; bytes < whole.rfind('.') + 1; ++bytes) {
    EXPECT_FALSE(DecodeNacosRecord(whole.substr(0, bytes)).ok()) << bytes;
  }
  for (const char* content :
       {"", "some: yaml", "holdfast 1 put 7 3 2 4 a .YQ more", "holdfast 1 set 7 3 2 4 a .YQ",
        "holdfast 1 put 7 3 2 -4 a .YQ", "holdfast 1 put 0 3 2 4 a .YQ",
        "holdfast 1 put 7 3 2 4 a .YR", "holdfast 1 put 7 3 2 4 a YQ"}) {
    EXPECT_FAILS(DecodeNacosRecord(content), kDataLoss, kDamage) << content;
  }
  EXPECT_FAILS(DecodeNacosRecord("holdfast 2 something else"), kUnimplemented, kNone);
}

TEST(NacosDataIdTest, AnyKeyIsANameAndComesBack) {
  EXPECT_EQ(NacosDataId("/em/subs/or%2Fders"), "k:em:subs:or-252Fders");
  std::set<std::string> names;
  for (const std::string& key : {""s, "a"s, "/"s, ":"s, "-"s, "_"s, "*"s, "a.b"s, "\0"s, "\xff"s,
                                 "-2D"s, "a/b"s, "a:b"s, "%"s, "ä"s}) {
    const std::string name = NacosDataId(key);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789.:-"),
              std::string::npos);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(KeyOfNacosDataId(name), key);
    EXPECT_TRUE(NacosDataId(key + "/more").starts_with(name));
  }
}

TEST(NacosDataIdTest, AKeyHasOneNameOnly) {
  for (const char* name :
       {"", "holdfast.probe", "em", "k-", "k-2", "k-2d", "k-41", "k-2F", "k_", "k*", "k a"}) {
    EXPECT_EQ(KeyOfNacosDataId(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace holdfast
