#include "tests/meta/server_history.h"

#include <signal.h>

#include <memory>
#include <utility>
#include <vector>

#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "meta/etcd_meta.h"
#include "tests/meta/meta_history.h"
#include "tests/support/faulty_transport.h"

namespace holdfast {
namespace {

constexpr size_t kClients = 3;

// A client with a network of its own, which loses one answer in eight.
class FarClient {
 public:
  FarClient(HttpTransport& transport, const HttpEndpoint& server, uint64_t seed)
      : network_(&transport), rng_(seed) {
    network_.after = [this](const HttpRequest&, FaultyTransport::Result result) {
      MutexLock lock(mu_);
      return rng_.OneIn(8) ? FaultyTransport::Result(FaultyTransport::Lost()) : std::move(result);
    };
    EtcdOptions options;
    options.endpoints = {server};
    meta_ = *EtcdMeta::Create(network_, RealClock(), options);
  }
  MetaStore& store() { return *meta_; }

 private:
  FaultyTransport network_;
  Mutex mu_;
  SeededRng rng_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<EtcdMeta> meta_;
};

}  // namespace

void RunServerHistory(const HistoryServer& server, HttpTransport& transport, uint64_t seed) {
  SeededRng rng(seed);
  std::vector<std::unique_ptr<FarClient>> clients;
  std::vector<MetaStore*> stores;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(
        std::make_unique<FarClient>(transport, server.endpoint(), seed * kClients + i));
    stores.push_back(&clients.back()->store());
  }
  EtcdOptions options;
  options.endpoints = {server.endpoint()};
  const std::unique_ptr<EtcdMeta> observer = *EtcdMeta::Create(transport, RealClock(), options);
  const size_t at = rng.Below(10);
  const bool kill = seed % 12 == 0, pause = !kill && seed % 3 == 0;
  RunMetaHistory(stores, *observer,
                 {.seed = seed,
                  .timeout = pause ? absl::Milliseconds(100) : absl::Seconds(2),
                  .disturb =
                      [&](size_t operation) {
                        if (operation == at && kill) server.kill_and_start();
                        if (operation == at && pause) server.signal(SIGSTOP);
                        if (operation == at + 1 && pause) server.signal(SIGCONT);
                      },
                  .watches = !kill || server.history_survives});
}

}  // namespace holdfast
