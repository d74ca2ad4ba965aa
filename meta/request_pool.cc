#include "meta/request_pool.h"

#include <utility>

namespace holdfast {

RequestPool::RequestPool(const Limits& limits) : waiting_max_(limits.waiting_max) {
  for (size_t i = 0; i < limits.threads; ++i) threads_.emplace_back([this] { Loop(); });
}

RequestPool::~RequestPool() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool RequestPool::Run(std::function<void()> work) {
  MutexLock lock(mu_);
  if (waiting_.size() >= waiting_max_) return false;
  waiting_.push_back(std::move(work));
  wake_.NotifyOne();
  return true;
}

void RequestPool::Loop() {
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(mu_);
      while (waiting_.empty() && !stopping_) wake_.Wait(mu_);
      if (waiting_.empty()) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace holdfast
