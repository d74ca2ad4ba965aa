#include "bench/workload.h"

#include <atomic>
#include <barrier>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "bench/stopwatch.h"
#include "journal/base/mutex.h"

namespace holdfast::bench {
namespace {

constexpr size_t kIdBytes = 40;
constexpr uint64_t kSampleEvery = 16;  // of unwaited cycles: reading the clock costs a tenth of one

void PutHex(uint64_t value, char* at, size_t digits) {
  for (size_t index = digits; index-- > 0; value >>= 4) at[index] = "0123456789abcdef"[value & 15];
}

// As long as the ids of the engine, and as quick to make: <boot epoch>-<salt>-<sequence>.
void WriteId(int thread, uint64_t sequence, std::string& id) {
  id.resize(kIdBytes, '-');
  PutHex(1, id.data(), 8);
  PutHex(0x9e3779b97f4a7c15 + static_cast<uint64_t>(thread), id.data() + 9, 16);
  PutHex(sequence, id.data() + 26, 14);
}

// The cycles of one thread, in order.
class CycleMaker {
 public:
  explicit CycleMaker(int thread) : thread_(thread) {
    key_ = {
        .topic = "orders.created", .client = "billing-" + std::to_string(thread), .partition = 3};
    put_.topic = key_.topic;
    put_.client = key_.client;
    put_.partition = key_.partition;
    put_.epoch = 1;
    put_.due = absl::Seconds(30);
    put_.created = absl::FromUnixSeconds(1'790'000'000);
    put_.event.assign(kEventBytes, 'e');
  }

  Commit RunOn(Subject& subject) {
    WriteId(thread_, sequence_, put_.id);
    WriteId(thread_, sequence_ - kPendingOfThread, remove_id_);
    put_.offset = sequence_;
    PutHex(sequence_, put_.event.data(), 16);
    const uint64_t next = sequence_ < kPendingOfThread ? 0 : sequence_ - kPendingOfThread + 1;
    ++sequence_;
    return subject.Run({.put = put_, .remove_id = remove_id_, .offset = key_, .next = next});
  }

 private:
  const int thread_;
  uint64_t sequence_ = 0;
  Delivery put_;
  std::string remove_id_;
  OffsetKey key_;
};

// One thread of a run. What Then() brings arrives on another thread, hence the lock.
class Worker {
 public:
  Worker(Subject& subject, int thread, const std::atomic<bool>& stop)
      : subject_(subject), stop_(stop), cycles_(thread) {}

  void Prepare() {
    Commit last;
    for (uint64_t count = 0; count < kPendingOfThread; ++count) last = cycles_.RunOn(subject_);
    Note(last.Wait());
  }

  void RunUnwaited() {
    Commit last;
    while (!stop_.load(std::memory_order_relaxed)) {
      const bool sampled = count_ % kSampleEvery == 0;
      const int64_t begin = sampled ? NowNanos() : 0;
      last = cycles_.RunOn(subject_);
      if (sampled) latency_.Add(NowNanos() - begin);
      ++count_;
      if (!last.refused().ok()) break;
    }
    Note(last.Wait());
  }

  void RunBlocked() {
    while (!stop_.load(std::memory_order_relaxed)) {
      const int64_t begin = NowNanos();
      const Status status = cycles_.RunOn(subject_).Wait();
      latency_.Add(NowNanos() - begin);
      ++count_;
      if (!status.ok()) {
        Note(status);
        break;
      }
    }
  }

  void RunWindow(int window) {
    while (!stop_.load(std::memory_order_relaxed)) {
      {
        MutexLock lock(mu_);
        while (out_ >= window) back_.Wait(mu_);
        if (!status_.ok()) break;
        ++out_;
      }
      const int64_t begin = NowNanos();
      cycles_.RunOn(subject_).Then([this, begin](Status status) { Arrive(begin, status); });
      ++count_;
    }
    MutexLock lock(mu_);
    while (out_ > 0) back_.Wait(mu_);
  }

  uint64_t count() const { return count_; }
  const LatencyHistogram& latency() const { return latency_; }
  Status status() const { return status_; }

 private:
  void Note(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  void Arrive(int64_t begin, const Status& status) {
    MutexLock lock(mu_);
    latency_.Add(NowNanos() - begin);
    Note(status);
    --out_;
    back_.NotifyOne();
  }

  Subject& subject_;
  const std::atomic<bool>& stop_;
  CycleMaker cycles_;
  uint64_t count_ = 0;

  Mutex
      mu_;  // Guards the four below while callbacks are out; the thread alone uses them otherwise.
  CondVar back_;
  int out_ = 0;
  Status status_;
  LatencyHistogram latency_;
};

void RunOne(Worker& worker, const WorkloadPlan& plan) {
  switch (plan.waiting) {
    case Waiting::kAtTheEnd:
      return worker.RunUnwaited();
    case Waiting::kEach:
      return worker.RunBlocked();
    case Waiting::kWindow:
      return worker.RunWindow(plan.window);
  }
}

void Pause(double seconds) {
  Mutex mu;  // Guards nothing: only its wait is wanted.
  CondVar never;
  MutexLock lock(mu);
  const int64_t until = NowNanos() + static_cast<int64_t>(seconds * 1e9);
  for (int64_t left = until - NowNanos(); left > 0; left = until - NowNanos()) {
    never.WaitFor(mu, absl::Nanoseconds(left));
  }
}

}  // namespace

StatusOr<WorkloadResult> RunWorkload(Subject& subject, const WorkloadPlan& plan) {
  std::atomic<bool> stop = false;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int thread = 0; thread < plan.threads; ++thread) {
    workers.push_back(std::make_unique<Worker>(subject, thread, stop));
  }
  std::barrier ready(plan.threads + 1);
  std::vector<std::thread> threads;
  for (auto& worker : workers) {
    threads.emplace_back([&ready, &plan, worker = worker.get()] {
      worker->Prepare();
      ready.arrive_and_wait();  // All are prepared,
      ready.arrive_and_wait();  // and the counters are read.
      RunOne(*worker, plan);
    });
  }
  ready.arrive_and_wait();
  const SubjectCounters before = subject.counters();
  const double cpu_before = CpuSeconds();
  const int64_t begin = NowNanos();
  ready.arrive_and_wait();
  Pause(plan.seconds);
  stop.store(true);
  for (std::thread& thread : threads) thread.join();

  WorkloadResult result;
  result.seconds = static_cast<double>(NowNanos() - begin) * 1e-9;
  result.cpu_seconds = CpuSeconds() - cpu_before;
  const SubjectCounters after = subject.counters();
  result.counters = {.written_bytes = after.written_bytes - before.written_bytes,
                     .flushes = after.flushes - before.flushes};
  for (auto& worker : workers) {
    RETURN_IF_ERROR(worker->status());
    result.cycles += worker->count();
    result.latency.Merge(worker->latency());
  }
  return result;
}

std::string MakeDeliveryId(int thread, uint64_t sequence) {
  std::string id;
  WriteId(thread, sequence, id);
  return id;
}

}  // namespace holdfast::bench
