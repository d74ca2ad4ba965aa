// Histories on the embedded server.
#include <gtest/gtest.h>

#include "tests/kill/meta_server.h"
#include "tests/meta/server_history.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

// Proves: S1, S2, S3
TEST(MetaServerHistoryTest, ConcurrentClientsSeeOneOrder) {
  MetaServer meta;
  const HistoryServer server{.endpoint = [&] { return meta.endpoint(); },
                             .kill_and_start =
                                 [&] {
                                   meta.Kill();
                                   meta.Start();
                                 },
                             .signal = [&](int number) { meta.process().Signal(number); },
                             .history_survives = false};
  for (const uint64_t seed : Seeds(100)) {
    RunServerHistory(server, meta.transport(), seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast
