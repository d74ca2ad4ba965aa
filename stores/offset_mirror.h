// OffsetMirror: how far clients and sources have come, in the Meta too, so that whoever owns a
// partition next does not begin at its start.
//
//   /em/offsets/<topic>/<incarnation>/<partition>/<client>   the next offset not finished
//   /em/cursors/<topic>/<incarnation>/<partition>            what the source may forget
//   /em/seen/<topic>/<incarnation>/<partition>               the newest event that was handed in
//
// Each interval, what has risen and is confirmed here goes to the Meta, under the fence of its
// partition: an owner that was replaced writes nothing any more. What a client acknowledged since
// the last mirror write that arrived comes to it again if the partition moves, and nothing else
// that stands below its offset; a partition that stays loses nothing, because the journal has it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/dispatcher.h"
#include "holdfast/engine.h"
#include "holdfast/log_sink.h"
#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "meta/membership.h"

namespace holdfast {

struct OffsetMirrorOptions {
  absl::Duration interval = absl::Seconds(1);  // 10 ms .. 1 h
  LogSink* log = nullptr;                      // borrowed
  bool thread = true;                          // false: the host calls Flush()
};

// What a new owner begins with.
struct MirroredPartition {
  std::optional<uint64_t> cursor;  // from here on the source hands in again; none: from its start
  std::optional<uint64_t> seen;    // the newest event that an owner before is known to have had
  uint64_t clients = 0;            // with an offset
};

struct OffsetMirrorStats {
  uint64_t writes = 0, failed = 0;  // transactions of the Meta
  // Of the partition that is furthest behind: since when everything confirmed here is there.
  absl::Duration behind;
};

// Threads: any. The destructor needs every other call to have returned.
// As a guard it is its membership, and refuses acknowledgements while it is behind.
class OffsetMirror final : public OwnershipGuard {
 public:
  // All are borrowed and outlive it.
  // Errors: kInvalidArgument  an option is out of range
  static StatusOr<std::unique_ptr<OffsetMirror>> Open(Engine& engine, MetaStore& meta,
                                                      Membership& membership, Clock& clock,
                                                      const OffsetMirrorOptions& options);
  // Writes once more what has risen.
  ~OffsetMirror() override;
  OffsetMirror(const OffsetMirror&) = delete;
  OffsetMirror& operator=(const OffsetMirror&) = delete;

  // Takes what the Meta knows of a partition into this engine, durably: each position is the higher
  // of both. Comes after Membership::Acquire and before the first event of the partition.
  // Errors: kPermissionDenied  kStaleOwner: it is not this instance's
  //         kUnavailable       the Meta, or the journal failed
  StatusOr<MirroredPartition> Restore(const SourceKey& partition)
      ABSL_LOCKS_EXCLUDED(mu_, flush_mu_);

  bool Owns(const SourceKey& partition) override { return membership_.Owns(partition); }
  bool MayAcknowledge(const SourceKey& partition) override {
    return Owns(partition) && UpToDate(partition);
  }

  // Mirrors now. Returns the first error; what failed is tried again by the next one.
  Status Flush() ABSL_LOCKS_EXCLUDED(mu_, flush_mu_) { return FlushThose(std::nullopt); }
  // The same of one partition.
  Status Flush(const SourceKey& partition) ABSL_LOCKS_EXCLUDED(mu_, flush_mu_) {
    return FlushThose(partition);
  }

  // Whether acknowledgements may be given for the partition: it was restored, and the mirror was
  // not behind for longer than two intervals.
  bool UpToDate(const SourceKey& partition) ABSL_LOCKS_EXCLUDED(mu_);
  OffsetMirrorStats Stats() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Of one partition, as the Meta has it for sure.
  struct Mirrored {
    std::map<std::string, uint64_t> offsets;  // by client
    std::optional<uint64_t> cursor, seen;
    absl::Duration at;   // everything that was confirmed here before this is there
    uint64_t token = 0;  // of the ownership under which it was read: it counts under no other
  };
  // What is higher here, and confirmed.
  struct Risen {
    std::map<std::string, uint64_t> offsets;
    std::optional<uint64_t> cursor, seen;
  };

  OffsetMirror(Engine& engine, MetaStore& meta, Membership& membership, Clock& clock,
               const OffsetMirrorOptions& options)
      : engine_(engine), meta_(meta), membership_(membership), clock_(clock), options_(options) {}

  Status FlushThose(const std::optional<SourceKey>& only) ABSL_LOCKS_EXCLUDED(mu_, flush_mu_);
  // The value of such a key of the partition; none: there is no such key.
  StatusOr<std::optional<uint64_t>> ReadNumber(std::string_view kind, const SourceKey& partition);
  std::map<SourceKey, Risen> ReadRisen(const std::optional<SourceKey>& only)
      ABSL_LOCKS_EXCLUDED(mu_);
  Status Write(const SourceKey& partition, const Risen& risen, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);

  Engine& engine_;  // Borrowed, as all of these.
  MetaStore& meta_;
  Membership& membership_;
  Clock& clock_;
  const OffsetMirrorOptions options_;

  // What a flush learns of an ownership that is over must say nothing of the next one.
  Mutex flush_mu_;  // Taken first: one flush or restore at a time. Held across calls of the Meta.
  Mutex mu_;        // Never held across one.
  CondVar wake_;
  std::map<SourceKey, Mirrored> mirrored_ ABSL_GUARDED_BY(mu_);  // of what was restored
  OffsetMirrorStats stats_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace holdfast
