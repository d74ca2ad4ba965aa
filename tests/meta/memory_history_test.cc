// Histories on the Meta in memory, with answers that get lost.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <map>

#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "meta/memory_meta.h"
#include "tests/meta/faulty_meta.h"
#include "tests/meta/meta_history.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

// Proves: S1, S3
TEST(MemoryHistoryTest, ConcurrentClientsSeeOneOrder) {
  for (const uint64_t seed : Seeds(200)) {
    MemoryMeta meta(RealClock(), seed);
    FaultyMeta faulty(meta);
    Mutex mu;
    SeededRng rng(seed);
    faulty.SetFaults([&](FaultyMeta::Call) {
      MutexLock lock(mu);
      return rng.OneIn(4) ? static_cast<FaultyMeta::Fault>(rng.Below(4)) : FaultyMeta::Fault::kNone;
    });
    RunMetaHistory({&faulty, &faulty, &faulty, &meta}, meta, {.seed = seed});
    if (testing::Test::HasFailure()) return;
  }
}

// A Meta that answers reads from an older state, or makes a write twice, does not pass.
class BrokenMeta final : public MetaStore {
 public:
  enum class How { kStaleReads, kDoubleWrites };
  BrokenMeta(MetaStore& meta, How how) : meta_(meta), how_(how) {}

  absl::StatusOr<MetaEntry> Get(std::string_view key, const MetaCall& call) override {
    auto now = meta_.Get(key, call);
    MutexLock lock(mu_);
    auto& before = older_[std::string(key)];
    std::swap(now, before);
    return how_ == How::kStaleReads && MetaResultOf(now.status()) != MetaResult::kUnavailable
               ? now
               : before;
  }
  absl::StatusOr<MetaList> List(std::string_view prefix, const MetaPage& page) override {
    return meta_.List(prefix, page);
  }
  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                               const MetaWrite& write) override {
    const auto first = meta_.Put(key, value, write);
    if (how_ == How::kDoubleWrites) return meta_.Put(key, value, write);
    return first;
  }
  absl::StatusOr<uint64_t> PutIfAbsent(std::string_view key, std::string_view value,
                                       const MetaWrite& write) override {
    return meta_.PutIfAbsent(key, value, write);
  }
  absl::StatusOr<uint64_t> CompareAndSet(std::string_view key, uint64_t revision,
                                         std::string_view value, const MetaWrite& write) override {
    return meta_.CompareAndSet(key, revision, value, write);
  }
  absl::StatusOr<uint64_t> Delete(std::string_view key, const MetaCall& call) override {
    return meta_.Delete(key, call);
  }
  absl::StatusOr<uint64_t> DeleteAt(std::string_view key, uint64_t revision,
                                    const MetaCall& call) override {
    return meta_.DeleteAt(key, revision, call);
  }
  absl::StatusOr<uint64_t> Transact(const MetaTransaction& transaction,
                                    const MetaWrite& write) override {
    return meta_.Transact(transaction, write);
  }
  absl::StatusOr<std::unique_ptr<MetaWatch>> Watch(std::string_view prefix, uint64_t from_revision,
                                                   std::function<void(const MetaNotice&)> callback,
                                                   const MetaCall& call) override {
    return meta_.Watch(prefix, from_revision, std::move(callback), call);
  }
  absl::StatusOr<MetaLease> GrantLease(absl::Duration ttl, const MetaCall& call) override {
    return meta_.GrantLease(ttl, call);
  }
  absl::StatusOr<MetaLease> KeepAlive(uint64_t lease, const MetaCall& call) override {
    return meta_.KeepAlive(lease, call);
  }
  absl::Status RevokeLease(uint64_t lease, const MetaCall& call) override {
    return meta_.RevokeLease(lease, call);
  }

 private:
  MetaStore& meta_;
  const How how_;
  Mutex mu_;
  std::map<std::string, absl::StatusOr<MetaEntry>> older_ ABSL_GUARDED_BY(mu_);
};

TEST(MemoryHistoryTest, AMetaThatLiesIsFound) {
  for (const auto how : {BrokenMeta::How::kStaleReads, BrokenMeta::How::kDoubleWrites}) {
    MemoryMeta meta(RealClock(), 1);
    BrokenMeta broken(meta, how);
    testing::TestPartResultArray failures;
    {
      testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        RunMetaHistory({&broken, &broken, &broken}, meta, {.seed = seed});
      }
    }
    EXPECT_GT(failures.size(), 0);
  }
}

}  // namespace
}  // namespace holdfast
