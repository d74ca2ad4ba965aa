#include "tools/nearest_name.h"

#include <gtest/gtest.h>

#include <utility>

namespace holdfast {
namespace {

const std::vector<std::string> kNames = {"inspect", "dump", "verify", "get", "list", "demo"};

TEST(NearestNameTest, ASlipIsRecognised) {
  const std::pair<const char*, const char*> kMeant[] = {
      {"inspct", "inspect"},  {"inspecct", "inspect"}, {"inspekt", "inspect"},
      {"isnpect", "inspect"}, {"insepct", "inspect"},  {"verfiy", "verify"},
      {"dmup", "dump"},       {"gt", "get"},           {"lsit", "list"},
      {"ver", "verify"},      {"de", "demo"},
  };
  for (const auto& [word, name] : kMeant) EXPECT_EQ(NearestName(word, kNames), name) << word;
}

TEST(NearestNameTest, WhatIsNotNearIsNotGuessed) {
  for (const std::string& word :
       {std::string(), std::string("frob"), std::string("x"), std::string("replay"),
        std::string("inspection-of-it"), std::string(1'000'000, 'i')}) {
    EXPECT_EQ(NearestName(word, kNames), "") << word.substr(0, 20);
  }
  EXPECT_EQ(NearestName("dump", {}), "");
}

}  // namespace
}  // namespace holdfast
