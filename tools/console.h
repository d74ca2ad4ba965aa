// What a command talks to: results go to `out`, messages to `err`, and a long one shows how far it
// is.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "holdfast/clock.h"
#include "holdfast/log_sink.h"
#include "journal/base/mutex.h"

namespace holdfast {

struct Console {
  std::ostream& out;
  std::ostream& err;
  Clock& clock;
  // `err` is a terminal, so a line that is written over and over helps.
  bool terminal = false;
  // Path of the running `holdfast` binary, for the command that starts itself as a child.
  std::string program;
  // Asked by a command that runs until it is told to stop.
  std::function<bool()> stop_requested = [] { return false; };
};

// One message line: "holdfast COMMAND: TEXT".
void Complain(Console& console, std::string_view command, std::string_view text);

// Waits for about so long, for what nobody can wake it for: another process, or the time.
void Pause(absl::Duration duration);

// Warnings and errors of the library as message lines; its information is dropped.
class ConsoleLog final : public LogSink {
 public:
  // Borrows the console, which outlives it.
  ConsoleLog(Console& console, std::string command)
      : console_(console), command_(std::move(command)) {}
  void Log(LogLevel level, std::string_view line) override;

 private:
  Console& console_;
  const std::string command_;
  Mutex mu_;  // One line at a time.
};

// A progress line on the terminal, from two seconds on, ten times a second at most. Nothing on
// anything that is not a terminal. Cleared when it is destroyed.
// Threads: one.
class Progress {
 public:
  // `total` 0: the end is not known. Borrows the console, which outlives it.
  Progress(Console& console, std::string what, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(uint64_t done);

 private:
  Console& console_;
  const std::string what_;
  const uint64_t total_;
  absl::Duration show_at_;
  bool shown_ = false;
};

}  // namespace holdfast
