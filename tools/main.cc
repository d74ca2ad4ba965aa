// holdfast: look into a store, prove it, and show what it survives.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>

#include "tools/command.h"

namespace {

volatile std::sig_atomic_t g_stop = 0;

// The first interrupt asks, the second ends the process.
void AskToStop(int signal) {
  g_stop = 1;
  std::signal(signal, SIG_DFL);
}

// A command that never asks is ended by the first interrupt.
bool StopRequested() {
  static const bool listening = [] {
    std::signal(SIGINT, AskToStop);
    std::signal(SIGTERM, AskToStop);
    return true;
  }();
  return listening && g_stop != 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ,
              SIG_IGN);  // A file-size limit is an error of the write, not a reason to die.
  std::ios::sync_with_stdio(false);
  std::error_code ignored;  // Without /proc only the command that starts itself fails, and says so.
  holdfast::Console console{
      .out = std::cout,
      .err = std::cerr,
      .clock = holdfast::RealClock(),
      .terminal = ::isatty(STDERR_FILENO) == 1,
      .program = std::filesystem::read_symlink("/proc/self/exe", ignored).string(),
      .stop_requested = StopRequested};
  return holdfast::RunHoldfast({argv + 1, argv + argc}, console);
}
