#include "journal/base/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "journal/base/seeded_rng.h"

namespace holdfast {
namespace {

std::string Written(std::string_view bytes) {
  std::string out;
  JsonWriter(out).Value(bytes);
  return out;
}

TEST(JsonWriterTest, PutsCommasWhereTheyBelong) {
  std::string out;
  JsonWriter writer(out);
  writer.BeginObject();
  writer.Field("a", 1).Field("b", "x").Key("c").BeginArray();
  writer.Value(uint8_t{255}).Value(int64_t{-1}).Value(true).Null().BeginObject().EndObject();
  writer.EndArray().Field("d", 0.5).Field("e", std::numeric_limits<double>::infinity());
  writer.EndObject();
  EXPECT_EQ(out, R"({"a":1,"b":"x","c":[255,-1,true,null,{}],"d":0.5,"e":null})");
}

TEST(JsonWriterTest, BytesThatAreNotUtf8BecomeBase64) {
  EXPECT_EQ(Written("plain"), "\"plain\"");
  EXPECT_EQ(Written("q\"b\\n\nt\t"), R"("q\"b\\n\nt\t")");
  EXPECT_EQ(Written(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(Written("\xff\xfe"), R"({"base64":"//4="})");
  std::string out;
  JsonWriter writer(out);
  writer.BeginArray().Value("a").Value("\xff").Value("b").EndArray();
  EXPECT_EQ(out, R"(["a",{"base64":"/w=="},"b"])");
}

TEST(JsonTest, EveryStringOfBytesComesBack) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    std::string bytes(rng.Below(20), '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng.OneIn(2) ? rng.Below(128) : rng.Next());
    const StatusOr<Json> json = Json::Parse(Written(bytes));
    ASSERT_TRUE(json.ok()) << json.status();
    if (IsUtf8(bytes)) {
      ASSERT_NE(json->string(), nullptr);
      EXPECT_EQ(*json->string(), bytes);
    } else {
      ASSERT_NE(json->Find("base64"), nullptr);
      EXPECT_EQ(FromBase64(*json->Find("base64")->string()), bytes);
    }
  }
}

TEST(JsonTest, ReadsEveryKindOfValue) {
  const StatusOr<Json> json = Json::Parse(
      R"( {"n":null,"t":true,"u":18446744073709551615,"i":-9223372036854775808,"d":1.5e3,)"
      R"("s":"\u00e9\u0000","a":[1,[],{}],"o":{"k":"v"}} )");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_TRUE(json->Find("n")->is_null());
  EXPECT_EQ(*json->Find("t")->boolean(), true);
  EXPECT_EQ(json->Find("u")->unsigned_integer(), ~uint64_t{0});
  EXPECT_EQ(json->Find("u")->integer(), std::nullopt);
  EXPECT_EQ(json->Find("i")->integer(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(json->Find("i")->unsigned_integer(), std::nullopt);
  EXPECT_EQ(json->Find("d")->number(), 1500.0);
  EXPECT_EQ(json->Find("d")->integer(), std::nullopt);
  EXPECT_EQ(*json->Find("s")->string(), std::string("\xc3\xa9\0", 3));
  EXPECT_EQ(json->Find("a")->array()->size(), 3u);
  EXPECT_EQ(*json->Find("o")->Find("k")->string(), "v");
  EXPECT_EQ(json->Find("x"), nullptr);
  EXPECT_EQ(json->Find("a")->Find("x"), nullptr);
  EXPECT_EQ(json->Find("a")->string(), nullptr);
}

// Proves: G14
TEST(JsonTest, WhatIsNotJsonIsRefusedWithoutEcho) {
  for (const std::string_view text : {std::string_view(""),
                                      std::string_view(" "),
                                      std::string_view("{"),
                                      std::string_view("[1,]"),
                                      std::string_view("{\"a\":1,}"),
                                      std::string_view("nul"),
                                      std::string_view("1 2"),
                                      std::string_view("01"),
                                      std::string_view("'a'"),
                                      std::string_view("{a:1}"),
                                      std::string_view("// c\n1"),
                                      std::string_view("\"\xff\""),
                                      std::string_view("\"\\ud800\""),
                                      std::string_view("\"\n\""),
                                      std::string_view("1e999"),
                                      std::string_view("NaN"),
                                      std::string_view("\"SECRET\" \"SECRET\""),
                                      std::string_view("{\"k\":1,\"k\":2}"),
                                      std::string_view("1\0", 2),
                                      std::string_view("[}"),
                                      std::string_view("]")}) {
    const StatusOr<Json> json = Json::Parse(text);
    EXPECT_EQ(json.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(Message(json.status()).find("SECRET"), std::string::npos);
  }
}

// Proves: G14
TEST(JsonTest, LimitsHold) {
  const auto code = [](std::string_view text, const Json::Limits& limits) {
    return Json::Parse(text, limits).status().code();
  };
  EXPECT_EQ(code("[[]]", {.depth_max = 2}), StatusCode::kOk);
  EXPECT_EQ(code("[[]]", {.depth_max = 1}), StatusCode::kResourceExhausted);
  EXPECT_EQ(code("{\"a\":{}}", {.depth_max = 1}), StatusCode::kResourceExhausted);
  EXPECT_EQ(code("[1,2]", {.values_max = 3}), StatusCode::kOk);
  EXPECT_EQ(code("[1,2,3]", {.values_max = 3}), StatusCode::kResourceExhausted);
  EXPECT_EQ(code("[1,2]", {.bytes_max = 5}), StatusCode::kOk);
  EXPECT_EQ(code("[1,2] ", {.bytes_max = 5}), StatusCode::kResourceExhausted);
  EXPECT_EQ(Json::Parse(std::string(1'000'000, '[')).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(JsonTest, RandomTextNeverCrashes) {
  constexpr std::string_view kParts = "{}[]\":,\\u0e+-.1tfn ";
  for (uint64_t seed = 1; seed <= 5'000; ++seed) {
    SeededRng rng(seed);
    std::string text(rng.Below(30), ' ');
    for (char& c : text) c = kParts[rng.Below(kParts.size())];
    const StatusOr<Json> json = Json::Parse(text);
    (void)json.ok();  // either is right; it must not crash
  }
}

TEST(Utf8Test, OnlyWellFormedTextPasses) {
  for (const char* text : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const char* text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xc3", "\xc3("}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

TEST(Base64Test, RoundTripsAndRefusesOtherForms) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  for (const char* text :
       {"Zg", "Zg=", "Zg=a", "=g==", "Zh==", "Zm9=", "Zm 8", "Zm8\n", "Zg==Zg==", "====", "Z==="}) {
    EXPECT_EQ(FromBase64(text), std::nullopt) << text;
  }
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRng rng(seed);
    std::string bytes(rng.Below(50), '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng.Next());
    EXPECT_EQ(FromBase64(Base64(bytes)), bytes) << seed;
  }
}

}  // namespace
}  // namespace holdfast
