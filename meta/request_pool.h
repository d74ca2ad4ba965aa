// RequestPool: a fixed number of threads for calls that wait for the disk, so that the one thread
// of the HTTP server never does.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "journal/base/mutex.h"

namespace holdfast {

// Threads: any.
class RequestPool {
 public:
  struct Limits {
    size_t threads = 8;
    size_t waiting_max = 10'000;
  };
  explicit RequestPool(const Limits& limits);
  // Runs what waits, then ends.
  ~RequestPool();
  RequestPool(const RequestPool&) = delete;
  RequestPool& operator=(const RequestPool&) = delete;

  // False: too many wait already, and `work` will not run.
  bool Run(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);

  const size_t waiting_max_;
  Mutex mu_;  // Never held while work runs.
  CondVar wake_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace holdfast
