// The client against servers that are scripted byte by byte.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/clock.h"
#include "meta/http/transport.h"
#include "tests/support/raw_socket.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
// For what must run out.
constexpr absl::Duration kShort = absl::Milliseconds(100);

class BeastClientTest : public testing::Test {
 protected:
  BeastClientTest() : transport_(NewHttpTransport({}).value()) {}
  ~BeastClientTest() override {
    if (server_.joinable()) server_.join();
  }

  // Serves one connection with `script`, on a thread of its own.
  void Serve(std::function<void(RawSocket&)> script) {
    if (server_.joinable()) server_.join();
    server_ = std::thread([this, script = std::move(script)] {
      RawSocket client = listener_.Accept();
      script(client);
    });
  }
  HttpEndpoint endpoint() const { return {.host = "127.0.0.1", .port = listener_.port()}; }
  StatusOr<HttpResponse> Post(std::string body, absl::Duration timeout = kPatience) {
    return transport_->Send(
        endpoint(), {.method = "POST", .target = "/t", .headers = {}, .body = std::move(body)},
        timeout);
  }
  // What came back when the server said `answer` and closed.
  StatusOr<HttpResponse> Answered(const std::string& answer) {
    Serve([answer](RawSocket& client) {
      client.ReadUntil("body");
      client.Send(answer);
    });
    return Post("body");
  }

  RawListener listener_;
  std::thread server_;
  std::unique_ptr<HttpTransport> transport_;
};

bool HasUnknownOutcome(const Status& status) {
  return absl::IsUnavailable(status) && DetailOf(status) == Detail::kUnknownOutcome;
}
bool IsNotSent(const Status& status) {
  return absl::IsUnavailable(status) && DetailOf(status) == Detail::kNone;
}

TEST_F(BeastClientTest, SendsAWholeRequestAndReturnsTheAnswer) {
  std::string seen;
  Serve([&](RawSocket& client) {
    seen = client.ReadUntil("body");
    client.Send("HTTP/1.1 404 Not Found\r\nX-A: b\r\nContent-Length: 4\r\n\r\ngone");
  });
  const StatusOr<HttpResponse> response = transport_->Send(
      endpoint(),
      {.method = "POST", .target = "/t?q=1", .headers = {{"X-Token", "t"}}, .body = "body"},
      kPatience);
  ASSERT_OK(response.status());
  server_.join();
  EXPECT_EQ(seen, fmt::format("POST /t?q=1 HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX-Token: t\r\n"
                              "Content-Length: 4\r\n\r\nbody",
                              listener_.port()));
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(response->body, "gone");
  EXPECT_EQ(*FindHeader(response->headers, "x-a"), "b");
}

TEST_F(BeastClientTest, TakesChunksWithTrailersAndBodiesWithoutLength) {
  StatusOr<HttpResponse> response = Answered(
      "HTTP/1.1 400 Bad Request\r\nTrailer: Grpc-Trailer-Content-Type\r\n"
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n"
      "Grpc-Trailer-Content-Type: application/grpc\r\n\r\n");
  ASSERT_OK(response.status());
  EXPECT_EQ(response->body, "abcde");
  response = Answered("HTTP/1.1 200 OK\r\n\r\nuntil the end");
  ASSERT_OK(response.status());
  EXPECT_EQ(response->body, "until the end");
}

TEST_F(BeastClientTest, AConnectionIsUsedAgain) {
  Serve([](RawSocket& client) {
    for (int i = 0; i < 3; ++i) {
      client.ReadUntil("body");
      client.Send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::to_string(i));
    }
  });
  for (int i = 0; i < 3; ++i) {
    const StatusOr<HttpResponse> response = Post("body");
    ASSERT_OK(response.status());
    EXPECT_EQ(response->body, std::to_string(i));
  }
}

TEST_F(BeastClientTest, AConnectionThatTheServerClosedIsNotUsedAgain) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(Answered("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").status());
    server_.join();  // Now it is closed.
  }
}

// An answer that nobody asked for must not pass for that of the next request.
TEST_F(BeastClientTest, AConnectionWithALeftoverAnswerIsNotUsedAgain) {
  const std::string one = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
  EXPECT_EQ(Answered(one + "a" + one + "late")->body, "a");
  EXPECT_EQ(Answered(one + "b")->body, "b");
}

TEST_F(BeastClientTest, WhatWasNeverSentIsToldFromWhatWasNotAnswered) {
  const uint16_t port = listener_.port();
  EXPECT_TRUE(HasUnknownOutcome(Answered("").status()));
  server_.join();
  listener_.Close();
  const StatusOr<HttpResponse> refused =
      transport_->Send({.host = "127.0.0.1", .port = port}, {}, kPatience);
  EXPECT_TRUE(IsNotSent(refused.status())) << refused.status();
  const StatusOr<HttpResponse> nowhere =
      transport_->Send({.host = "no-such-host.invalid", .port = 1}, {}, kPatience);
  EXPECT_TRUE(IsNotSent(nowhere.status())) << nowhere.status();
  EXPECT_TRUE(IsNotSent(transport_->Send(endpoint(), {}, absl::ZeroDuration()).status()));
}

TEST_F(BeastClientTest, AnAnswerThatIsCutOffAnywhereIsUnknown) {
  const std::string whole = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_TRUE(HasUnknownOutcome(Answered(whole.substr(0, bytes)).status())) << bytes;
  }
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
  for (size_t bytes = chunked.size() - 11; bytes < chunked.size(); ++bytes) {
    EXPECT_TRUE(HasUnknownOutcome(Answered(chunked.substr(0, bytes)).status())) << bytes;
  }
}

TEST_F(BeastClientTest, WhatIsNoAnswerIsUnknown) {
  const std::string large_head = "HTTP/1.1 200 OK\r\nX: " + std::string(30'000, 'x') + "\r\n\r\n";
  for (const std::string& answer :
       {std::string("nonsense\r\n\r\n"), std::string("HTTP/1.1 100 Continue\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), large_head,
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")}) {
    EXPECT_TRUE(HasUnknownOutcome(Answered(answer).status())) << answer.substr(0, 80);
  }
}

TEST_F(BeastClientTest, AServerThatSaysNothingIsUnknownAtTheDeadline) {
  Serve([](RawSocket& client) {
    client.ReadUntil("body");
    client.ReadToEnd();  // Until the client gives up, which it shows by closing.
    EXPECT_TRUE(client.at_end());
  });
  EXPECT_TRUE(HasUnknownOutcome(Post("body", kShort).status()));
}

// Whichever is first decides, and what is second finds nothing left to do.
TEST_F(BeastClientTest, AnAnswerThatComesWithTheDeadlineIsOneOfBoth) {
  constexpr absl::Duration kMoment = absl::Milliseconds(1);
  server_ = std::thread([&] {
    for (bool last = false; !last;) {
      RawSocket client = listener_.Accept();
      while (!last) {
        const std::string request = client.ReadUntil("body");
        if (client.at_end()) break;
        last = request.find("last body") != std::string::npos;
        const absl::Duration answer_at = RealClock().Now() + kMoment;
        while (RealClock().Now() < answer_at) {
        }
        client.Send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
      }
    }
  });
  for (int i = 0; i < 1'000; ++i) {
    const StatusOr<HttpResponse> response = Post("body", kMoment + absl::Microseconds(i % 300));
    if (!response.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
    }
  }
  EXPECT_OK(Post("last body").status());
}

TEST_F(BeastClientTest, ARefusalBeforeTheBodyWasReadIsHeard) {
  Serve([](RawSocket& client) {
    client.ReadUntil("\r\n\r\n");
    client.Send("HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    client.EndSending();
    client.ReadToEnd();
  });
  const StatusOr<HttpResponse> response = Post(std::string(4 << 20, 'x'));
  ASSERT_OK(response.status());
  EXPECT_EQ(response->status, 413);
}

TEST_F(BeastClientTest, ARequestThatWouldReadAsAnotherIsNotSent) {
  const std::vector<HttpRequest> requests = {
      {.method = "GET", .target = "/a b", .headers = {}, .body = {}},
      {.method = "GET", .target = "a", .headers = {}, .body = {}},
      {.method = "G T", .target = "/", .headers = {}, .body = {}},
      {.method = "GET", .target = "/", .headers = {{"X", "a\r\nY: b"}}, .body = {}},
      {.method = "GET", .target = "/", .headers = {{"X:", "a"}}, .body = {}},
  };
  for (const HttpRequest& request : requests) {
    EXPECT_EQ(transport_->Send(endpoint(), request, kPatience).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(BeastClientTest, RequestsRunSideBySide) {
  constexpr int kRequests = 20;
  server_ = std::thread([&] {
    std::vector<RawSocket> clients;
    for (int i = 0; i < kRequests; ++i) clients.push_back(listener_.Accept());
    // All are there at once before one is answered.
    for (RawSocket& client : clients) {
      const std::string request = client.ReadUntil("end");
      const std::string body = request.substr(request.find("\r\n\r\n") + 4);
      client.Send(
          fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    }
  });
  std::vector<std::thread> callers;
  for (int i = 0; i < kRequests; ++i) {
    callers.emplace_back([&, i] {
      const std::string body = std::to_string(i) + " end";
      EXPECT_EQ(Post(body)->body, body);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// ---- streams

class BeastClientStreamTest : public BeastClientTest {
 protected:
  StatusOr<HttpStreamStart> Open() {
    return transport_->Open(
        endpoint(), {.method = "POST", .target = "/", .headers = {}, .body = "body"}, kPatience);
  }
  static constexpr char kHead[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
};

TEST_F(BeastClientStreamTest, BytesComeAsTheyAreSentAndTheEndIsTold) {
  Serve([](RawSocket& client) {
    client.ReadUntil("body");
    client.Send(kHead);
    client.Send("3\r\nabc\r\n");
    client.Send("2\r\nde\r\n0\r\n\r\n");
  });
  StatusOr<HttpStreamStart> start = Open();
  ASSERT_OK(start.status());
  EXPECT_EQ(start->head.status, 200);
  std::string all;
  StatusOr<std::string> more;
  while ((more = start->stream->Read(kPatience)).ok()) all += *more;
  EXPECT_EQ(all, "abcde");
  EXPECT_EQ(more.status().code(), StatusCode::kOutOfRange);
}

TEST_F(BeastClientStreamTest, AStreamThatBreaksIsNotOneThatEnds) {
  Serve([](RawSocket& client) {
    client.ReadUntil("body");
    client.Send(std::string(kHead) + "5\r\nab");
  });
  StatusOr<HttpStreamStart> start = Open();
  ASSERT_OK(start.status());
  std::string all;
  StatusOr<std::string> more;
  while ((more = start->stream->Read(kPatience)).ok()) all += *more;
  EXPECT_EQ(all, "ab");
  EXPECT_EQ(more.status().code(), StatusCode::kUnavailable);
}

TEST_F(BeastClientStreamTest, SilenceIsToldAndIsNotTheEnd) {
  RawListener signal;
  Serve([&](RawSocket& client) {
    client.ReadUntil("body");
    client.Send(kHead);
    signal.Accept();
    client.Send("1\r\na\r\n");
    client.ReadToEnd();
  });
  StatusOr<HttpStreamStart> start = Open();
  ASSERT_OK(start.status());
  EXPECT_EQ(start->stream->Read(absl::Milliseconds(1)).status().code(),
            StatusCode::kDeadlineExceeded);
  RawSocket go = RawSocket::Connect(signal.port());
  EXPECT_EQ(*start->stream->Read(kPatience), "a");
}

TEST_F(BeastClientStreamTest, CloseWakesTheReaderAndEndsTheConnection) {
  Serve([](RawSocket& client) {
    client.ReadUntil("body");
    client.Send(kHead);
    client.ReadToEnd();
    EXPECT_TRUE(client.at_end());
  });
  StatusOr<HttpStreamStart> start = Open();
  ASSERT_OK(start.status());
  std::thread closer([&] { start->stream->Close(); });
  EXPECT_EQ(start->stream->Read(kPatience).status().code(), StatusCode::kUnavailable);
  closer.join();
}

TEST_F(BeastClientStreamTest, ASlowReaderStopsTheServerAndLosesNothing) {
  static constexpr size_t kChunks = 800, kChunkBytes = 20'000;
  Serve([](RawSocket& client) {
    client.ReadUntil("body");
    client.Send(kHead);
    for (size_t i = 0; i < kChunks; ++i) {
      client.Send(fmt::format("{:x}\r\n", kChunkBytes));
      client.Send(std::string(kChunkBytes, static_cast<char>('a' + i % 26)));
      client.Send("\r\n");
    }
    client.Send("0\r\n\r\n");
  });
  HttpClientOptions options;
  options.stream_buffer_bytes_max = 100'000;
  transport_ = NewHttpTransport(options).value();
  StatusOr<HttpStreamStart> start = Open();
  ASSERT_OK(start.status());
  std::string all;
  StatusOr<std::string> more;
  while ((more = start->stream->Read(kPatience)).ok()) {
    EXPECT_LT(more->size(), 200'000u);
    all += *more;
  }
  EXPECT_EQ(more.status().code(), StatusCode::kOutOfRange);
  ASSERT_EQ(all.size(), kChunks * kChunkBytes);
  for (size_t i = 0; i < kChunks; ++i) {
    ASSERT_EQ(all[i * kChunkBytes], static_cast<char>('a' + i % 26));
  }
}

TEST(BeastClientOptionsTest, AHeadLimitBeyondTheParserIsRefused) {
  HttpClientOptions options;
  options.head_bytes_max = size_t{1} << 20;
  EXPECT_EQ(NewHttpTransport(options).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace holdfast
