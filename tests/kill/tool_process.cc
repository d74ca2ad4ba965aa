#include "tests/kill/tool_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "journal/base/check.h"
#include "tests/support/environment.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/tool_run.h"

namespace holdfast {

const std::string& ToolPath() {
  static const auto& path = *new std::string(TextFromEnvironment("HOLDFAST_TOOL"));
  CHECK(!path.empty());
  return path;
}

uint64_t FileBytes(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

ToolProcess::ToolProcess(const std::vector<std::string>& arguments, const std::string& output) {
  std::vector<std::string> words = {ToolPath()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  CHECK(::posix_spawn(&pid_, ToolPath().c_str(), &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
}

ToolProcess::~ToolProcess() {
  if (pid_ > 0) {
    Kill();
    Wait();
  }
}

bool ToolProcess::Ended() {
  if (pid_ < 0) return true;
  int state = 0;
  const pid_t waited = ::waitpid(pid_, &state, WNOHANG);
  CHECK(waited >= 0);
  if (waited == 0) return false;
  pid_ = -1;
  end_ = WIFSIGNALED(state) ? ToolEnd{.signal = WTERMSIG(state)}
                            : ToolEnd{.exit_code = WEXITSTATUS(state)};
  return true;
}

FolderWatch::FolderWatch(const std::vector<std::string>& folders)
    : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  CHECK(fd_ >= 0);
  for (const std::string& folder : folders) {
    CHECK(::inotify_add_watch(fd_, folder.c_str(),
                              IN_OPEN | IN_MODIFY | IN_CREATE | IN_MOVE | IN_DELETE) >= 0);
  }
}

FolderWatch::~FolderWatch() { ::close(fd_); }

uint64_t FolderWatch::TakeEvents() {
  constexpr int kLookMs = 20;  // Bounds how late a caller sees that nothing more will come.
  pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
  ::poll(&wait, 1, kLookMs);
  uint64_t count = 0;
  alignas(inotify_event) char block[4096];
  for (ssize_t got = 0; (got = ::read(fd_, block, sizeof block)) > 0;) {
    for (ssize_t at = 0; at < got; ++count) {
      at += static_cast<ssize_t>(sizeof(inotify_event) +
                                 reinterpret_cast<const inotify_event*>(block + at)->len);
    }
  }
  return count;
}

// Woken by the file system, so the reaction comes within a fraction of a millisecond.
bool ToolProcess::AwaitGrowth(const std::string& file, uint64_t bytes) {
  FolderWatch watch({file});
  while (FileBytes(file) <= bytes) {
    if (watch.TakeEvents() == 0 && Ended()) return false;
  }
  return !Ended();
}

void ToolProcess::AwaitEvents(FolderWatch& watch, uint64_t count) {
  for (uint64_t happened = 0; happened < count;) {
    const uint64_t more = watch.TakeEvents();
    happened += more;
    if (more == 0 && Ended()) return;
  }
}

void ToolProcess::Kill() {
  if (pid_ > 0) CHECK(::kill(pid_, SIGKILL) == 0);
}

ToolEnd ToolProcess::Wait() {
  if (pid_ > 0) {
    int state = 0;
    CHECK(::waitpid(pid_, &state, 0) == pid_);
    pid_ = -1;
    end_ = WIFSIGNALED(state) ? ToolEnd{.signal = WTERMSIG(state)}
                              : ToolEnd{.exit_code = WEXITSTATUS(state)};
  }
  return end_;
}

ToolOutput RunToolProcess(const std::vector<std::string>& arguments) {
  const TempDir directory;
  ToolOutput output;
  output.end = ToolProcess(arguments, directory.Sub("out")).Wait();
  output.text = ReadWholeFile(directory.Sub("out"));
  return output;
}

}  // namespace holdfast
