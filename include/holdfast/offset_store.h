// OffsetStore: how far each client has finished each partition of each topic.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "holdfast/commit.h"

namespace holdfast {

// Names are arbitrary bytes, shorter than 64 KiB; no two different keys ever collide.
struct OffsetKey {
  std::string topic;
  std::string client;
  uint64_t partition = 0;
  auto operator<=>(const OffsetKey&) const = default;
};

// `next` is the next offset not finished, 0 .. 2^63 - 2. `incarnation` rises when the source's
// numbering starts again; positions are ordered by incarnation first.
struct OffsetPosition {
  OffsetPosition(uint64_t next_offset = 0,
                 uint64_t incarnation_number = 0)  // NOLINT: 4711 is a position.
      : incarnation(incarnation_number), next(next_offset) {}
  uint64_t incarnation;
  uint64_t next;
  auto operator<=>(const OffsetPosition&) const = default;
};

struct StoredOffset {
  OffsetKey key;
  OffsetPosition position;
  uint64_t lsn = 0;      // of the record that made it so
  bool durable = false;  // the level in force has reached lsn
};

// One numbering of one partition of a source.
struct SourceKey {
  std::string topic;
  uint64_t incarnation = 0;
  uint64_t partition = 0;
  auto operator<=>(const SourceKey&) const = default;
};

// What is recorded of a source: every offset up to and including `seen` was decided for every
// target; the source may forget everything below `cursor`. Both only rise.
struct SourceProgress {
  bool has_seen = false;
  uint64_t seen = 0;
  bool has_cursor = false;
  uint64_t cursor = 0;
  uint64_t lsn = 0;      // of the newest record that it consists of
  bool durable = false;  // the level in force has reached lsn
};

// Threads: any. Mutations that must be atomic with other stores go through Engine::Transact.
class OffsetStore {
 public:
  virtual ~OffsetStore() = default;

  // Errors: kNotFound     no offset was ever written for this key (never answered as 0)
  //         kUnavailable  kPoisoned: the journal failed before the newest change of this key was
  //                       confirmed
  virtual absl::StatusOr<StoredOffset> Read(const OffsetKey& key) = 0;

  // Raises the key's position. A lower or equal position succeeds and changes nothing:
  // Commit::changed() tells.
  // Errors: kInvalidArgument  a name of 64 KiB or more, an offset above 2^63 - 2
  virtual Commit Write(const OffsetKey& key, OffsetPosition position) = 0;

  // Where the client began in this incarnation: the first offset that was ever meant for it.
  // Transaction::WriteStart writes it.
  // Errors: kNotFound  none was written for this key; kUnavailable as Read
  virtual absl::StatusOr<OffsetPosition> ReadStart(const OffsetKey& key) = 0;

  // Forgets position and start of the key: a client that is gone. Unknown keys change nothing.
  virtual Commit Forget(const OffsetKey& key) = 0;

  // All keys of one topic, or of all topics, sorted by key.
  virtual std::vector<StoredOffset> ReadTopic(std::string_view topic) = 0;
  virtual std::vector<StoredOffset> ReadAll() = 0;
  // Every topic with at least one offset, sorted.
  virtual std::vector<std::string> Topics() = 0;

  // Errors: kNotFound  nothing is recorded of this source; kUnavailable as Read
  virtual absl::StatusOr<SourceProgress> ReadSource(const SourceKey& key) = 0;

  // Blocks until everything written so far is confirmed.
  virtual absl::Status Flush() = 0;
};

}  // namespace holdfast
