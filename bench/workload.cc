#include "bench/workload.h"

#include <atomic>
#include <barrier>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "bench/cycle_maker.h"
#include "bench/stopwatch.h"
#include "journal/base/mutex.h"

namespace holdfast::bench {
namespace {

constexpr uint64_t kSampleEvery = 16;  // of unwaited cycles: reading the clock costs a tenth of one

// One thread of a run. What Then() brings arrives on another thread, hence the lock.
class Worker {
 public:
  Worker(Subject& subject, int thread, const std::atomic<bool>& stop)
      : subject_(subject), stop_(stop), cycles_(thread, kPendingOfThread, kEventBytes) {}

  void Prepare(double warm_up_seconds) {
    Commit last;
    for (uint64_t count = 0; count < kPendingOfThread; ++count) last = subject_.Run(cycles_.Next());
    const int64_t end = NowNanos() + static_cast<int64_t>(warm_up_seconds * 1e9);
    while (last.refused().ok() && NowNanos() < end) last = subject_.Run(cycles_.Next());
    Note(last.Wait());
  }

  void RunUnwaited() {
    Commit last;
    while (!stop_.load(std::memory_order_relaxed)) {
      const bool sampled = count_ % kSampleEvery == 0;
      const int64_t begin = sampled ? NowNanos() : 0;
      last = subject_.Run(cycles_.Next());
      if (sampled) latency_.Add(NowNanos() - begin);
      ++count_;
      if (!last.refused().ok()) break;
    }
    Note(last.Wait());
  }

  void RunBlocked() {
    while (!stop_.load(std::memory_order_relaxed)) {
      const int64_t begin = NowNanos();
      const Status status = subject_.Run(cycles_.Next()).Wait();
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
      subject_.Run(cycles_.Next()).Then([this, begin](Status status) { Arrive(begin, status); });
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
      worker->Prepare(plan.warm_up_seconds);
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

}  // namespace holdfast::bench
