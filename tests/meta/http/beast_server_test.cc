// The server against raw sockets: what a hostile, slow or vanishing client can send, and what a
// good one may rely on.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "journal/base/mutex.h"
#include "meta/http/server.h"
#include "tests/support/raw_socket.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Something that another thread hands over once.
template <typename T>
class Slot {
 public:
  void Put(T value) {
    MutexLock lock(mu_);
    values_.push_back(std::move(value));
    arrived_.NotifyAll();
  }
  T Take() {
    MutexLock lock(mu_);
    while (values_.empty()) arrived_.Wait(mu_);
    T value = std::move(values_.front());
    values_.erase(values_.begin());
    return value;
  }

 private:
  Mutex mu_;
  CondVar arrived_;
  std::vector<T> values_ ABSL_GUARDED_BY(mu_);
};

class BeastServerTest : public testing::Test {
 protected:
  using ReplyPtr = std::shared_ptr<HttpReply>;
  static constexpr int kPieces = 200;

  void Start(HttpServerOptions options = {}) {
    const auto echo = [this](const HttpRequest& request, const ReplyPtr& reply) {
      ++runs_;
      reply->Send({.status = 200,
                   .headers = {{"Content-Type", "text/plain"}},
                   .body = request.method + " " + request.target + " " + request.body});
    };
    std::vector<HttpRoute> routes = {
        {"POST", "/echo", echo},
        {"GET", "/echo", echo},
        {"HEAD", "/echo", echo},
        {"GET", "/drop", [](const HttpRequest&, const ReplyPtr&) {}},
        {"GET", "/later",
         [this](const HttpRequest&, ReplyPtr reply) { replies_.Put(std::move(reply)); }},
        {"GET", "/stream",
         [this](const HttpRequest&, const ReplyPtr& reply) {
           streams_.Put(reply->Stream({.status = 200, .headers = {}, .body = "first,"}));
         }},
        {"GET", "/much",
         [](const HttpRequest&, const ReplyPtr& reply) {
           const auto stream = reply->Stream({.status = 200, .headers = {}, .body = "first,"});
           stream->OnDrained([stream, written = 0]() mutable {
             if (written++ == kPieces) return stream->End();
             EXPECT_TRUE(stream->Write(std::string(5000, 'x')));
           });
         }},
    };
    StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Listen(options, std::move(routes));
    ASSERT_OK(server.status());
    server_ = std::move(*server);
    server_->Serve();
  }
  RawSocket Connect() { return RawSocket::Connect(server_->port()); }

  // All that comes back, to the end of the connection.
  std::string Exchange(std::string_view request) {
    RawSocket client = Connect();
    client.Send(request);
    return client.ReadToEnd();
  }
  static std::string Get(std::string_view path, std::string_view headers = "") {
    return fmt::format("GET {} HTTP/1.1\r\nHost: a\r\n{}\r\n", path, headers);
  }
  static std::string Post(std::string_view headers, std::string_view body) {
    return fmt::format("POST /echo HTTP/1.1\r\nHost: a\r\n{}\r\n{}", headers, body);
  }

  std::atomic<int> runs_ = 0;  // of the echo
  Slot<ReplyPtr> replies_;
  Slot<std::shared_ptr<HttpEventStream>> streams_;
  std::unique_ptr<HttpServer> server_;
};

constexpr char kClose[] = "Connection: close\r\n";

std::string StatusLine(const std::string& answer) { return answer.substr(0, answer.find("\r\n")); }

TEST_F(BeastServerTest, AnswersAndKeepsTheConnection) {
  Start();
  RawSocket client = Connect();
  for (int i = 0; i < 3; ++i) {
    client.Send(Post("Content-Length: 5\r\n", "hello"));
    const std::string answer = client.ReadUntil("POST /echo hello");
    EXPECT_EQ(StatusLine(answer), "HTTP/1.1 200 OK");
    EXPECT_NE(answer.find("Content-Length: 16\r\n"), std::string::npos) << answer;
  }
  EXPECT_EQ(server_->Stats().connections, 1u);
  EXPECT_EQ(server_->Stats().requests, 3u);
}

TEST_F(BeastServerTest, ClosesWhenAsked) {
  Start();
  const std::string answer = Exchange(Get("/echo?x=1", kClose));
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\nGET /echo?x=1 ")) << answer;
}

TEST_F(BeastServerTest, Http10IsAnsweredAndClosed) {
  Start();
  EXPECT_TRUE(Exchange("GET /echo HTTP/1.0\r\n\r\n").ends_with("GET /echo "));
}

TEST_F(BeastServerTest, PipelinedRequestsAreAnsweredInOrder) {
  Start();
  RawSocket client = Connect();
  client.Send(Get("/echo?1") + Post("Content-Length: 1\r\n", "x") + Get("/echo?3", kClose));
  const std::string answers = client.ReadToEnd();
  const size_t first = answers.find("GET /echo?1");
  const size_t second = answers.find("POST /echo x");
  const size_t third = answers.find("GET /echo?3");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(third, std::string::npos);
}

TEST_F(BeastServerTest, ChunkedBodiesArePutTogether) {
  Start();
  EXPECT_TRUE(Exchange(Post("Transfer-Encoding: chunked\r\nConnection: close\r\n",
                            "3\r\nabc\r\nA;ext=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"))
                  .ends_with("POST /echo abc0123456789"));
}

TEST_F(BeastServerTest, OneByteAtATimeIsTheSameRequest) {
  Start();
  RawSocket client = Connect();
  for (const char c : Post("Transfer-Encoding: chunked\r\nConnection: close\r\n",
                           "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")) {
    ASSERT_TRUE(client.Send({&c, 1}));
  }
  EXPECT_TRUE(client.ReadToEnd().ends_with("POST /echo abcde"));
}

TEST_F(BeastServerTest, ContinueIsSaidToWhoAsks) {
  Start();
  RawSocket client = Connect();
  client.Send(Post("Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n", ""));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("ok");
  EXPECT_TRUE(client.ReadToEnd().ends_with("POST /echo ok"));
}

TEST_F(BeastServerTest, HeadHasNoBody) {
  Start();
  const std::string answer =
      Exchange("HEAD /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
  EXPECT_NE(answer.find("Content-Length: 11\r\n"), std::string::npos) << answer;
}

TEST_F(BeastServerTest, UnknownPathsAndMethodsAreTold) {
  Start();
  EXPECT_EQ(StatusLine(Exchange(Get("/nope", kClose))), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(StatusLine(Exchange("PUT /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")),
            "HTTP/1.1 405 Method Not Allowed");
}

TEST_F(BeastServerTest, AReplyThatIsDroppedIsAnError) {
  Start();
  EXPECT_EQ(StatusLine(Exchange(Get("/drop", kClose))), "HTTP/1.1 500 Internal Server Error");
}

TEST_F(BeastServerTest, AReplyMayComeFromAnotherThreadAndLater) {
  Start();
  RawSocket client = Connect();
  client.Send(Get("/later", kClose));
  ReplyPtr reply = replies_.Take();
  std::thread([&] { reply->Send({.status = 202, .headers = {}, .body = "done"}); }).join();
  reply->Send({.status = 500, .headers = {}, .body = "a second answer"});
  EXPECT_TRUE(client.ReadToEnd().ends_with("\r\n\r\ndone"));
}

// Smuggling: each of these hides a second request for a reader that frames it otherwise.
// Proves: G14
TEST_F(BeastServerTest, AmbiguousRequestsAreRefusedAndWhatTheyHideIsNeverRun) {
  Start();
  const std::string hidden = Post("Content-Length: 1\r\n", "x");
  const std::vector<std::string> requests = {
      Post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"),
      Post("Content-Length: 0\r\nContent-Length: 4\r\n", ""),
      Post("Content-Length: 0,4\r\n", ""),
      Post("Content-Length: 0\r\n Transfer-Encoding: chunked\r\n", ""),
      Post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
      Post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
      Post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
      Post("Transfer-Encoding:\x0b"
           "chunked\r\n",
           "0\r\n\r\n"),
      Post("X: y\nContent-Length: 0\r\n", ""),
      Post("X: y\rContent-Length: 0\r\n", ""),
      "POST /echo HTTP/1.1\nHost: a\n\n",
      Post("Transfer-Encoding: chunked\r\n", "0x1\r\na\r\n0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\n", " 1\r\na\r\n0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\n", "-1\r\na\r\n0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\n", "1\r\nab\r\n0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\n", "1\na\r\n0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\n", "1\r\na\n0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\n", "FFFFFFFFFFFFFFFF1\r\na\r\n0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\n", "10000000000000001\r\na\r\n0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\n", "\r\na\r\n0\r\n\r\n"),
      Post("Transfer-Encoding: chunked\r\n", "g\r\na\r\n0\r\n\r\n"),
  };
  for (const std::string& request : requests) {
    const std::string answer = Exchange(request + hidden);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 413 "))
        << request << "\n-> " << answer;
    EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << request << "\n-> " << answer;
  }
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(server_->Stats().refused, requests.size());
}

// Proves: G14
TEST_F(BeastServerTest, WhatIsTooLargeIsRefusedBeforeItIsRead) {
  HttpServerOptions options;
  options.body_bytes_max = 1000;
  options.head_bytes_max = 2000;
  options.header_count_max = 20;
  Start(options);
  const auto status = [&](const std::string& request) { return StatusLine(Exchange(request)); };
  const std::string too_large = "HTTP/1.1 413 Payload Too Large";
  const std::string head_too_large = "HTTP/1.1 431 Request Header Fields Too Large";
  EXPECT_EQ(status(Post("Content-Length: 1001\r\n", "")), too_large);
  EXPECT_EQ(status(Post("Content-Length: 999999999999999999\r\n", "")), too_large);
  EXPECT_EQ(status(Post("Transfer-Encoding: chunked\r\n", "3E9\r\n")), too_large);
  EXPECT_EQ(status(Post("Transfer-Encoding: chunked\r\n",
                        "3E8\r\n" + std::string(1000, 'x') + "\r\n1\r\ny\r\n0\r\n\r\n")),
            too_large);
  EXPECT_EQ(status(Post("X: " + std::string(3000, 'x') + "\r\n", "")), head_too_large);
  EXPECT_EQ(status("GET /" + std::string(3000, 'x')), head_too_large);
  std::string many;
  for (int i = 0; i < 20; ++i) many += "A: b\r\n";
  EXPECT_EQ(status(Get("/echo", many)), head_too_large);
  EXPECT_EQ(status(Post("Content-Encoding: gzip\r\nContent-Length: 1\r\n", "x")),
            "HTTP/1.1 415 Unsupported Media Type");
  // Neither the extension of a chunk nor a trailer is a way around.
  EXPECT_EQ(StatusLine(
                Exchange(Post("Transfer-Encoding: chunked\r\n", "1;" + std::string(200'000, 'x')))),
            "HTTP/1.1 400 Bad Request");
  EXPECT_FALSE(Exchange(Post("Transfer-Encoding: chunked\r\n",
                             "1\r\na\r\n0\r\nT: " + std::string(200'000, 'x')))
                   .starts_with("HTTP/1.1 200"));
  EXPECT_EQ(runs_, 0);
  EXPECT_TRUE(
      Exchange(Post("Content-Length: 1000\r\nConnection: close\r\n", std::string(1000, 'x')))
          .starts_with("HTTP/1.1 200 OK"));
}

// Proves: G14
TEST_F(BeastServerTest, NoErrorSaysWhatCame) {
  Start();
  const std::string mark = "QxZ7";
  for (const std::string& request :
       {Get("/" + mark, kClose), mark + " /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        Post(mark + " : x\r\n", ""), Post("Content-Length: " + mark + "\r\n", ""),
        Post("Transfer-Encoding: chunked\r\n", mark + "\r\n"), mark + "\n\n",
        Post("Content-Encoding: " + mark + "\r\nContent-Length: 1\r\n", "x")}) {
    const std::string answer = Exchange(request);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 4")) << request << "\n-> " << answer;
    EXPECT_EQ(answer.find(mark), std::string::npos) << request << "\n-> " << answer;
  }
}

// A total deadline: each byte that drips in does not start it anew.
// Proves: G14
TEST_F(BeastServerTest, ADribblingClientIsCutOffWhileOthersAreServed) {
  HttpServerOptions options;
  options.head_timeout = absl::Milliseconds(200);
  options.body_timeout = absl::Milliseconds(200);
  options.head_bytes_max = size_t{32} << 10;
  Start(options);
  for (const std::string& start :
       {std::string("GET /echo HTTP/1.1\r\nX: "), Post("Content-Length: 1000000\r\n", ""),
        Post("Transfer-Encoding: chunked\r\n", "FFFFF\r\n")}) {
    RawSocket slow = Connect();
    slow.Send(start);
    // One byte for each request of somebody else that is served meanwhile: too few for any limit.
    while (slow.Send("x")) {
      ASSERT_TRUE(Exchange(Get("/echo", kClose)).starts_with("HTTP/1.1 200 OK"));
    }
    EXPECT_EQ(slow.ReadToEnd(), "");
  }
}

// Proves: G14
TEST_F(BeastServerTest, AClientThatNeverReadsItsAnswerIsCutOff) {
  HttpServerOptions options;
  options.write_timeout = absl::Milliseconds(100);
  Start(options);
  RawSocket client = Connect();
  client.Send(Get("/later"));
  // More than the buffers of both kernels take.
  replies_.Take()->Send({.status = 200, .headers = {}, .body = std::string(64 << 20, 'x')});
  while (server_->Stats().connections != 0) std::this_thread::yield();
  EXPECT_LT(client.ReadToEnd().size(), size_t{64} << 20);
}

// Proves: G14
TEST_F(BeastServerTest, AnIdleConnectionIsClosed) {
  HttpServerOptions options;
  options.idle_timeout = absl::Milliseconds(50);
  Start(options);
  RawSocket client = Connect();
  client.Send(Get("/echo"));
  EXPECT_TRUE(client.ReadToEnd().ends_with("GET /echo "));
  EXPECT_TRUE(client.at_end());
}

// Proves: G14
TEST_F(BeastServerTest, MoreConnectionsThanAllowedAreRefused) {
  HttpServerOptions options;
  options.connections_max = 2;
  Start(options);
  RawSocket first = Connect();
  first.Send(Get("/echo"));
  first.ReadUntil("GET /echo ");
  {
    RawSocket second = Connect();
    second.Send(Get("/echo"));
    second.ReadUntil("GET /echo ");
    EXPECT_EQ(StatusLine(Connect().ReadToEnd()), "HTTP/1.1 503 Service Unavailable");
  }
  // The one that went makes room, as soon as the server has seen it go.
  std::string answer;
  while (!answer.starts_with("HTTP/1.1 200")) answer = Exchange(Get("/echo", kClose));
}

TEST_F(BeastServerTest, AStreamGoesOutAsItIsWritten) {
  Start();
  RawSocket client = Connect();
  client.Send(Get("/stream"));
  const auto stream = streams_.Take();
  EXPECT_NE(client.ReadUntil("\r\n\r\n").find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(client.ReadUntil("first,\r\n"), "6\r\nfirst,\r\n");
  EXPECT_TRUE(stream->Write("0123456789"));
  EXPECT_EQ(client.ReadUntil("9\r\n"), "a\r\n0123456789\r\n");
  EXPECT_EQ(server_->Stats().streams, 1u);
  EXPECT_TRUE(stream->Write("last"));
  stream->End();
  EXPECT_FALSE(stream->Write("too late"));
  EXPECT_EQ(client.ReadToEnd(), "4\r\nlast\r\n0\r\n\r\n");
}

TEST_F(BeastServerTest, AStreamToHttp10EndsWithTheConnection) {
  Start();
  RawSocket client = Connect();
  client.Send("GET /stream HTTP/1.0\r\n\r\n");
  const auto stream = streams_.Take();
  stream->Write("second");
  stream->End();
  EXPECT_TRUE(client.ReadToEnd().ends_with("\r\n\r\nfirst,second"));
}

TEST_F(BeastServerTest, AReaderThatGoesClosesItsStream) {
  Start();
  for (const bool reset : {false, true}) {
    RawSocket client = Connect();
    client.Send(Get("/stream"));
    const auto stream = streams_.Take();
    client.ReadUntil("first,\r\n");
    Slot<bool> closed;
    stream->OnClosed([&] { closed.Put(true); });
    if (reset) {
      client.Reset();
    } else {
      client.Close();
    }
    EXPECT_TRUE(closed.Take());
    EXPECT_FALSE(stream->Write("x"));
  }
  EXPECT_EQ(server_->Stats().streams, 0u);
}

// Proves: G14
TEST_F(BeastServerTest, AReaderThatNeverReadsIsCutOffAtTheCap) {
  HttpServerOptions options;
  options.stream_buffer_bytes_max = size_t{64} << 10;
  Start(options);
  RawSocket client = Connect();
  client.Send(Get("/stream"));
  const auto stream = streams_.Take();
  Slot<bool> closed;
  stream->OnClosed([&] { closed.Put(true); });
  // Until the kernel's buffers are full too.
  const std::string piece(16 << 10, 'x');
  size_t written = 0;
  while (stream->Write(piece)) written += piece.size();
  EXPECT_TRUE(closed.Take());
  EXPECT_LT(written, size_t{64} << 20);
  EXPECT_EQ(server_->Stats().slow_readers, 1u);
  // The client can tell that this was not the end.
  EXPECT_FALSE(client.ReadToEnd().ends_with("0\r\n\r\n"));
}

TEST_F(BeastServerTest, AWriterThatWaitsForDrainedIsNeverCutOff) {
  HttpServerOptions options;
  options.stream_buffer_bytes_max = 1000;
  Start(options);
  RawSocket client = Connect();
  client.Send(Get("/much"));
  const std::string all = client.ReadToEnd();
  EXPECT_TRUE(all.ends_with("\r\n0\r\n\r\n"));
  EXPECT_GT(all.size(), size_t{kPieces} * 5000);
  EXPECT_EQ(server_->Stats().slow_readers, 0u);
}

TEST_F(BeastServerTest, AStopAnswersWhatCameAndEndsStreams) {
  Start();
  RawSocket idle = Connect();
  idle.Send(Get("/echo"));
  idle.ReadUntil("GET /echo ");
  RawSocket waiting = Connect();
  waiting.Send(Get("/later"));
  ReplyPtr reply = replies_.Take();
  RawSocket reader = Connect();
  reader.Send(Get("/stream"));
  const auto stream = streams_.Take();
  reader.ReadUntil("first,\r\n");
  std::thread stopper([&] { server_->Stop(absl::Seconds(60)); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_EQ(reader.ReadToEnd(), "0\r\n\r\n");
  reply->Send({.status = 200, .headers = {}, .body = "in time"});
  EXPECT_TRUE(waiting.ReadToEnd().ends_with("\r\n\r\nin time"));
  stopper.join();
  EXPECT_FALSE(stream->Write("x"));
}

TEST_F(BeastServerTest, AStopIsBoundedAndWhatComesLaterIsHeardByNobody) {
  Start();
  RawSocket waiting = Connect();
  waiting.Send(Get("/later"));
  const ReplyPtr late = replies_.Take();
  RawSocket reader = Connect();
  reader.Send(Get("/later"));
  const ReplyPtr late_stream = replies_.Take();
  server_->Stop(absl::Milliseconds(50));
  EXPECT_EQ(waiting.ReadToEnd(), "");
  late->Send({.status = 200, .headers = {}, .body = "nobody"});
  EXPECT_TRUE(late_stream->Stream({})->Write("nobody"));
  server_.reset();
}

// Whoever comes before it serves waits, and is answered then.
TEST(BeastServerListenTest, ClientsWaitUntilItServes) {
  std::vector<HttpRoute> routes = {
      {"GET", "/", [](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
         reply->Send({.status = 200, .headers = {}, .body = "served"});
       }}};
  auto server = HttpServer::Listen({}, std::move(routes)).value();
  RawSocket early = RawSocket::Connect(server->port());
  early.Send("GET / HTTP/1.0\r\n\r\n");
  server->Serve();
  EXPECT_TRUE(early.ReadToEnd().ends_with("served"));
  // One that never serves goes as well.
  EXPECT_OK(HttpServer::Listen({}, {}));
}

TEST(BeastServerListenTest, AnAddressThatCannotBeHadIsTold) {
  RawListener taken;
  HttpServerOptions options;
  options.port = taken.port();
  EXPECT_EQ(HttpServer::Listen(options, {}).status().code(), StatusCode::kUnavailable);
  options.address = "localhost";
  EXPECT_EQ(HttpServer::Listen(options, {}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace holdfast
