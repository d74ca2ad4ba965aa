#include "meta/meta_key.h"

#include <gtest/gtest.h>

#include <set>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Parts = std::vector<std::string>;

TEST(MetaKeyTest, WhatCanBeReadStaysReadable) {
  EXPECT_EQ(MetaKey("subs", {"orders.created", "billing-1", "host_7~"}),
            "/em/subs/orders.created/billing-1/host_7~");
  EXPECT_EQ(MetaKey("subs", {"a/b", "", std::string("\0\xff%", 3)}), "/em/subs/a%2Fb//%00%FF%25");
  EXPECT_EQ(MetaPrefix("subs", {"a"}), "/em/subs/a/");
}

// Proves: S1
TEST(MetaKeyTest, AnyBytesComeBackAndNoTwoNamesCollide) {
  for (const uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    std::set<std::string> keys;
    std::set<Parts> names;
    for (int i = 0; i < 300; ++i) {
      Parts parts;
      for (int part = 0; part < 3; ++part) {
        std::string bytes;
        const uint64_t length = rng.Below(4);
        for (uint64_t at = 0; at < length; ++at) {
          bytes += rng.OneIn(2) ? static_cast<char>(rng.Below(256)) : "/%a2"[rng.Below(4)];
        }
        parts.push_back(bytes);
      }
      const std::string key = MetaKey("k", {parts[0], parts[1], parts[2]});
      ASSERT_EQ(*ParseMetaKey("k", 3, key), parts);
      EXPECT_TRUE(key.starts_with(MetaPrefix("k", {parts[0]})));
      EXPECT_EQ(keys.insert(key).second, names.insert(parts).second) << key;
    }
  }
}

TEST(MetaKeyTest, WhatIsNotOursIsTold) {
  for (const std::string_view key :
       {"", "/em/k", "/em/k/", "/em/other/a/b", "/em/k/a", "/em/k/a/b/c", "/em/k/a/b ",
        "/em/k/a/%2", "/em/k/a/%zz", "/em/k/a/%2f", "/em/k/a/%61", "em/k/a/b", "/em/k/a/%"}) {
    EXPECT_FAILS(ParseMetaKey("k", 2, key), kDataLoss, kDamage) << key;
  }
  EXPECT_EQ(*ParseMetaKey("k", 2, "/em/k//"), (Parts{"", ""}));
}

TEST(MetaKeyTest, APartitionOfASourceIsThreeParts) {
  const SourceKey source{"a/b", 0, UINT64_MAX};
  EXPECT_EQ(MetaSourceKey("cursors", source), "/em/cursors/a%2Fb/0/18446744073709551615");
  EXPECT_EQ(*ParseSourceKey("cursors", MetaSourceKey("cursors", source)), source);
  for (const std::string_view key : {"/em/k/a/01/2", "/em/k/a/1/x", "/em/k/a/1/", "/em/k/a/1",
                                     "/em/k/a/1/18446744073709551616", "/em/k/a/%2B1/2"}) {
    EXPECT_FAILS(ParseSourceKey("k", key), kDataLoss, kDamage) << key;
  }
}

}  // namespace
}  // namespace holdfast
