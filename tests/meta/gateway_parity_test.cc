// The embedded Meta server beside the packaged etcd: the same requests, in the same order, must get
// the same answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "journal/base/json.h"
#include "meta/gateway_server.h"
#include "meta/memory_meta.h"
#include "tests/support/foreign_client.h"
#include "tests/support/real_etcd.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using namespace std::string_literals;

// What may differ: who answers, the words of whoever reads the JSON, and how much time is left.
bool MayDiffer(const std::string& name, const Json& value, bool time_is_left) {
  if (name == "cluster_id" || name == "member_id" || name == "raft_term") return true;
  if (name == "TTL" && time_is_left) return true;
  return (name == "message" || name == "error") && value.string() != nullptr &&
         !value.string()->starts_with("etcdserver:");
}

// Where an array `is_set`, its order means nothing.
std::string Canonical(const Json& json, bool time_is_left, bool is_set = false) {
  std::string text;
  if (const auto* object = json.object(); object != nullptr) {
    std::vector<std::string> members;
    for (const auto& [name, value] : *object) {
      if (MayDiffer(name, value, time_is_left)) continue;
      const bool is_set = name == "keys" || name == "leases";
      members.push_back(name + ":" + Canonical(value, time_is_left, is_set));
    }
    std::ranges::sort(members);
    for (const std::string& member : members) text += member + " ";
    return "{" + text + "}";
  }
  if (const auto* array = json.array(); array != nullptr) {
    std::vector<std::string> elements;
    for (const Json& element : *array) elements.push_back(Canonical(element, time_is_left));
    if (is_set) std::ranges::sort(elements);
    for (const std::string& element : elements) text += element + " ";
    return "[" + text + "]";
  }
  if (json.string() != nullptr) return "'" + *json.string() + "'";
  if (json.boolean() != nullptr) return *json.boolean() ? "true" : "false";
  if (json.integer().has_value()) return std::to_string(*json.integer());
  return "null";
}

std::string Canonical(const HttpResponse& response, bool time_is_left) {
  std::string text = std::to_string(response.status);
  std::string_view rest = response.body;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const StatusOr<Json> json = Json::Parse(line);
    text += " " + (json.ok() ? Canonical(*json, time_is_left) : std::string(line));
  }
  return text;
}

std::string B64(std::string_view text) { return Base64(text); }

class GatewayParityTest : public testing::Test {
 protected:
  GatewayParityTest() : transport_(NewHttpTransport({}).value()) {
    EXPECT_TRUE(etcd_.ready()) << "needs the package etcd-server";
    gateway_ = *GatewayServer::Start(meta_, {.identity = {.cluster_id = 1, .member_id = 2},
                                             .watch_notify_interval = absl::Milliseconds(100)});
  }
  HttpEndpoint ours() const { return {.host = "127.0.0.1", .port = gateway_->port()}; }

  HttpResponse Send(const HttpEndpoint& endpoint, const std::string& path,
                    const std::string& body) {
    auto response = transport_->Send(
        endpoint, {.method = "POST", .target = "/v3/" + path, .headers = {}, .body = body},
        absl::Seconds(20));
    EXPECT_OK(response) << path << " " << body;
    return response.ok() ? *response : HttpResponse{.status = 0};
  }
  void ExpectSame(const std::string& path, const std::string& body) {
    const bool time_is_left = path.ends_with("timetolive");
    EXPECT_EQ(Canonical(Send(ours(), path, body), time_is_left),
              Canonical(Send(etcd_.endpoint(), path, body), time_is_left))
        << path << " " << body.substr(0, 200);
    ++compared_;
  }
  void ExpectSameAll(const std::string& path, const std::vector<std::string>& bodies) {
    for (const std::string& body : bodies) ExpectSame(path, body);
  }
  // The lines of a watch until `lines` have come, events of neighbouring frames put together.
  std::string Watched(const HttpEndpoint& endpoint, const std::string& body, size_t results) {
    auto start = transport_->Open(
        endpoint, {.method = "POST", .target = "/v3/watch", .headers = {}, .body = body},
        absl::Seconds(20));
    EXPECT_OK(start);
    if (!start.ok()) return "";
    std::string text, unread;
    for (size_t seen = 0; seen < results;) {
      const StatusOr<std::string> more = start->stream->Read(absl::Seconds(20));
      if (!more.ok()) return text + " " + std::string(Message(more.status()));
      unread += *more;
      for (size_t end; (end = unread.find('\n')) != std::string::npos; unread.erase(0, end + 1)) {
        const StatusOr<Json> json = Json::Parse(unread.substr(0, end));
        EXPECT_OK(json) << unread.substr(0, end);
        const Json* const result = json.ok() ? json->Find("result") : nullptr;
        if (result == nullptr) return text + unread;
        const Json* const events = result->Find("events");
        if (events == nullptr) {
          text += Canonical(*json, false) + "\n";
          ++seen;
          continue;
        }
        for (const Json& event : *events->array()) {
          text += Canonical(event, false) + "\n";
          ++seen;
        }
      }
    }
    return text;
  }
  void ExpectSameWatch(const std::string& body, size_t results) {
    EXPECT_EQ(Watched(ours(), body, results), Watched(etcd_.endpoint(), body, results)) << body;
    ++compared_;
  }

  RealEtcd etcd_{{"--experimental-watch-progress-notify-interval", "100ms"}};
  MemoryMeta meta_{RealClock(), 1};
  std::unique_ptr<GatewayServer> gateway_;
  std::unique_ptr<HttpTransport> transport_;
  int compared_ = 0;
};

TEST_F(GatewayParityTest, Puts) {
  ExpectSameAll("kv/put", {R"({"key":"YS8x","value":"djE="})",
                           R"({"key":"YS8x","value":"djI=","prev_kv":true})",
                           R"({"key":"YS8x","value":"djM=","prevKv":true})",
                           R"({"key":"YS9lbXB0eQ=="})",
                           R"({"key":"","value":"dg=="})",
                           R"({"key":"bm9wZQ==","ignore_value":true})",
                           R"({"key":"bm9wZQ==","ignore_lease":true})",
                           R"({"key":"YS8x","ignore_value":true,"value":"eA=="})",
                           R"({"key":"YS8x","ignore_value":true})",
                           R"({"key":"YS8x","value":"dg==","bogus":1})",
                           R"({"key":"YS8x","value":"dg==","lease":"12345"})",
                           R"({"key":"YS8x","value":"dg==","lease":12345})",
                           R"({"key":"***","value":"dg=="})",
                           R"({"key":"YQ","value":"dg=="})",
                           R"({"key":"__-_","value":"dg=="})",
                           "nope",
                           R"({"key":"YQ==")",
                           "",
                           R"({"key":"YQ==","value":"dg=="} xx)",
                           "[]",
                           R"({"key":1})",
                           R"({"key":"YQ==","value":null})",
                           R"({"key":"YQ==","lease":"x"})",
                           R"({"key":"YQ==","lease":"-5"})"});
}

TEST_F(GatewayParityTest, Ranges) {
  for (const char* key : {"a", "a/1", "a/2", "a/3", "a/4", "b"}) {
    ExpectSame("kv/put", fmt::format(R"({{"key":"{}","value":"{}"}})", B64(key),
                                     B64(std::string(key).substr(0, 1))));
  }
  ExpectSame("kv/put", R"({"key":"YS8x","value":"eno="})");
  ExpectSameAll("kv/range",
                {R"({"key":"YS8x"})",
                 R"({"key":"enp6"})",
                 R"({"key":"YS8=","range_end":"YTA="})",
                 R"({"key":"YS8=","range_end":"YTA=","limit":"2"})",
                 R"({"key":"YS8=","range_end":"YTA=","limit":2,"keys_only":true})",
                 R"({"key":"YS8=","range_end":"YTA=","count_only":true})",
                 R"({"key":"YS8=","range_end":"YTA=","count_only":true,"limit":"1"})",
                 R"({"key":"AA==","range_end":"AA==","keys_only":true,"limit":2})",
                 R"({"key":"YS8=","range_end":"YTA=","sort_order":"DESCEND",)"
                 R"("sort_target":"MOD","limit":2,"keys_only":true})",
                 R"({"key":"YS8=","range_end":"YTA=","sort_order":2,"sort_target":3,)"
                 R"("limit":1,"keys_only":true})",
                 R"({"key":"YS8=","range_end":"YTA=","sortOrder":"ASCEND","sortTarget":"VALUE"})",
                 R"({"key":"YS8=","range_end":"YTA=","sort_order":"DESCEND"})",
                 R"({"key":"YS8=","range_end":"YTA=","sort_target":"VERSION"})",
                 R"({"key":"YS8=","range_end":"YTA=","min_mod_revision":"4"})",
                 R"({"key":"YS8=","range_end":"YTA=","max_create_revision":"4","limit":"1"})",
                 R"({"key":"YS8=","sort_order":"SIDEWAYS"})",
                 R"({"key":"YS8x","revision":"3"})",
                 R"({"key":"YS8x","revision":"2"})",
                 R"({"key":"YS8x","revision":"99999"})",
                 R"({"key":"YS8x","revision":"-5"})",
                 R"({"key":"YS8x","serializable":true})",
                 "{}",
                 R"({"key":"Yg==","range_end":"YQ=="})"});
  ExpectSameAll("kv/deleterange", {R"({"key":"YS80","prev_kv":true})", R"({"key":"YS80"})", "{}",
                                   R"({"key":"YS8=","range_end":"YTA=","prev_kv":true})"});
  ExpectSame("kv/range", R"({"key":"YS8=","range_end":"YTA="})");
  ExpectSame("kv/nope", "{}");
}

TEST_F(GatewayParityTest, Transactions) {
  const std::string leader = R"("key":"bS9sZWFkZXI=")";
  const std::string create_if_absent =
      "{\"compare\":[{" + leader +
      R"(,"target":"CREATE","result":"EQUAL","create_revision":"0"}],)" +
      "\"success\":[{\"request_put\":{" + leader + R"(,"value":"bjE="}}],)" +
      "\"failure\":[{\"request_range\":{" + leader + "}}]}";
  ExpectSameAll("kv/txn", {create_if_absent, create_if_absent});
  const auto compare = [&](const std::string& members) {
    ExpectSame("kv/txn", "{\"compare\":[{" + leader + "," + members +
                             "}],\"success\":[{\"request_range\":{" + leader +
                             R"(,"keys_only":true}}],"failure":[]})");
  };
  for (const char* members :
       {R"("target":"MOD","result":"EQUAL","mod_revision":"2")",
        R"("target":"MOD","mod_revision":3)",
        R"("target":"MOD","result":"GREATER","mod_revision":"1")",
        R"("target":"MOD","result":"LESS","mod_revision":"1")", R"("version":"1")",
        R"("target":"VERSION","result":"NOT_EQUAL","version":"1")", R"("target":"MOD")",
        R"("target":"VALUE","result":"EQUAL","value":"bjE=")",
        R"("target":"VALUE","result":"GREATER","value":"YQ==")",
        R"("target":"LEASE","result":"EQUAL","lease":"0")", R"("target":2,"result":1)",
        R"("target":"SIZE")"}) {
    compare(members);
  }
  ExpectSameAll(
      "kv/txn",
      {R"({"compare":[{"key":"bS8=","range_end":"bTA=","target":"MOD",)"
       R"("result":"GREATER","mod_revision":"0"}]})",
       R"({"compare":[{"key":"bS9ub25l","target":"MOD","result":"NOT_EQUAL","mod_revision":"7"}]})",
       R"({"compare":[{"key":"bS9ub25l","target":"VALUE","result":"EQUAL","value":""}]})",
       R"({"success":[{"request_put":{"key":"bS9h","value":"MQ==",)"
       R"("prev_kv":true}},{"request_put":{"key":"bS9i","value":"MQ=="}},)"
       R"({"request_delete_range":{"key":"bS9j"}},)"
       R"({"request_range":{"key":"bS9h"}}]})",
       R"({"success":[{"requestPut":{"key":"bS9h","value":"Mg==",)"
       R"("prevKv":true}},{"requestDeleteRange":{"key":"bS9i",)"
       R"("prevKv":true}}]})",
       R"({"success":[{"request_put":{"key":"bS9h","value":"MQ=="}},)"
       R"({"request_put":{"key":"bS9h","value":"Mg=="}}]})",
       R"({"success":[{"request_put":{"key":"bS9h","value":"MQ=="}},)"
       R"({"request_delete_range":{"key":"bS9h"}}]})",
       R"({"success":[{"request_txn":{"compare":[],)"
       R"("success":[{"request_range":{"key":"bS9sZWFkZXI=",)"
       R"("keys_only":true}}]}}]})",
       R"({"success":[{"request_range":{"key":"bS8=","range_end":"bTA=",)"
       R"("limit":"1","sort_order":"DESCEND"}}]})",
       "{}", R"({"compare":[{"target":"MOD","mod_revision":"1"}]})",
       R"({"success":[{"request_put":{"value":"MQ=="}}]})",
       R"({"success":[{"request_range":{"key":"bS9h","revision":"999"}}]})",
       R"({"success":[{"request_put":{"key":"bS9h","lease":"77"}}]})"});
  for (const int count : {128, 129}) {
    std::string ops;
    for (int i = 0; i < count; ++i) {
      ops += (ops.empty() ? "" : ",") +
             fmt::format(R"({{"request_put":{{"key":"{}"}}}})", B64(std::to_string(i)));
    }
    ExpectSame("kv/txn", "{\"success\":[" + ops + "]}");
  }
}

TEST_F(GatewayParityTest, Sizes) {
  for (const size_t bytes : {1'500'000, 1'600'000}) {
    ExpectSame("kv/put",
               fmt::format(R"({{"key":"YQ==","value":"{}"}})", B64(std::string(bytes, 'x'))));
  }
}

TEST_F(GatewayParityTest, Leases) {
  ExpectSameAll("lease/grant", {R"({"TTL":500,"ID":"7587"})", R"({"TTL":5,"ID":"7587"})",
                                R"({"TTL":"9000000001"})", R"({"TTL":"x"})"});
  ExpectSame("kv/put", R"({"key":"bC8x","value":"MQ==","lease":"7587"})");
  ExpectSame("kv/put", R"({"key":"bC8y","value":"MQ==","lease":7587})");
  ExpectSame("kv/range", R"({"key":"bC8x"})");
  for (const std::string parent : {"", "kv/"}) {
    ExpectSameAll(parent + "lease/timetolive",
                  {R"({"ID":"7587","keys":true})", R"({"ID":"7587"})", R"({"ID":"999"})"});
    ExpectSame(parent + "lease/leases", "{}");
  }
  ExpectSameAll("lease/keepalive", {R"({"ID":"7587"})", R"({"ID":"999"})",
                                    R"({"ID":"7587"}{"ID":"999"}{"ID":"7587"})", "", "zzz"});
  ExpectSameAll("lease/revoke", {R"({"ID":"7587"})", R"({"ID":"7587"})"});
  ExpectSame("kv/range", R"({"key":"bC8x"})");
  ExpectSame("kv/lease/revoke", R"({"ID":"7587"})");
  ExpectSame("kv/put", R"({"key":"bC8x","value":"MQ==","lease":"7587"})");
}

TEST_F(GatewayParityTest, Compaction) {
  for (int i = 0; i < 20; ++i) ExpectSame("kv/put", R"({"key":"Yw==","value":"MQ=="})");
  ExpectSameAll("kv/compaction", {R"({"revision":"10","physical":true})", R"({"revision":"10"})",
                                  R"({"revision":"100000"})", R"({"revision":"15"})"});
  ExpectSameAll("kv/range",
                {R"({"key":"Yw==","revision":"5"})", R"({"key":"Yw==","revision":"14"})",
                 R"({"key":"Yw==","revision":"15"})", R"({"key":"Yw=="})"});
  ExpectSameWatch(R"({"create_request":{"key":"Yw==","start_revision":"3","watch_id":"4"}})", 2);
}

TEST_F(GatewayParityTest, Watches) {
  ExpectSame("kv/put", R"({"key":"dy8x","value":"QQ=="})");
  ExpectSame("kv/put", R"({"key":"dy8x","value":"Qg=="})");
  ExpectSame("kv/put", R"({"key":"eA=="})");
  ExpectSame("kv/deleterange", R"({"key":"dy8x"})");
  ExpectSame("kv/txn", R"({"success":[{"request_put":{"key":"dy8y","value":"MQ=="}},)"
                       R"({"request_put":{"key":"dy8z","value":"MQ=="}},)"
                       R"({"request_delete_range":{"key":"eA=="}}]})");
  const std::string range = R"("key":"dy8=","range_end":"dzA=")";
  ExpectSameWatch("{\"create_request\":{" + range + R"(,"start_revision":"1"}})", 6);
  ExpectSameWatch("{\"create_request\":{" + range + R"(,"start_revision":"3","prev_kv":true}})", 5);
  ExpectSameWatch("{\"create_request\":{" + range + R"(,"startRevision":2,"filters":["NOPUT"]}})",
                  2);
  ExpectSameWatch(
      "{\"create_request\":{" + range + R"(,"start_revision":2,"filters":["NODELETE"]}})", 5);
  ExpectSameWatch(R"({"create_request":{"key":"AA==","range_end":"AA==","start_revision":"1"}})",
                  8);
  ExpectSameWatch(R"({"create_request":{"key":"eA==",)"
                  R"("watch_id":"7"}}{"create_request":{"key":"eA==","watch_id":"9"}})",
                  2);
  ExpectSameWatch(R"({"create_request":{"key":"eA==",)"
                  R"("watch_id":"7"}}{"create_request":{"key":"eA==","watch_id":"7"}})",
                  2);
  ExpectSameWatch(R"({"create_request":{"key":"eA=="}}{"create_request":{"key":"eQ=="}})", 2);
  ExpectSameWatch(R"({"create_request":{"key":"eg==","range_end":"YQ=="}})", 1);
  ExpectSameWatch(
      R"({"create_request":{"key":"eA==","watch_id":"7"}}{"cancel_request":{"watch_id":"7"}})", 2);
  ExpectSameWatch(R"({"create_request":{"key":"eA=="}}{"progress_request":{}})", 2);
  ExpectSameWatch(R"({"create_request":{"key":"eA==","watch_id":"7","progress_notify":true}})"
                  R"({"create_request":{"key":"eA==","watch_id":"8"}})",
                  5);
  ExpectSameWatch(R"({"create_request":{"key":"eA=="}}garbage)", 1);
  ExpectSame("watch", "zzz");
}

TEST_F(GatewayParityTest, AForeignClientSeesNoDifference) {
  const std::string session = RunPythonClient("HOLDFAST_ETCD3GW_SESSION", ours());
  EXPECT_EQ(session, RunPythonClient("HOLDFAST_ETCD3GW_SESSION", etcd_.endpoint()));
  EXPECT_TRUE(session.ends_with("done\n")) << session;
}

}  // namespace
}  // namespace holdfast
