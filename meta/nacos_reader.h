// NacosReader: what stands in Nacos at a key, or under a prefix, never older than this process has
// seen it, and never a part for the whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/meta_store.h"
#include "journal/base/status.h"
#include "meta/backends/nacos_record.h"
#include "meta/nacos_client.h"
#include "meta/nacos_revisions.h"

namespace holdfast {

struct NacosStanding {
  std::string md5{kNacosAbsentMd5};   // as casMd5 of the next write
  std::optional<NacosRecord> record;  // none: there is no such config

  bool there() const { return record.has_value() && record->there; }
  uint64_t revision() const { return record.has_value() ? record->revision : 0; }
};
// Needs: there()
MetaEntry ToMetaEntry(std::string_view key, const NacosStanding& standing);

struct NacosSnapshot {
  std::string prefix;
  // Every write of this process up to here is in it. What others wrote is as of when it was read,
  // and may have a higher revision.
  uint64_t revision = 0;
  std::map<std::string, NacosStanding> standings;  // by key, tombstones too
};

// Threads: any.
// Errors: kUnavailable  kNone: not answered, or only with what is older than what was seen
//         kDataLoss     a config is not one of ours; others as those of backends/nacos.h
class NacosReader {
 public:
  // Borrows both, which outlive it.
  NacosReader(NacosClient& client, NacosRevisions& revisions)
      : client_(client), revisions_(revisions) {}

  StatusOr<NacosStanding> Read(std::string_view key, absl::Duration deadline);
  // `known`: what may be taken over instead of being read, where the MD5 is the same. May be null.
  StatusOr<NacosSnapshot> ReadAll(std::string_view prefix, const NacosSnapshot* known,
                                  absl::Duration deadline);

 private:
  using Standings = std::map<std::string, NacosStanding>;

  StatusOr<NacosStanding> ReadOnce(std::string_view key, absl::Duration deadline);
  // None: the pages do not make up a whole.
  StatusOr<std::optional<Standings>> ReadPages(std::string_view prefix, const NacosSnapshot* known,
                                               absl::Duration deadline);
  StatusOr<NacosStanding> StandingOf(const NacosConfig& config, const std::string& key,
                                     const NacosSnapshot* known, absl::Duration deadline);
  // False: something was seen at a newer revision.
  bool IsAsNew(const NacosSnapshot& snapshot);
  // A moment before the same is asked again. False: there is no time for it.
  bool Pause(absl::Duration deadline);

  NacosClient& client_;
  NacosRevisions& revisions_;
  Mutex mu_;  // Guards nothing: it is what a pause waits with.
  CondVar never_;
};

}  // namespace holdfast
