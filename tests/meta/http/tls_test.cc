// Both ends in one process, with nothing between them.
#include "meta/http/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <optional>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_ca.h"

namespace holdfast {
namespace {

class TlsTest : public testing::Test {
 protected:
  TlsClientOptions ClientOptions() {
    TlsClientOptions options;
    options.ca.path = ca_.path();
    return options;
  }
  static TlsServerOptions ServerOptions(const TestCa::Pair& pair) {
    TlsServerOptions options;
    options.cert.path = pair.cert;
    options.key.path = pair.key;
    return options;
  }
  TlsServerOptions ServerOptions() { return ServerOptions(pair_); }

  void Make(const TlsClientOptions& client, const TlsServerOptions& server,
            const std::string& host = "localhost") {
    server_.reset();
    client_.reset();
    client_context_ = TlsContext::ForClient(client).value();
    server_context_ = TlsContext::ForServer(server).value();
    client_.emplace(*client_context_, host);
    server_.emplace(*server_context_);
  }
  // What becomes of both ends' handshakes when each hears all that the other says.
  struct Ends {
    Status client, server;
  };
  Ends Shake() {
    Ends ends;
    bool client_done = false, server_done = false;
    for (int round = 0; round < 10; ++round) {
      if (ends.client.ok() && !client_done) ends.client = Go(*client_, client_done);
      Exchange();
      if (ends.server.ok() && !server_done) ends.server = Go(*server_, server_done);
      Exchange();
    }
    EXPECT_EQ(client_done, ends.client.ok());
    return ends;
  }
  void Exchange() {
    server_->Receive(client_->TakeOutput());
    client_->Receive(server_->TakeOutput());
  }
  static Status Go(TlsSession& session, bool& done) {
    const StatusOr<bool> step = session.Handshake();
    if (!step.ok()) return step.status();
    done = *step;
    return absl::OkStatus();
  }
  static StatusOr<std::string> Read(TlsSession& session) {
    std::array<char, 100> space;
    ASSIGN_OR_RETURN(const size_t bytes, session.Read(space));
    return std::string(space.data(), bytes);
  }
  // Why the client ends the handshake.
  std::string Refusal(const TlsClientOptions& client, const TlsServerOptions& server,
                      const std::string& host = "localhost") {
    Make(client, server, host);
    return std::string(Message(Shake().client));
  }

  TestCa ca_{"a test"};
  TestCa::Pair pair_ = ca_.Issue({});
  std::unique_ptr<TlsContext> client_context_, server_context_;
  std::optional<TlsSession> client_, server_;
};

TEST_F(TlsTest, CarriesBytesBothWaysAndItsEnd) {
  Make(ClientOptions(), ServerOptions());
  const Ends ends = Shake();
  ASSERT_OK(ends.client);
  ASSERT_OK(ends.server);
  ASSERT_OK(client_->Write("ping"));
  const std::string sent = client_->TakeOutput();
  EXPECT_EQ(sent.find("ping"), std::string::npos);
  // However it is cut.
  for (const char& byte : sent) {
    EXPECT_EQ(*Read(*server_), "");
    server_->Receive({&byte, 1});
    EXPECT_TRUE(server_->HasUnread());
  }
  EXPECT_EQ(*Read(*server_), "ping");
  EXPECT_FALSE(server_->HasUnread());
  ASSERT_OK(server_->Write(std::string(1'000'000, 'x')));
  server_->End();
  Exchange();
  size_t bytes = 0;
  StatusOr<std::string> more;
  while ((more = Read(*client_)).ok() && !more->empty()) bytes += more->size();
  EXPECT_EQ(bytes, 1'000'000u);
  EXPECT_EQ(more.status().code(), StatusCode::kOutOfRange);
}

TEST_F(TlsTest, AServerThatIsNotWhoItShouldBeIsRefusedAndTheReasonTold) {
  TestCa other("another");
  EXPECT_THAT(Refusal(ClientOptions(), ServerOptions(other.Issue({}))),
              testing::HasSubstr("is of a CA that is not known here"));
  EXPECT_THAT(Refusal(ClientOptions(), ServerOptions(), "example.org"),
              testing::HasSubstr("is not for example.org"));
  EXPECT_THAT(Refusal(ClientOptions(), ServerOptions(), "127.0.0.2"),
              testing::HasSubstr("is not for 127.0.0.2"));
  EXPECT_EQ(Refusal(ClientOptions(), ServerOptions(), "127.0.0.1"), "");
  EXPECT_THAT(
      Refusal(ClientOptions(), ServerOptions(ca_.Issue({.valid_from = -7200, .valid_to = -3600}))),
      testing::HasSubstr("has expired"));
  EXPECT_THAT(
      Refusal(ClientOptions(), ServerOptions(ca_.Issue({.valid_from = 3600, .valid_to = 7200}))),
      testing::HasSubstr("is not valid yet"));
  // The subject's name does not count.
  EXPECT_THAT(Refusal(ClientOptions(), ServerOptions(ca_.Issue({.names = ""})), "leaf"),
              testing::HasSubstr("is not for leaf"));
  // The CAs of the system do not know this one.
  EXPECT_THAT(Refusal({}, ServerOptions()), testing::HasSubstr("is of a CA that is not known"));
}

TEST_F(TlsTest, AClientWithoutItsCertificateIsRefusedAndToldSo) {
  TlsServerOptions server = ServerOptions();
  server.client_ca.path = ca_.path();
  TlsClientOptions client = ClientOptions();
  client.cert.path = pair_.cert;
  client.key.path = pair_.key;
  Make(client, server);
  Ends ends = Shake();
  EXPECT_OK(ends.client);
  EXPECT_OK(ends.server);

  Make(ClientOptions(), server);
  EXPECT_FALSE(Shake().server.ok());
  // To the client the handshake was over; it hears of it when it reads.
  Status heard = Read(*client_).status();
  EXPECT_THAT(Message(heard), testing::HasSubstr("refuses to go on without a certificate"));
  EXPECT_TRUE(client_->refused());

  TestCa other("another");
  const TestCa::Pair foreign = other.Issue({});
  client.cert.path = foreign.cert;
  client.key.path = foreign.key;
  Make(client, server);
  ends = Shake();
  EXPECT_THAT(Message(ends.server), testing::HasSubstr("of a CA that is not known here"));
  heard = Read(*client_).status();
  EXPECT_THAT(Message(heard), testing::HasSubstr("refuses this certificate"));
  EXPECT_TRUE(client_->refused());
}

TEST_F(TlsTest, WhoDoesNotSpeakTlsIsToldApart) {
  Make(ClientOptions(), ServerOptions());
  server_->Receive("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(Message(server_->Handshake().status()), testing::HasSubstr("does not speak TLS"));
  EXPECT_TRUE(server_->peer_speaks_http());
  ASSERT_OK(client_->Handshake());
  client_->Receive("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_THAT(Message(client_->Handshake().status()), testing::HasSubstr("does not speak TLS"));
}

TEST_F(TlsTest, OneChangedByteEndsTheSession) {
  Make(ClientOptions(), ServerOptions());
  ASSERT_OK(Shake().client);
  ASSERT_OK(client_->Write("ping"));
  std::string sent = client_->TakeOutput();
  sent.back() = static_cast<char>(sent.back() ^ 1);
  server_->Receive(sent);
  EXPECT_EQ(Read(*server_).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Read(*server_).status().code(), StatusCode::kUnavailable);
}

TEST_F(TlsTest, AFileThatCannotServeIsNamedWithItsSetting) {
  TempDir directory;
  const std::string nothing = directory.Sub("nothing"), text = directory.Sub("text");
  std::ofstream(text) << "no PEM\n";
  TestCa other("another");
  const TestCa::Pair foreign = other.Issue({});
  const auto of = [](const auto& context) { return std::string(Message(context.status())); };
  for (const std::string& bad : {nothing, text, directory.path()}) {
    TlsClientOptions client;
    client.ca = {.path = bad, .setting = "the_ca"};
    EXPECT_THAT(of(TlsContext::ForClient(client)), testing::StartsWith("the_ca: " + bad + ": "));
    TlsServerOptions server = ServerOptions();
    server.cert.path = bad;
    EXPECT_THAT(of(TlsContext::ForServer(server)), testing::StartsWith("cert: " + bad + ": "));
    server = ServerOptions();
    server.key.path = bad;
    EXPECT_THAT(of(TlsContext::ForServer(server)), testing::StartsWith("key: " + bad + ": "));
    server = ServerOptions();
    server.client_ca.path = bad;
    EXPECT_THAT(of(TlsContext::ForServer(server)), testing::StartsWith("client_ca: " + bad + ": "));
  }
  TlsClientOptions client;
  client.ca.path = nothing;
  EXPECT_THAT(of(TlsContext::ForClient(client)), testing::HasSubstr("No such file"));
  TlsServerOptions server = ServerOptions();
  server.key.path = foreign.key;
  EXPECT_EQ(of(TlsContext::ForServer(server)),
            "key: " + foreign.key + ": it is not the key of cert " + pair_.cert);
  server.key.path = "";
  EXPECT_EQ(of(TlsContext::ForServer(server)), "key: missing; it goes with cert");
  EXPECT_EQ(of(TlsContext::ForServer({})), "cert: missing");
}

}  // namespace
}  // namespace holdfast
