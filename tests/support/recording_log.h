// A LogSink that keeps its lines.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/log_sink.h"
#include "journal/base/mutex.h"

namespace holdfast {

// Threads: any.
class RecordingLog final : public LogSink {
 public:
  void Log(LogLevel /*level*/, std::string_view line) override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    lines_.emplace_back(line);
  }
  std::vector<std::string> lines() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return lines_;
  }
  // How many lines have `text` in them.
  size_t Count(std::string_view text) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return static_cast<size_t>(std::count_if(lines_.begin(), lines_.end(), [&](const auto& line) {
      return line.find(text) != std::string::npos;
    }));
  }

 private:
  Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
