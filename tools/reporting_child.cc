#include "tools/reporting_child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace holdfast {
namespace {

// Small, so that the child is never far ahead of what was read.
constexpr int kPipeBytes = 4096;

Status SystemError(std::string_view what, int error) {
  return Unavailable(Detail::kIo, "{}: {}", what, std::generic_category().message(error));
}

}  // namespace

StatusOr<std::unique_ptr<ReportingChild>> ReportingChild::Start(
    const std::string& program, const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("cannot make a pipe", errno);
  (void)::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);  // A wish; any size works.

  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kReportDescriptor);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return SystemError("cannot start " + program, error);
  }
  return std::unique_ptr<ReportingChild>(new ReportingChild(pid, ends[0]));
}

ReportingChild::~ReportingChild() {
  if (!end_.has_value()) {
    Kill();
    (void)Wait();  // Nobody is left to tell.
  }
  ::close(reports_);
}

StatusOr<std::optional<std::string>> ReportingChild::ReadLine() {
  constexpr size_t kReadBytes = 4096;
  while (true) {
    const size_t line_end = buffer_.find('\n', read_);
    if (line_end != std::string::npos) {
      std::string line = buffer_.substr(read_, line_end - read_);
      read_ = line_end + 1;
      return std::optional<std::string>(std::move(line));
    }
    buffer_.erase(0, read_);
    read_ = 0;
    std::array<char, kReadBytes> block{};
    const ssize_t got = ::read(reports_, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("cannot read what the child reports", errno);
    if (got == 0) return std::optional<std::string>();
    buffer_.append(block.data(), static_cast<size_t>(got));
  }
}

void ReportingChild::Kill() {
  if (!end_.has_value()) ::kill(pid_, SIGKILL);
}

StatusOr<ChildEnd> ReportingChild::Wait() {
  if (end_.has_value()) return *end_;
  int state = 0;
  pid_t waited = 0;
  do {
    waited = ::waitpid(pid_, &state, 0);
  } while (waited < 0 && errno == EINTR);
  if (waited < 0) return SystemError("cannot wait for the child", errno);
  end_ = WIFSIGNALED(state) ? ChildEnd{.signal = WTERMSIG(state)}
                            : ChildEnd{.exit_code = WEXITSTATUS(state)};
  return *end_;
}

}  // namespace holdfast
