// One line on a terminal that says how far a run is; nothing where stderr is a file or a pipe.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace holdfast::bench {

class Progress {
 public:
  explicit Progress(int steps) : steps_(steps), shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Step(std::string_view what) {
    ++step_;
    what_ = what;
    if (shown_) fmt::print(stderr, "\r\033[K[{}/{}] {}", step_, steps_, what);
  }
  // How far this step is. A child process may say so in the name of its parent.
  void Part(uint64_t done, uint64_t all) const {
    if (shown_) {
      fmt::print(stderr, "\r\033[K[{}/{}] {}: {} %", step_, steps_, what_, 100 * done / all);
    }
  }

 private:
  const int steps_;
  const bool shown_;
  int step_ = 0;
  std::string what_;
};

}  // namespace holdfast::bench
