// In process; as a process of its own, with kills, it is in tests/kill/.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>
#include <string>

#include "meta/http/transport.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_ca.h"
#include "tests/tools/tool_run.h"

namespace holdfast {
namespace {

class MetaServerCommandTest : public testing::Test {
 protected:
  // Serves on a free port; `client` talks to it, once, and then it is told to stop.
  ToolRun Run(const std::vector<std::string>& more,
              const std::function<void(const HttpEndpoint&)>& client) {
    std::vector<std::string> arguments = {"meta-server", "--data", directory_.Sub("meta"),
                                          "--listen", "127.0.0.1:0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream out, err;
    Console console{.out = out, .err = err, .clock = RealClock()};
    console.stop_requested = [&] {
      std::smatch match;
      const std::string text = out.str();
      EXPECT_TRUE(std::regex_match(text, match,
                                   std::regex("listening on (127.0.0.1:[0-9]+)( over TLS)?\n")))
          << text;
      HttpEndpoint endpoint = ParseEndpoint(match[1].str()).value();
      endpoint.tls = match[2].matched;
      client(endpoint);
      return true;
    };
    ToolRun run;
    run.exit_code = RunHoldfast(arguments, console);
    run.out = out.str();
    run.err = err.str();
    return run;
  }
  std::string Post(const HttpEndpoint& endpoint, const std::string& path, const std::string& body) {
    const auto answer = transport_->Send(
        endpoint, {.method = "POST", .target = "/v3/" + path, .headers = {}, .body = body},
        absl::Seconds(20));
    EXPECT_OK(answer);
    return answer.ok() ? answer->body : "";
  }

  TempDir directory_;
  std::unique_ptr<HttpTransport> transport_ = NewHttpTransport({}).value();
};

TEST_F(MetaServerCommandTest, ServesUntilItIsToldToStopAndKeepsWhatItWasGiven) {
  const ToolRun first = Run({}, [&](const HttpEndpoint& endpoint) {
    Post(endpoint, "kv/put", R"({"key":"aw==","value":"dg=="})");
  });
  EXPECT_EQ(first.exit_code, kExitOk) << first.err;
  EXPECT_TRUE(first.out.ends_with("\nstopped\n")) << first.out;
  EXPECT_EQ(first.err, "");
  Run({}, [&](const HttpEndpoint& endpoint) {
    const std::string answer = Post(endpoint, "kv/range", R"({"key":"aw=="})");
    EXPECT_NE(answer.find(R"("value":"dg==")"), std::string::npos) << answer;
  });
}

TEST_F(MetaServerCommandTest, ItsIdentityIsThatOfItsName) {
  std::vector<std::string> ids;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {}, {"--name", "other"}}) {
    Run(more, [&](const HttpEndpoint& endpoint) {
      const std::string answer = Post(endpoint, "cluster/member/list", "{}");
      std::smatch match;
      EXPECT_TRUE(std::regex_search(answer, match, std::regex("\"cluster_id\":\"([0-9]+)\"")));
      ids.push_back(match[1].str());
    });
  }
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_NE(ids[0], ids[2]);
}

TEST_F(MetaServerCommandTest, ServesOverTlsThoseWhomItsCaKnows) {
  TestCa ca("a test");
  const TestCa::Pair server = ca.Issue({}), client = ca.Issue({});
  HttpClientOptions options;
  options.tls.emplace();
  options.tls->ca.path = ca.path();
  options.tls->cert.path = client.cert;
  options.tls->key.path = client.key;
  transport_ = NewHttpTransport(options).value();
  const ToolRun run =
      Run({"--cert", server.cert, "--key", server.key, "--client-ca", ca.path()},
          [&](const HttpEndpoint& endpoint) {
            EXPECT_TRUE(endpoint.tls);
            EXPECT_NE(Post(endpoint, "cluster/member/list", "{}").find(EndpointUrl(endpoint)),
                      std::string::npos);
            options.tls->cert.path = options.tls->key.path = "";
            const auto stranger = NewHttpTransport(options).value();
            EXPECT_FAILS(stranger->Send(endpoint, {.target = "/health"}, absl::Seconds(20)),
                         kUnavailable, kNone);
          });
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
}

TEST_F(MetaServerCommandTest, OneDirectoryHasOneServer) {
  Run({}, [&](const HttpEndpoint&) {
    const ToolRun second = RunTool({"meta-server", "--data", directory_.Sub("meta"), "--listen",
                                    "127.0.0.1:0", "--lock-wait", "0"});
    EXPECT_EQ(second.exit_code, kExitUsageOrIo);
    EXPECT_EQ(second.out, "");
    EXPECT_NE(second.err.find("holdfast meta-server: "), std::string::npos) << second.err;
  });
}

}  // namespace
}  // namespace holdfast
