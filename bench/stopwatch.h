// Time as the benchmarks take it: nanoseconds, the processor time of the whole process, and a
// pause.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>

#include "journal/base/mutex.h"

namespace holdfast::bench {

inline int64_t NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// User and system time of all threads so far, in seconds.
inline double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

inline void Pause(double seconds) {
  Mutex mu;  // Guards nothing: only its wait is wanted.
  CondVar never;
  MutexLock lock(mu);
  const int64_t until = NowNanos() + static_cast<int64_t>(seconds * 1e9);
  for (int64_t left = until - NowNanos(); left > 0; left = until - NowNanos()) {
    never.WaitFor(mu, absl::Nanoseconds(left));
  }
}

}  // namespace holdfast::bench
