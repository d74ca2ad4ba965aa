// Three processes share the partitions of a source over a real Meta. One is killed, or cut off from
// it, or they come and go in good order. Every event reaches the client, nothing of an owner that
// was replaced does, and no cursor is ahead of what the client got.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "holdfast/cluster.h"
#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "tests/kill/meta_server.h"
#include "tests/support/child_process.h"
#include "tests/support/real_etcd.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

constexpr uint64_t kPartitions = 4;
constexpr int kSilenceMaxMs = 20'000;
constexpr char kClient[] = "billing";

std::vector<SourceKey> Partitions() {
  std::vector<SourceKey> partitions;
  for (uint64_t number = 0; number < kPartitions; ++number) {
    partitions.push_back({"orders", 1, number});
  }
  return partitions;
}

// What a member tells, in the order in which it happened among all members: a line in one pipe.
struct Line {
  std::string member, what;  // taken, left, push, acked, finished
  uint64_t partition = 0, offset = 0, token = 0;
};

// One member: a source of numbered events for each partition, which goes on up to `limit`; a client
// that acknowledges, now and then only when it is asked again.
class Member final : public Channel, public SourceAck, public ClusterHost {
 public:
  Member(std::string name, int diary, const std::atomic<uint64_t>& limit)
      : name_(std::move(name)), diary_(diary), limit_(limit) {}

  // Until `stop` is closed.
  void Run(const std::string& directory, const std::string& endpoint, int stop) {
    auto engine = Engine::Open({.directory = directory,
                                .io = BackendUnderTest(),
                                .segment_bytes = uint64_t{256} << 10,
                                .shared = {.cluster = true,
                                           .backend = SharedBackend::kRemoteMeta,
                                           .meta_endpoints = {endpoint}}});
    CHECK(engine.ok());
    auto cluster = Cluster::Open(**engine, {.instance = name_,
                                            .partitions = Partitions(),
                                            .lease_ttl = absl::Seconds(3),
                                            .mirror_interval = absl::Milliseconds(100),
                                            .balance_interval = absl::Milliseconds(100)});
    CHECK(cluster.ok());
    cluster_ = cluster->get();
    SeededRng rng(7);
    DispatcherOptions options;
    options.attempts_max = 10'000;
    options.ack_timeout = absl::Milliseconds(300);
    options.backoff_min = options.recover_spread = absl::Milliseconds(20);
    options.tick_interval = absl::Milliseconds(20);
    auto dispatcher = Dispatcher::Make(
        **engine, rng, options,
        {.source_ack = this, .ledger = &cluster_->ledger(), .guard = &cluster_->guard()});
    CHECK(dispatcher.ok() && (*dispatcher)->Recover().ok());
    dispatcher_ = dispatcher->get();
    const std::shared_ptr<Channel> channel(std::shared_ptr<void>(), this);  // owned by the caller
    dispatcher_->ChannelOpened(kClient, channel);
    dispatcher_->Start();
    cluster_->Start(*dispatcher_, *this);
    pollfd end{.fd = stop, .events = POLLIN, .revents = 0};
    while (poll(&end, 1, /*ms=*/5) == 0) HandIn();
    CHECK(cluster_->Leave().ok());
    dispatcher_->ChannelClosed(kClient, this);
    dispatcher->reset();
  }

  void Push(const Delivery& delivery) override {
    const uint64_t offset = *delivery.offset, token = TokenOf(delivery.partition);
    Tell("push", delivery.partition, offset, token);
    if (offset % 7 == 3 && delivery.attempt == 1) return;
    dispatcher_->Ack({.id = delivery.id, .client = kClient, .epoch = delivery.epoch},
                     [this, partition = delivery.partition, offset, token](const Status& status) {
                       if (status.ok()) Tell("acked", partition, offset, token);
                     });
  }
  void Finished(const SourceKey& source, std::optional<uint64_t> offset, uint64_t) override {
    Tell("finished", source.partition, *offset, TokenOf(source.partition));
  }
  void Taken(const OwnedPartition& taken) override {
    const uint64_t number = taken.partition.partition, cursor = taken.cursor.value_or(0);
    Tell("taken", number, cursor, taken.token);
    MutexLock lock(mu_);
    tokens_[number] = taken.token;
    next_[number] = cursor;
  }
  void Left(const SourceKey& partition) override {
    Tell("left", partition.partition, 0, TokenOf(partition.partition));
    MutexLock lock(mu_);
    next_.erase(partition.partition);
  }

 private:
  // One more event of each partition that is served.
  void HandIn() {
    std::map<uint64_t, uint64_t> next;
    {
      MutexLock lock(mu_);
      next = next_;
    }
    for (const auto& [number, offset] : next) {
      if (offset >= limit_.load() || dispatcher_->Pending(kClient) > 3 * kPartitions) continue;
      const auto handed = dispatcher_->Deliver(
          {.source = {"orders", 1, number}, .offset = offset, .event = std::to_string(offset)},
          {{.client = kClient}});
      MutexLock lock(mu_);
      const auto still = next_.find(number);
      if (handed.ok() && still != next_.end() && still->second == offset) ++still->second;
    }
  }
  // Under which this member acts, or acted last.
  uint64_t TokenOf(uint64_t number) {
    for (const OwnedPartition& owned : cluster_->Owned()) {
      if (owned.partition.partition == number) return owned.token;
    }
    MutexLock lock(mu_);
    return tokens_[number];
  }
  void Tell(const std::string& what, uint64_t partition, uint64_t offset, uint64_t token) {
    const std::string line = fmt::format("{} {} {} {} {}\n", name_, what, partition, offset, token);
    CHECK(write(diary_, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  }

  const std::string name_;
  const int diary_;
  const std::atomic<uint64_t>& limit_;
  Cluster* cluster_ = nullptr;
  Dispatcher* dispatcher_ = nullptr;
  Mutex mu_;
  std::map<uint64_t, uint64_t> next_ ABSL_GUARDED_BY(mu_);  // of what is served, by partition
  std::map<uint64_t, uint64_t> tokens_ ABSL_GUARDED_BY(mu_);
};

class ClusterKillTest : public testing::TestWithParam<const char*> {
 protected:
  ClusterKillTest() {
    CHECK(pipe(diary_) == 0);
    void* const shared = mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    limit_ = new (shared) std::atomic<uint64_t>(std::numeric_limits<uint64_t>::max());
    if (std::string_view(GetParam()) == "etcd") {
      etcd_ = std::make_unique<RealEtcd>();
      meta_ = etcd_->endpoint();
    } else {
      server_ = std::make_unique<MetaServer>();
      meta_ = server_->endpoint();
    }
    proxy_ = std::make_unique<TcpProxy>(meta_.port);
  }
  ~ClusterKillTest() override {
    members_.clear();
    for (const int end : diary_) close(end);
    munmap(limit_, sizeof *limit_);
  }

  // On the directory that it had before. `cuttable`: the proxy is between it and the Meta.
  void Begin(const std::string& name, bool cuttable = false) {
    HttpEndpoint endpoint = meta_;
    if (cuttable) endpoint.port = proxy_->port();
    int stop[2];
    CHECK(pipe(stop) == 0);
    std::vector<int> others{stop[1], diary_[0]};
    for (const auto& [other, running] : members_) others.push_back(running.stop);
    members_[name] = {.process = std::make_unique<ChildProcess>([&](int) {
                        for (const int end : others) close(end);
                        Member(name, diary_[1], *limit_)
                            .Run(directory_.Sub(name), "http://" + EndpointText(endpoint), stop[0]);
                      }),
                      .stop = stop[1]};
    close(stop[0]);
  }
  // In good order.
  void End(const std::string& name) {
    close(members_.at(name).stop);
    const int status = members_.at(name).process->Wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << name << ": " << status;
    members_.erase(name);
  }
  void Kill(const std::string& name) {
    members_.at(name).process->Kill();
    members_.at(name).process->Wait();
    close(members_.at(name).stop);
    members_.erase(name);
  }

  // Reads on until `done` says so of a line. Whatever was told before is known then.
  void ReadUntil(const std::function<bool(const Line&)>& done) {
    for (;;) {
      const size_t newline = unread_.find('\n');
      if (newline == std::string::npos) {
        pollfd told{.fd = diary_[0], .events = POLLIN, .revents = 0};
        ASSERT_EQ(poll(&told, 1, kSilenceMaxMs), 1) << "nobody says anything any more" << Missing();
        char bytes[4096];
        const ssize_t got = read(diary_[0], bytes, sizeof bytes);
        ASSERT_GT(got, 0);
        unread_.append(bytes, static_cast<size_t>(got));
        continue;
      }
      Line line;
      std::istringstream(unread_.substr(0, newline)) >> line.member >> line.what >>
          line.partition >> line.offset >> line.token;
      unread_.erase(0, newline + 1);
      lines_.push_back(line);
      Judge(line);
      if (done(line)) return;
    }
  }
  void ReadPushes(size_t count) {
    ReadUntil([&](const Line& line) { return line.what == "push" && --count == 0; });
  }
  // Every partition is with one of `members`, and each of them has some.
  void ReadUntilShared(const std::set<std::string>& members) {
    ReadUntil([&](const Line&) {
      std::set<std::string> owners;
      for (const auto& [partition, owner] : owner_) owners.insert(owner);
      return owner_.size() == kPartitions && owners == members;
    });
  }
  // The sources come to their end, and every event of theirs is acknowledged.
  void ReadUntilAllAcked() {
    for (const auto& [partition, offset] : pushed_) events_ = std::max(events_, offset + 20);
    limit_->store(events_);
    ReadUntil([&](const Line&) {
      for (uint64_t number = 0; number < kPartitions; ++number) {
        uint64_t& all_below = all_acked_below_[number];
        while (acked_.contains({number, all_below})) ++all_below;
        if (all_below < events_) return false;
      }
      return true;
    });
  }
  // The members that are left go, and the Meta has what the clients have.
  void Finish() {
    while (!members_.empty()) End(members_.begin()->first);
    const auto transport = NewHttpTransport({}).value();
    EtcdOptions options;
    options.endpoints = {meta_};
    const auto store = EtcdMeta::Create(*transport, RealClock(), options).value();
    for (uint64_t number = 0; number < kPartitions; ++number) {
      const auto offset =
          store->Get(fmt::format("/em/offsets/orders/1/{}/{}", number, kClient), {});
      ASSERT_OK(offset);
      uint64_t version = 0, next = 0;
      std::istringstream(offset->value) >> version >> next;
      EXPECT_GE(next, events_);
    }
  }

 private:
  struct Running {
    std::unique_ptr<ChildProcess> process;
    int stop = -1;
  };

  // What was told of the first event of each partition that is not acknowledged.
  std::string Missing() {
    std::string told;
    for (const auto& [number, all_below] : all_acked_below_) {
      if (all_below >= events_) continue;
      for (const auto& [member, what, partition, offset, token] : lines_) {
        const bool moves = what == "taken" || what == "left";
        if (partition != number || (offset != all_below && !moves)) continue;
        told += fmt::format("\n{} {} {}/{} token {}", member, what, partition, offset, token);
      }
    }
    return told;
  }

  void Judge(const Line& line) {
    const auto& [member, what, partition, offset, token] = line;
    uint64_t& newest = tokens_[partition];
    const std::string told = fmt::format("{} {} {}/{}", member, what, partition, offset);
    if (what == "taken") {
      EXPECT_GT(token, newest) << told;
      newest = token;
      owner_[partition] = member;
      for (uint64_t below = 0; below < offset; ++below) {
        ASSERT_TRUE(pushed_.contains({partition, below})) << told << ": the cursor is ahead";
      }
      return;
    }
    if (what == "left") return;
    EXPECT_GE(token, newest) << told << ": it was replaced";
    if (what == "push") pushed_.insert({partition, offset});
    if (what == "acked") acked_.insert({partition, offset});
    if (what != "finished") return;
    EXPECT_TRUE(pushed_.contains({partition, offset})) << told;
  }

  TempDir directory_;
  std::unique_ptr<RealEtcd> etcd_;
  std::unique_ptr<MetaServer> server_;
  HttpEndpoint meta_;
  int diary_[2];
  std::string unread_;
  std::map<std::string, Running> members_;
  std::atomic<uint64_t>* limit_ = nullptr;  // shared with the members
  uint64_t events_ = 0;                     // of each partition, once that is known
  std::map<uint64_t, uint64_t> all_acked_below_;
  std::vector<Line> lines_;

 protected:
  std::unique_ptr<TcpProxy> proxy_;
  // What the lines say so far.
  std::set<std::pair<uint64_t, uint64_t>> pushed_, acked_;
  std::map<uint64_t, uint64_t> tokens_;
  std::map<uint64_t, std::string> owner_;  // who took it last
};

INSTANTIATE_TEST_SUITE_P(Metas, ClusterKillTest, testing::Values("etcd", "server"));

// Proves: S5, S9, A7
TEST_P(ClusterKillTest, WhatAKilledOwnerDidNotFinishOthersDo) {
  for (const char* name : {"a", "b", "c"}) Begin(name);
  ReadUntilShared({"a", "b", "c"});
  ReadPushes(100);
  Kill("a");
  ReadUntilShared({"b", "c"});
  Begin("a");  // it finds that others have what it had
  ReadUntilShared({"a", "b", "c"});
  ReadUntilAllAcked();
  Finish();
}

// It stops by its own clock before anybody takes what it had, and is as good as any later.
// Proves: S2, S5, S9
TEST_P(ClusterKillTest, AnOwnerThatIsCutOffStopsBeforeOthersBegin) {
  Begin("a", /*cuttable=*/true);
  for (const char* name : {"b", "c"}) Begin(name);
  ReadUntilShared({"a", "b", "c"});
  ReadPushes(100);
  proxy_->Set(TcpProxy::Mode::kSilent);
  ReadUntilShared({"b", "c"});
  ReadUntilAllAcked();
  proxy_->Set(TcpProxy::Mode::kPass);
  ReadUntilShared({"a", "b", "c"});
  Finish();
}

// Proves: S5, S9
TEST_P(ClusterKillTest, InGoodOrderPartitionsMoveWithoutALease) {
  Begin("a");
  ReadPushes(50);
  Begin("b");
  ReadUntilShared({"a", "b"});
  ReadPushes(50);
  End("a");
  ReadUntilShared({"b"});
  Begin("c");
  ReadUntilShared({"b", "c"});
  ReadUntilAllAcked();
  Finish();
}

}  // namespace
}  // namespace holdfast
