// What is fuzzed, and from where. A target takes any bytes; it must end, touch only what is its
// own, and keep the promises that it checks. The same targets run under libFuzzer (-Dfuzz=true)
// and, in a fixed order, in the normal suite (mini_fuzz_test.cc).
#pragma once

#include <string>
#include <vector>

#include "journal/base/bytes.h"

namespace holdfast {

// Groups and batches: as they are, and with every check made good, so that what lies behind the
// checks is reached.
void FuzzFrame(ByteView input);
// Records: decoded, written again, printed, unpacked.
void FuzzRecords(ByteView input);
// Segment header and Link: as they are, and with their checks made good.
void FuzzSegmentHeader(ByteView input);
// Header, footer and blocks of a checkpoint, and entries of an index: as they are, and with their
// checks made good.
void FuzzCheckpoint(ByteView input);
// zstd frames that a record claims to hold.
void FuzzCompression(ByteView input);
void FuzzJson(ByteView input);
// Heads of HTTP requests: one that passes has one reading.
void FuzzHttpHead(ByteView input);
// Requests and answers of etcd's JSON gateway, of both sides.
void FuzzEtcdWire(ByteView input);
// Answers of Nacos, and what stands in its configs.
void FuzzNacosWire(ByteView input);
// Fails on purpose for inputs that start with "HF!": whoever cannot find that finds nothing.
void FuzzCanary(ByteView input);

struct FuzzTarget {
  const char* name;
  void (*run)(ByteView input);
  std::vector<std::string> (*corpus)();  // small valid inputs to start from
};
const std::vector<FuzzTarget>& FuzzTargets();  // the canary is not among them

}  // namespace holdfast
