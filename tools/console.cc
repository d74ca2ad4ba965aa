#include "tools/console.h"

#include <fmt/format.h>

namespace holdfast {
namespace {

constexpr absl::Duration kQuietTime = absl::Seconds(2);
constexpr absl::Duration kRedrawInterval = absl::Milliseconds(100);
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

void Complain(Console& console, std::string_view command, std::string_view text) {
  console.err << fmt::format("holdfast {}: {}\n", command, text);
}

void Pause(absl::Duration duration) {
  Mutex mu;  // Only what the condition variable needs.
  CondVar never;
  MutexLock lock(mu);
  never.WaitFor(mu, duration);
}

void ConsoleLog::Log(LogLevel level, std::string_view line) {
  if (level == LogLevel::kInfo) return;
  MutexLock lock(mu_);
  Complain(console_, command_, line);
}

Progress::Progress(Console& console, std::string what, uint64_t total)
    : console_(console),
      what_(std::move(what)),
      total_(total),
      show_at_(console.clock.Now() + kQuietTime) {}

Progress::~Progress() {
  if (shown_) console_.err << kClearLine << std::flush;
}

void Progress::Update(uint64_t done) {
  if (!console_.terminal) return;
  const absl::Duration now = console_.clock.Now();
  if (now < show_at_) return;
  show_at_ = now + kRedrawInterval;
  shown_ = true;
  std::string line = fmt::format("{}{}: {}", kClearLine, what_, done);
  if (total_ != 0) line += fmt::format(" of {} ({} %)", total_, done * 100 / total_);
  console_.err << line << std::flush;
}

}  // namespace holdfast
