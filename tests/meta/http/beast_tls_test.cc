// Client and server over TLS: against each other, and against peers that stall, cut off, or do not
// speak it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "meta/http/server.h"
#include "meta/http/transport.h"
#include "tests/support/raw_socket.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_ca.h"
#include "tests/support/tls_socket.h"

namespace holdfast {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kShort = absl::Milliseconds(100);
constexpr size_t kLarge = 3'000'000;

class BeastTlsTest : public testing::Test {
 protected:
  BeastTlsTest() {
    server_tls_.cert.path = pair_.cert;
    server_tls_.key.path = pair_.key;
    client_tls_.ca.path = ca_.path();
  }

  void Start(HttpServerOptions options = {}) {
    using ReplyPtr = std::shared_ptr<HttpReply>;
    std::vector<HttpRoute> routes = {
        {"POST", "/echo",
         [this](const HttpRequest& request, const ReplyPtr& reply) {
           ++runs_;
           reply->Send({.status = 200, .headers = {}, .body = request.body});
         }},
        {"GET", "/much",
         [](const HttpRequest&, const ReplyPtr& reply) {
           const auto stream = reply->Stream({.status = 200, .headers = {}, .body = "first,"});
           stream->OnDrained([stream, written = 0]() mutable {
             if (written++ == 100) return stream->End();
             EXPECT_TRUE(stream->Write(std::string(5000, 'x')));
           });
         }},
    };
    if (!options.tls.has_value()) options.tls = server_tls_;
    server_ = HttpServer::Listen(options, std::move(routes)).value();
    server_->Serve();
  }
  HttpEndpoint endpoint() const {
    return {.host = "127.0.0.1", .port = server_->port(), .tls = true};
  }
  std::unique_ptr<HttpTransport> NewClient() {
    HttpClientOptions options;
    options.tls = client_tls_;
    return NewHttpTransport(options).value();
  }
  static StatusOr<HttpResponse> Post(HttpTransport& client, const HttpEndpoint& endpoint,
                                     std::string body, absl::Duration timeout = kPatience) {
    return client.Send(
        endpoint, {.method = "POST", .target = "/echo", .headers = {}, .body = std::move(body)},
        timeout);
  }
  // Serves one connection with `script`, over TLS, while `client` does its part.
  void WithScript(const std::function<void(TlsSocket&)>& script,
                  const std::function<void(const HttpEndpoint&)>& client) {
    RawListener listener;
    std::thread peer([&] {
      const auto context = TlsContext::ForServer(server_tls_).value();
      TlsSession session(*context);
      RawSocket raw = listener.Accept();
      TlsSocket socket(raw, session);
      ASSERT_TRUE(socket.shaken());
      script(socket);
    });
    client({.host = "127.0.0.1", .port = listener.port(), .tls = true});
    peer.join();
  }
  static void ExpectNotSent(const Status& status, std::string_view why) {
    EXPECT_FAILS(status, kUnavailable, kNone);
    EXPECT_THAT(Message(status), testing::HasSubstr(why));
  }

  TestCa ca_{"a test"};
  TestCa::Pair pair_ = ca_.Issue({});
  TlsServerOptions server_tls_;
  TlsClientOptions client_tls_;
  std::atomic<int> runs_ = 0;  // of the echo
  std::unique_ptr<HttpServer> server_;
};

TEST_F(BeastTlsTest, RequestsAnswersAndStreamsPassWholeAndAConnectionIsUsedAgain) {
  Start();
  const auto client = NewClient();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{70'000}, kLarge}) {
    const StatusOr<HttpResponse> answer = Post(*client, endpoint(), std::string(bytes, 'x'));
    ASSERT_OK(answer);
    EXPECT_EQ(answer->body, std::string(bytes, 'x'));
  }
  EXPECT_EQ(server_->Stats().connections, 1u);
  StatusOr<HttpStreamStart> start = client->Open(
      endpoint(), {.method = "GET", .target = "/much", .headers = {}, .body = {}}, kPatience);
  ASSERT_OK(start);
  std::string all;
  StatusOr<std::string> more;
  while ((more = start->stream->Read(kPatience)).ok()) all += *more;
  EXPECT_EQ(more.status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(all, "first," + std::string(500'000, 'x'));
  // The name is as good as the address.
  HttpEndpoint named = endpoint();
  named.host = "localhost";
  EXPECT_EQ(Post(*client, named, "by name")->body, "by name");
}

TEST_F(BeastTlsTest, RequestsRunSideBySide) {
  Start();
  const auto client = NewClient();
  std::vector<std::thread> callers;
  for (int i = 0; i < 10; ++i) {
    callers.emplace_back([&, i] {
      const std::string body(static_cast<size_t>(i) * 10'000, static_cast<char>('a' + i));
      for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(Post(*client, endpoint(), body)->body, body);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(BeastTlsTest, AServerThatIsNotWhoItShouldBeHearsNoRequest) {
  Start();
  // It knows another CA.
  const TestCa foreign("a foreign one");
  client_tls_.ca.path = foreign.path();
  ExpectNotSent(Post(*NewClient(), endpoint(), "x").status(), "of a CA that is not known here");
  client_tls_.ca.path = ca_.path();
  const TestCa::Pair other = ca_.Issue({.names = "DNS:localhost,IP:127.0.0.2"});
  server_tls_.cert.path = other.cert;
  server_tls_.key.path = other.key;
  Start();
  ExpectNotSent(Post(*NewClient(), endpoint(), "x").status(),
                "the server's certificate is not for 127.0.0.1");
  const TestCa::Pair old = ca_.Issue({.valid_from = -7200, .valid_to = -3600});
  server_tls_.cert.path = old.cert;
  server_tls_.key.path = old.key;
  Start();
  ExpectNotSent(Post(*NewClient(), endpoint(), "x").status(), "has expired");
  EXPECT_EQ(runs_, 0);
}

TEST_F(BeastTlsTest, AClientThatIsNotWhoItShouldBeIsNotServedAndToldSo) {
  server_tls_.client_ca.path = ca_.path();
  Start();
  ExpectNotSent(Post(*NewClient(), endpoint(), "x").status(),
                "refuses to go on without a certificate");
  TestCa foreign("a foreign one");
  TestCa::Pair shown = foreign.Issue({});
  client_tls_.cert.path = shown.cert;
  client_tls_.key.path = shown.key;
  ExpectNotSent(Post(*NewClient(), endpoint(), "x").status(), "refuses this certificate");
  EXPECT_EQ(runs_, 0);
  shown = ca_.Issue({});
  client_tls_.cert.path = shown.cert;
  client_tls_.key.path = shown.key;
  EXPECT_EQ(Post(*NewClient(), endpoint(), "x")->body, "x");
}

TEST_F(BeastTlsTest, WhoDoesNotSpeakTlsIsToldSo) {
  Start();
  RawSocket plain = RawSocket::Connect(server_->port());
  plain.Send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string answer = plain.ReadToEnd();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nthis port expects TLS\r\n")) << answer;
  RawSocket noise = RawSocket::Connect(server_->port());
  noise.Send("\x16\x03\x01nonsense, and more of it");
  noise.ReadToEnd();
  EXPECT_TRUE(noise.at_end() || noise.was_reset());
  EXPECT_EQ(server_->Stats().refused, 2u);

  const auto plain_server = HttpServer::Listen({}, {}).value();
  plain_server->Serve();
  const auto client = NewClient();
  ExpectNotSent(
      Post(*client, {.host = "127.0.0.1", .port = plain_server->port(), .tls = true}, "x").status(),
      "the server does not speak TLS");
  EXPECT_FAILS(Post(*NewHttpTransport({}).value(), endpoint(), "x"), kInvalidArgument, kNone);
}

// Proves: G14
TEST_F(BeastTlsTest, AHandshakeThatStallsOrDribblesIsCutOffWhileOthersAreServed) {
  HttpServerOptions options;
  options.handshake_timeout = absl::Seconds(1);
  Start(options);
  const auto client = NewClient();
  const auto context = TlsContext::ForClient(client_tls_).value();
  TlsSession session(*context, "localhost");
  ASSERT_OK(session.Handshake());
  const std::string hello = session.TakeOutput();
  RawSocket silent = RawSocket::Connect(server_->port());
  RawSocket dribbling = RawSocket::Connect(server_->port());
  // A byte of it for each request of somebody else that is served meanwhile; the last never comes.
  for (size_t i = 0; server_->Stats().refused < 2; ++i) {
    if (i + 1 < hello.size()) dribbling.Send(hello.substr(i, 1));
    ASSERT_EQ(Post(*client, endpoint(), "x")->body, "x");
  }
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_EQ(dribbling.ReadToEnd(), "");
  EXPECT_EQ(Post(*client, endpoint(), "x")->body, "x");
  // A stop does not wait for one that has not come far.
  RawSocket another = RawSocket::Connect(server_->port());
  server_->Stop(absl::Seconds(60));
  EXPECT_EQ(another.ReadToEnd(), "");
}

TEST_F(BeastTlsTest, AServerThatStallsInTheHandshakeHasHeardNothing) {
  RawListener listener;
  const HttpEndpoint endpoint{.host = "127.0.0.1", .port = listener.port(), .tls = true};
  ExpectNotSent(Post(*NewClient(), endpoint, "x", kShort).status(), "no answer in time");
  std::thread closing([&] {
    listener.Accept();  // The first, which has given up.
    RawSocket second = listener.Accept();
    second.ReadSome();
  });
  ExpectNotSent(Post(*NewClient(), endpoint, "x").status(), "the peer has closed in the handshake");
  closing.join();
}

// Anybody can end a TCP connection; only the peer can say over TLS that it ends.
TEST_F(BeastTlsTest, ABodyThatIsCutOffIsNotOneThatEnds) {
  const auto client = NewClient();
  for (const bool ends : {true, false}) {
    WithScript(
        [&](TlsSocket& peer) {
          peer.ReadUntil("body");
          peer.Send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
          if (ends) peer.End();
        },
        [&](const HttpEndpoint& endpoint) {
          const StatusOr<HttpResponse> answer = Post(*client, endpoint, "body");
          if (ends) {
            EXPECT_EQ(answer->body, "until the end");
          } else {
            EXPECT_FAILS(answer, kUnavailable, kUnknownOutcome);
            EXPECT_THAT(Message(answer.status()), testing::HasSubstr("TLS: cut off"));
          }
        });
  }
}

// An answer that nobody asked for must not pass for that of the next request.
TEST_F(BeastTlsTest, AConnectionWithALeftoverAnswerIsNotUsedAgain) {
  const std::string one = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
  const auto client = NewClient();
  for (const bool one_record : {true, false}) {
    RawListener listener;
    std::thread peer([&] {
      const auto context = TlsContext::ForServer(server_tls_).value();
      for (const std::string answer : {"a", "b"}) {
        TlsSession session(*context);
        RawSocket raw = listener.Accept();
        TlsSocket socket(raw, session);
        socket.ReadUntil("body");
        if (one_record) {
          socket.Send(one + answer + one + "late");
        } else {
          std::string both = socket.Encrypted(one + answer);
          both += socket.Encrypted(one + "late");
          raw.Send(both);
        }
      }
    });
    const HttpEndpoint endpoint{.host = "127.0.0.1", .port = listener.port(), .tls = true};
    EXPECT_EQ(Post(*client, endpoint, "body")->body, "a");
    EXPECT_EQ(Post(*client, endpoint, "body")->body, "b");
    peer.join();
  }
}

TEST_F(BeastTlsTest, TheServerSaysOverTlsThatItEnds) {
  Start();
  const auto context = TlsContext::ForClient(client_tls_).value();
  for (const std::string request :
       {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
        "GET /much HTTP/1.0\r\n\r\n"}) {
    TlsSession session(*context, "localhost");
    RawSocket raw = RawSocket::Connect(server_->port());
    TlsSocket socket(raw, session);
    ASSERT_TRUE(socket.shaken());
    socket.Send(request);
    EXPECT_TRUE(socket.ReadToEnd().ends_with("x"));
    EXPECT_TRUE(socket.ended());
  }
}

TEST_F(BeastTlsTest, AServerIsNotMadeWithFilesThatCannotServe) {
  HttpServerOptions options;
  options.tls = TlsServerOptions{};
  EXPECT_FAILS(HttpServer::Listen(options, {}), kInvalidArgument, kNone);
  EXPECT_FAILS(HttpServer::CheckFiles(*options.tls), kInvalidArgument, kNone);
  EXPECT_OK(HttpServer::CheckFiles(server_tls_));
  HttpClientOptions client;
  client.tls = TlsClientOptions{.ca = {.path = "/nonexistent", .setting = "a setting"}};
  EXPECT_THAT(Message(NewHttpTransport(client).status()),
              testing::StartsWith("a setting: /nonexistent: it cannot be read"));
}

}  // namespace
}  // namespace holdfast
