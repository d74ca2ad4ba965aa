#include "meta/http/request_head.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast {
namespace {

int StatusOf(const std::string& head) {
  const auto refusal = CheckRequestHead(head, {.header_count_max = 5});
  return refusal.has_value() ? refusal->status : 0;
}

std::string WithHeader(const std::string& line) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + line + "\r\n\r\n";
}

TEST(RequestHeadTest, TheHeadEndsAtItsEmptyLine) {
  EXPECT_EQ(RequestHeadBytes("GET / HTTP/1.1\r\nHost: a\r\n"), 0u);
  EXPECT_EQ(RequestHeadBytes("GET / HTTP/1.1\r\n\r\nGET"), 18u);
}

TEST(RequestHeadTest, OrdinaryHeadsPass) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf(WithHeader("Content-Length: 12")), 0);
  EXPECT_EQ(StatusOf(WithHeader("transfer-encoding:\tChunked ")), 0);
  EXPECT_EQ(StatusOf(WithHeader("Expect: 100-Continue\r\nContent-Length: 1")), 0);
  EXPECT_EQ(StatusOf(WithHeader("X-Bytes: \xc3\xa9 \"q\"")), 0);
  EXPECT_EQ(StatusOf(WithHeader("X-Empty:")), 0);
}

// Every way that two readers could disagree about where a request ends.
// Proves: G14
TEST(RequestHeadTest, AmbiguousFramingIsRefused) {
  EXPECT_EQ(StatusOf(WithHeader("Content-Length: 4\r\nTransfer-Encoding: chunked")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Content-Length: 4\r\nContent-Length: 4")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Content-Length: 4, 4")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Content-Length: +4")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Content-Length: -1")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Content-Length: 0x4")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Content-Length:")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Content-Length: 99999999999999999999")), 413);
  EXPECT_EQ(StatusOf(WithHeader("Transfer-Encoding: gzip")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Transfer-Encoding: chunked, gzip")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Transfer-Encoding: gzip, chunked")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Transfer-Encoding: identity")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Transfer-Encoding: \"chunked\"")), 400);
  EXPECT_EQ(StatusOf("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

// Proves: G14
TEST(RequestHeadTest, OddWhitespaceIsRefused) {
  EXPECT_EQ(StatusOf(WithHeader("Content-Length : 4")), 400);
  EXPECT_EQ(StatusOf(WithHeader(" Content-Length: 4")), 400);
  EXPECT_EQ(StatusOf(WithHeader("X-Folded: a\r\n b")), 400);
  EXPECT_EQ(StatusOf(WithHeader("X-Folded: a\r\n\tb")), 400);
  EXPECT_EQ(StatusOf(WithHeader("X-Bare: a\nContent-Length: 4")), 400);
  EXPECT_EQ(StatusOf(WithHeader("X-Bare: a\rContent-Length: 4")), 400);
  EXPECT_EQ(StatusOf("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestHeadTest, BytesThatAreNoTextAreRefused) {
  EXPECT_EQ(StatusOf(WithHeader(std::string("X-Zero: a\0b", 11))), 400);
  EXPECT_EQ(StatusOf(WithHeader("X-Del: \x7f")), 400);
  EXPECT_EQ(StatusOf(WithHeader("X(y): 1")), 400);
  EXPECT_EQ(StatusOf(WithHeader(": 1")), 400);
  EXPECT_EQ(StatusOf(WithHeader("no colon")), 400);
  EXPECT_EQ(StatusOf("G{T / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestHeadTest, VersionHostExpectationAndCodingAreChecked) {
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf("GET / http/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(WithHeader("Host: b")), 400);
  EXPECT_EQ(StatusOf(WithHeader("Expect: 200-maybe")), 417);
  EXPECT_EQ(StatusOf(WithHeader("Content-Encoding: gzip")), 415);
  EXPECT_EQ(StatusOf(WithHeader("A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5")), 431);
}

TEST(RequestHeadTest, NobodyWaitsForTheRestOfWhatIsWrongAlready) {
  EXPECT_FALSE(CheckPartialHead("", 100).has_value());
  EXPECT_FALSE(CheckPartialHead("GET / HT", 100).has_value());
  EXPECT_FALSE(CheckPartialHead("GET / HTTP/1.1\r", 100).has_value());
  EXPECT_EQ(CheckPartialHead("GET / HTTP/1.1\n", 100)->status, 400);
  EXPECT_EQ(CheckPartialHead("\x16\x03\x01", 100)->status, 400);
  EXPECT_EQ(CheckPartialHead("\r\n", 100)->status, 400);
  EXPECT_EQ(CheckPartialHead(std::string(101, 'G'), 100)->status, 431);
}

}  // namespace
}  // namespace holdfast
