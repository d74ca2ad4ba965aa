// Histories on the packaged etcd.
#include <gtest/gtest.h>

#include <memory>

#include "tests/meta/server_history.h"
#include "tests/support/real_etcd.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

// Proves: S1, S2, S3
TEST(EtcdHistoryTest, ConcurrentClientsSeeOneOrder) {
  RealEtcd etcd;
  ASSERT_TRUE(etcd.ready()) << "needs the package etcd-server";
  const std::unique_ptr<HttpTransport> transport = NewHttpTransport({}).value();
  const HistoryServer server{.endpoint = [&] { return etcd.endpoint(); },
                             .kill_and_start =
                                 [&] {
                                   etcd.Kill();
                                   etcd.Start();
                                 },
                             .signal = [&](int number) { etcd.process().Signal(number); }};
  for (const uint64_t seed : Seeds(100)) {
    RunServerHistory(server, *transport, seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast
