#include "tests/fuzz/targets.h"

#include "journal/format/checkpoint_header.h"
#include "journal/format/compression.h"
#include "journal/format/segment_header.h"
#include "tests/support/group_builder.h"
#include "tests/support/random_records.h"

namespace holdfast {
namespace {

std::string Text(const std::vector<std::byte>& bytes) { return std::string(AsText(bytes)); }

std::vector<std::string> FrameCorpus() {
  const Life life{.salt = 11, .segment = 3, .stamp = 0x5354414d50};
  GroupBuilder builder(life, 3 * kBlockBytes, Lsn(1));
  builder.AddRecord(DeadLetterPurge{.id = "a"});
  std::string two;
  EncodeRecord(DeliveryReschedule{.id = "b", .epoch = 1, .attempt = 2, .due_ns = 3}, two);
  EncodeRecord(OffsetForget{.topic = "t", .client = "c"}, two);
  builder.Add(two, 2).AddRecord(DeadLetterPurge{.id = "d"});
  const std::string group = Text(builder.Build());
  return {group, group.substr(0, 256), std::string(kBlockBytes, '\0')};
}

std::vector<std::string> RecordsCorpus() {
  std::vector<std::string> corpus;
  RandomRecords records(1);
  for (size_t type = 0; type < RandomRecords::kTypes; ++type) {
    EncodeAnyRecord(records.OfType(type), corpus.emplace_back());
  }
  return corpus;
}

std::vector<std::string> SegmentHeaderCorpus() {
  const SegmentHeader header{.salt = 11,
                             .segment = SegmentId(3),
                             .life = 0x5354414d50,
                             .segment_bytes = kSegmentBytesMin,
                             .epoch = Epoch(1)};
  const Link link{.previous = SegmentId(2),
                  .previous_life = 9,
                  .previous_end = 4 * kBlockBytes,
                  .previous_last_lsn = Lsn(10),
                  .first = Lsn(11),
                  .through = Lsn(12),
                  .next = Lsn(13),
                  .epoch = Epoch(1),
                  .host_boot_id = "boot",
                  .oldest = SegmentId(1)};
  return {Text(EncodeSegmentHeader(header)), Text(EncodeLinkGroup(link, {}, header.life_of())),
          "0000000000000003.seg"};
}

std::vector<std::string> CheckpointCorpus() {
  const CheckpointKey key{.salt = 11, .from = Lsn(42)};
  std::string block;
  (void)AppendCheckpointBlock(0, 5, std::string(300, 'e'), key, block);  // only its bytes count
  (void)AppendCheckpointBlock(1, 5, "entries", key, block);              // only its bytes count
  return {Text(EncodeCheckpointHeader({.from = key.from, .epoch = Epoch(1)}, key)),
          Text(EncodeCheckpointFooter({.from = key.from,
                                       .through = Lsn(50),
                                       .blocks = 2,
                                       .blocks_end = kBlockBytes + 100,
                                       .sections = {{.number = 5, .entries = 3, .raw_bytes = 307}}},
                                      key)),
          block, "000000000000002a.ckp"};
}

std::vector<std::string> CompressionCorpus() {
  const std::string event(5'000, 'x');
  std::string frame;
  const StoredEvent stored = PackEvent(event, frame);
  const auto size = static_cast<uint32_t>(stored.raw_bytes);
  const std::string_view size_bytes(reinterpret_cast<const char*>(&size), sizeof size);
  return {std::string(size_bytes).append(stored.bytes), std::string("\3\0\0\0abc", 7)};
}

std::vector<std::string> JsonCorpus() {
  return {R"({"a":[1,-2,3.5e6,true,null],"b":{"c":"\u00e9\"\\"}})", "[[[[]]]]", "\"x\"", "1"};
}

std::vector<std::string> HttpHeadCorpus() {
  return {"GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
          "POST /v3/kv/put HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: "
          "100-continue\r\n\r\n",
          "POST /v3/watch HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX: y z\r\n\r\n",
          "GET / HTTP/1.0\r\n\r\nmore"};
}

std::vector<std::string> EtcdWireCorpus() {
  return {
      R"({"key":"YS8=","range_end":"YTA=","limit":"2","sort_order":"DESCEND","sort_target":3})",
      R"({"key":"YQ==","value":"dg==","lease":"7587","prev_kv":true})",
      R"({"compare":[{"key":"aw==","target":"MOD","result":"EQUAL","mod_revision":"14"}],)"
      R"("success":[{"request_put":{"key":"aw==","value":"dg=="}}],)"
      R"("failure":[{"request_range":{"key":"aw=="}},{"request_delete_range":{"key":"ZA=="}}]})",
      R"({"success":[{"request_txn":{"success":[{"request_range":{"key":"aw=="}}]}}]})",
      R"({"create_request":{"key":"dy8=","range_end":"dzA=","watch_id":7}}{"progress_request":{}})",
      R"({"header":{"cluster_id":"1","revision":"5"},"kvs":[{"key":"YQ==","create_revision":"2",)"
      R"("mod_revision":"5","version":"1","value":"dg=="}],"count":"1"})",
      R"({"result":{"header":{"revision":"5"},"watch_id":"7","events":[{"type":"DELETE",)"
      R"("kv":{"key":"aw==","mod_revision":"5"}}]}})",
      R"({"error":"etcdserver: key not found","message":"etcdserver: key not found","code":3})"};
}

std::vector<std::string> NacosWireCorpus() {
  return {"holdfast 1 put 7 3 2 4 00000000000000ff-12 .AEhNMQFydg",
          "holdfast 1 gone 9 0 0 5 00000000000000ff-13 .",
          "k:em:subs:or-252Fders",
          "k%3Aa%02holdfast%01k%3Ab%02holdfast%02space%01\n",
          R"({"id":"7","dataId":"k:a","group":"g","content":"c","md5":"4a","tenant":""})",
          R"({"totalCount":1,"pageItems":[{"id":"1","dataId":"k:a","content":"c","md5":null}]})",
          R"({"code":0,"message":"success","data":{"dataId":"k:a","md5":"4a","content":"c"}})",
          R"({"code":0,"data":{"totalCount":1,"pageItems":[{"dataId":"k:a","md5":"4a"}]}})",
          R"({"code":20005,"message":"resource conflict","data":"Cas publish fail"})",
          R"({"accessToken":"t","tokenTtl":18000,"globalAdmin":true})"};
}

}  // namespace

const std::vector<FuzzTarget>& FuzzTargets() {
  static const std::vector<FuzzTarget> targets{
      {"frame", FuzzFrame, FrameCorpus},
      {"records", FuzzRecords, RecordsCorpus},
      {"segment_header", FuzzSegmentHeader, SegmentHeaderCorpus},
      {"checkpoint", FuzzCheckpoint, CheckpointCorpus},
      {"compression", FuzzCompression, CompressionCorpus},
      {"json", FuzzJson, JsonCorpus},
      {"http_head", FuzzHttpHead, HttpHeadCorpus},
      {"etcd_wire", FuzzEtcdWire, EtcdWireCorpus},
      {"nacos_wire", FuzzNacosWire, NacosWireCorpus},
  };
  return targets;
}

}  // namespace holdfast
