// Where the library's few log lines go.
#pragma once

#include <string_view>

namespace holdfast {

enum class LogLevel { kInfo, kWarning, kError };

// Threads: any; calls may be concurrent and must not call back into the engine.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Log(LogLevel level, std::string_view line) = 0;
};

}  // namespace holdfast
