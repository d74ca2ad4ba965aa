// What comes over the network: heads of HTTP requests, both sides of etcd's JSON gateway, and the
// answers of Nacos.
#include <algorithm>
#include <string>

#include "journal/base/check.h"
#include "meta/backends/etcd.h"
#include "meta/backends/nacos.h"
#include "meta/backends/nacos_record.h"
#include "meta/gateway_answers.h"
#include "meta/gateway_requests.h"
#include "meta/http/request_head.h"
#include "tests/fuzz/targets.h"

namespace holdfast {
namespace {

size_t CountLines(const std::string& head, const std::string& name) {
  size_t count = 0;
  for (size_t at = 0; (at = head.find("\n" + name, at)) != std::string::npos; ++at) ++count;
  return count;
}

// What the client sends, the server must understand as just that.
void CheckRoundTrip(const MvccTxn& txn) {
  const std::string sent = EtcdTxn(txn).body;
  const StatusOr<Json> json = ReadGatewayRequest(sent);
  CHECK(json.ok());
  const StatusOr<MvccTxn> understood = ReadGatewayTxn(*json);
  CHECK(understood.ok());
  CHECK(EtcdTxn(*understood).body == sent);
}

void ReadRequests(const Json& json) {
  (void)ReadGatewayRange(json).ok();   // any answer will do
  (void)ReadGatewayPut(json).ok();     // any answer will do
  (void)ReadGatewayDelete(json).ok();  // any answer will do
  (void)ReadGatewayWatch(json).ok();   // any answer will do
  if (const StatusOr<MvccTxn> txn = ReadGatewayTxn(json); txn.ok()) CheckRoundTrip(*txn);
}

void ReadAnswers(const Json& json) {
  (void)ReadEtcdHeader(json).ok();     // any answer will do
  (void)ReadEtcdLease(json).ok();      // any answer will do
  (void)ReadEtcdKeptLease(json).ok();  // any answer will do
  (void)ReadEtcdToken(json).ok();      // any answer will do
  MvccTxn txn;
  txn.success = {MvccOp::Put("k", "v"), MvccOp::Delete(KeyRange::Only("d"))};
  txn.failure = {MvccOp::Read({.range = KeyRange::Only("k")})};
  (void)ReadEtcdTxn(json, txn).ok();  // any answer will do
  const StatusOr<MvccReadResult> read = ReadEtcdRange(json);
  if (!read.ok()) return;
  // What the client could read, the server can say again.
  const std::string said = GatewayRangeAnswer({.cluster_id = 1, .member_id = 2}, 3, {}, *read);
  const StatusOr<Json> again = EtcdAnswer({.status = 200, .headers = {}, .body = said});
  CHECK(again.ok());
  const StatusOr<MvccReadResult> same = ReadEtcdRange(*again);
  CHECK(same.ok());
  CHECK(std::ranges::equal(same->entries, read->entries,
                           [](const auto& a, const auto& b) { return *a == *b; }));
}

}  // namespace

void FuzzHttpHead(ByteView input) {
  const std::string_view bytes = AsText(input);
  const size_t size = RequestHeadBytes(bytes);
  CHECK(size <= bytes.size());
  (void)CheckPartialHead(bytes, 4096).has_value();  // any answer will do
  if (size == 0) return;
  std::string head(bytes.substr(0, size));
  if (CheckRequestHead(head, {.header_count_max = 20}).has_value()) return;
  // One that passes can be read in one way only.
  CHECK(head.find("\r\n\r\n") == head.size() - 4);
  std::ranges::transform(head, head.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  CHECK(std::ranges::count(head, '\r') == std::ranges::count(head, '\n'));
  CHECK(head.find("\n ") == std::string::npos);
  CHECK(head.find("\n\t") == std::string::npos);
  CHECK(CountLines(head, "content-length:") + CountLines(head, "transfer-encoding:") <= 1);
  CHECK(CountLines(head, "host:") <= 1);
}

void FuzzEtcdWire(ByteView input) {
  std::string_view rest = AsText(input);
  if (const StatusOr<Json> json = ReadGatewayRequest(rest); json.ok()) {
    ReadRequests(*json);
    ReadAnswers(*json);
  }
  for (const int status : {200, 400, 503}) {
    const StatusOr<Json> answer =
        EtcdAnswer({.status = status, .headers = {}, .body = std::string(rest)});
    CHECK(status == 200 || !answer.ok());
  }
  (void)ReadEtcdWatchFrame(rest).ok();  // any answer will do
  while (true) {
    const size_t before = rest.size();
    const StatusOr<std::optional<Json>> one = TakeGatewayObject(rest);
    if (!one.ok() || !one->has_value()) break;
    CHECK(rest.size() < before);
  }
}

void FuzzNacosWire(ByteView input) {
  const std::string text(AsText(input));
  // What is an entry is one in one way only, but for how its numbers are written.
  if (const StatusOr<NacosRecord> record = DecodeNacosRecord(text); record.ok()) {
    const StatusOr<NacosRecord> again = DecodeNacosRecord(EncodeNacosRecord(*record));
    CHECK(again.ok());
    CHECK(*again == *record);
  }
  if (const std::optional<std::string> key = KeyOfNacosDataId(text); key.has_value()) {
    CHECK(NacosDataId(*key) == text);
  }
  for (const NacosApi api : {NacosApi::kV1, NacosApi::kV3}) {
    for (const int status : {200, 404, 500}) {
      const HttpResponse response{.status = status, .headers = {}, .body = text};
      (void)ReadNacosConfig(api, response).ok();  // any answer will do
      (void)ReadNacosListened(response).ok();     // any answer will do
      (void)ReadNacosToken(response).ok();        // any answer will do
      // Only a server that says so has done it.
      CHECK(!ReadNacosPublished(api, response).ok() || status == 200);
      CHECK(!ReadNacosPage(api, response).ok() || status == 200);
    }
  }
}

}  // namespace holdfast
