// Work in a process of its own: what it used is counted for it alone, and it can be killed.
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <type_traits>

#include "journal/base/status.h"

namespace holdfast::bench {

// A line of /proc/self/status in bytes: "VmRSS", "VmHWM", "RssAnon". 0 where there is none.
inline uint64_t MemoryBytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

// What this process made the device read so far, page faults included. 0 where the kernel does not
// say.
inline uint64_t DeviceReadBytes() {
  std::ifstream file("/proc/self/io");
  const std::string field = "read_bytes: ";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field)) return std::stoull(line.substr(field.size()));
  }
  return 0;
}

// Runs `work` in a child process and hands its result over; then the child is killed with SIGKILL,
// whatever it does. What it met goes to stderr.
// Errors: kUnavailable  no child could be started, or it ended early
template <typename Result, typename Work>
StatusOr<Result> InChild(const Work& work) {
  static_assert(std::is_trivially_copyable_v<Result>);
  int ends[2];
  if (pipe(ends) != 0) return Unavailable(Detail::kIo, "pipe: errno {}", errno);
  const pid_t child = fork();
  if (child < 0) return Unavailable(Detail::kIo, "fork: errno {}", errno);
  if (child == 0) {
    close(ends[0]);
    StatusOr<Result> result = work();
    if (!result.ok()) {
      fmt::print(stderr, "\nholdfast-bench: {}\n", result.status().ToString());
      _exit(1);
    }
    if (write(ends[1], &*result, sizeof(Result)) != sizeof(Result)) _exit(1);
    for (;;) pause();
  }
  close(ends[1]);
  Result result;
  const ssize_t count = read(ends[0], &result, sizeof result);
  close(ends[0]);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (count != sizeof result) return Unavailable(Detail::kNone, "a child process ended early");
  return result;
}

}  // namespace holdfast::bench
