// Histories on a real etcd that is killed, restarted and stopped, with answers that get lost.
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <vector>

#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "meta/etcd_meta.h"
#include "tests/meta/meta_history.h"
#include "tests/support/faulty_transport.h"
#include "tests/support/real_etcd.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

constexpr size_t kClients = 3;

// A client with a network of its own, which loses one answer in eight.
class FarClient {
 public:
  FarClient(HttpTransport& transport, const RealEtcd& etcd, uint64_t seed)
      : network_(&transport), rng_(seed) {
    network_.after = [this](const HttpRequest&, FaultyTransport::Result result) {
      MutexLock lock(mu_);
      return rng_.OneIn(8) ? FaultyTransport::Result(FaultyTransport::Lost()) : std::move(result);
    };
    EtcdOptions options;
    options.endpoints = {etcd.endpoint()};
    meta_ = *EtcdMeta::Create(network_, RealClock(), options);
  }
  MetaStore& store() { return *meta_; }

 private:
  FaultyTransport network_;
  Mutex mu_;
  SeededRng rng_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<EtcdMeta> meta_;
};

// Proves: S1, S2, S3
TEST(EtcdHistoryTest, ConcurrentClientsSeeOneOrder) {
  RealEtcd etcd;
  ASSERT_TRUE(etcd.ready()) << "needs the package etcd-server";
  const std::unique_ptr<HttpTransport> transport = NewHttpTransport({}).value();
  EtcdOptions options;
  options.endpoints = {etcd.endpoint()};
  const std::unique_ptr<EtcdMeta> observer = *EtcdMeta::Create(*transport, RealClock(), options);
  for (const uint64_t seed : Seeds(60)) {
    SeededRng rng(seed);
    std::vector<std::unique_ptr<FarClient>> clients;
    std::vector<MetaStore*> stores;
    for (size_t i = 0; i < kClients; ++i) {
      clients.push_back(std::make_unique<FarClient>(*transport, etcd, seed * kClients + i));
      stores.push_back(&clients.back()->store());
    }
    const size_t at = rng.Below(10);
    const bool kill = seed % 12 == 0, pause = !kill && seed % 3 == 0;
    const auto disturb = [&](size_t operation) {
      if (operation == at && kill) {
        etcd.Kill();
        etcd.Start();
      } else if (operation == at && pause) {
        etcd.process().Signal(SIGSTOP);
      } else if (operation == at + 1 && pause) {
        etcd.process().Signal(SIGCONT);
      }
    };
    RunMetaHistory(stores, *observer,
                   {.seed = seed,
                    .timeout = pause ? absl::Milliseconds(100) : absl::Seconds(2),
                    .disturb = disturb});
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast
