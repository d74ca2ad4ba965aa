#include "meta/value_envelope.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace holdfast {
namespace {

const std::string kMagic("\0HM1", 4);

void ExpectRoundTrip(std::string_view request_id, std::string_view value) {
  const std::string stored = SealEnvelope({.request_id = request_id, .value = value});
  EXPECT_EQ(OpenEnvelope(stored), (EnvelopeParts{.request_id = request_id, .value = value}));
}

TEST(ValueEnvelopeTest, AnyValueAndAnyRequestIdComeBack) {
  const std::string all_bytes = [] {
    std::string bytes;
    for (int c = 0; c < 256; ++c) bytes.push_back(static_cast<char>(c));
    return bytes;
  }();
  for (std::string_view id :
       {std::string_view(), std::string_view("a"), std::string_view("\0\xff", 2),
        std::string_view(all_bytes).substr(1)}) {
    for (const std::string& value : {std::string(), std::string("{}"), all_bytes, kMagic,
                                     kMagic + "\x05" + "ab", kMagic + kMagic}) {
      ExpectRoundTrip(id, value);
    }
  }
}

TEST(ValueEnvelopeTest, AValueWithoutARequestIdIsStoredAsItIs) {
  EXPECT_EQ(SealEnvelope({.request_id = {}, .value = "{\"a\":1}"}), "{\"a\":1}");
}

TEST(ValueEnvelopeTest, WhatSomebodyElseWroteIsTakenWhole) {
  for (const std::string& foreign : {kMagic, kMagic + "\x05" + "abc", std::string("\0HM", 3)}) {
    EXPECT_EQ(OpenEnvelope(foreign), (EnvelopeParts{.request_id = {}, .value = foreign}));
  }
}

}  // namespace
}  // namespace holdfast
