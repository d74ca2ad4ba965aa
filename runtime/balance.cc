#include "runtime/balance.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "journal/base/bytes.h"
#include "journal/base/check.h"
#include "journal/base/checksum.h"

namespace holdfast {
namespace {

// How well an instance and a partition go together, by their names alone: whoever has to choose
// among several chooses the same one, and a partition comes back to where it was before.
uint64_t Fit(const std::string& instance, const SourceKey& partition) {
  const uint64_t topic = Checksum(AsBytes(partition.topic), partition.partition);
  return Checksum(AsBytes(instance), topic ^ partition.incarnation);
}

struct Share {
  std::string instance;
  std::vector<SourceKey> has;
  size_t room = 0;  // it may have so many in all
};

// Those that have most get what cannot be divided: then nothing moves for its sake.
void SetRooms(std::vector<Share>& shares, size_t partitions) {
  std::vector<Share*> by_count;
  for (Share& share : shares) by_count.push_back(&share);
  std::sort(by_count.begin(), by_count.end(), [](const Share* a, const Share* b) {
    return std::pair(b->has.size(), std::string_view(a->instance)) <
           std::pair(a->has.size(), std::string_view(b->instance));
  });
  size_t left_over = partitions % shares.size();
  for (Share* share : by_count) {
    share->room = partitions / shares.size() + (left_over > 0 ? 1 : 0);
    left_over -= left_over > 0 ? 1 : 0;
  }
}

}  // namespace

Holdings Balance(const std::vector<std::string>& instances, const Holdings& now) {
  Holdings plan;
  if (instances.empty()) return plan;
  std::vector<Share> shares;
  for (const std::string& instance : instances) {
    shares.push_back({.instance = instance, .has = {}, .room = 0});
  }
  std::sort(shares.begin(), shares.end(),
            [](const Share& a, const Share& b) { return a.instance < b.instance; });
  std::vector<SourceKey> free;
  for (const auto& [partition, holder] : now) {
    const auto share = std::lower_bound(
        shares.begin(), shares.end(), holder,
        [](const Share& each, const std::string& name) { return each.instance < name; });
    const bool lives = share != shares.end() && share->instance == holder;
    (lives ? share->has : free).push_back(partition);
  }
  SetRooms(shares, now.size());
  for (Share& share : shares) {
    const auto fits_better = [&share](const SourceKey& a, const SourceKey& b) {
      return std::pair(Fit(share.instance, a), a) > std::pair(Fit(share.instance, b), b);
    };
    std::sort(share.has.begin(), share.has.end(), fits_better);
    while (share.has.size() > share.room) {
      free.push_back(std::move(share.has.back()));
      share.has.pop_back();
    }
    for (const SourceKey& kept : share.has) plan[kept] = share.instance;
  }
  std::sort(free.begin(), free.end());
  for (const SourceKey& partition : free) {
    Share* best = nullptr;
    for (Share& share : shares) {
      if (share.has.size() >= share.room) continue;
      if (best == nullptr || Fit(share.instance, partition) > Fit(best->instance, partition)) {
        best = &share;
      }
    }
    CHECK(best != nullptr);  // Rooms and partitions are as many.
    best->has.push_back(partition);
    plan[partition] = best->instance;
  }
  return plan;
}

}  // namespace holdfast
