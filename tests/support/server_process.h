// ServerProcess: a real server in a process of its own, for tests that stop, kill and restart it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "journal/base/check.h"

namespace holdfast {

// Owns the process; kills it at the latest when it goes.
class ServerProcess {
 public:
  // Returns when the server has written `ready`, which it must within a minute. What it writes on
  // both streams is read to its end.
  ServerProcess(std::vector<std::string> arguments, std::string_view ready) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    CHECK(pid_ >= 0);
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      execv(argv.front(), argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
    while (heard_.find(ready) == std::string::npos && Hear()) {
    }
    ready_ = heard_.find(ready) != std::string::npos;
    greeting_ = heard_;
    drain_ = std::thread([this] {
      while (Hear()) heard_.clear();
    });
  }
  ~ServerProcess() {
    if (pid_ > 0) Kill();
    drain_.join();
    close(output_);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  bool ready() const { return ready_; }
  // What it had written by then.
  const std::string& greeting() const { return greeting_; }
  pid_t pid() const { return pid_; }
  void Signal(int signal) { CHECK(kill(pid_, signal) == 0); }
  // Returns when it is gone, with how it ended as waitpid() says.
  int Kill() {
    Signal(SIGKILL);
    return Wait();
  }
  int Terminate() {
    Signal(SIGTERM);
    return Wait();
  }

 private:
  // False at the end of the output, or when nothing came for a minute and it is not ready.
  bool Hear() {
    pollfd more{.fd = output_, .events = POLLIN, .revents = 0};
    if (poll(&more, 1, ready_ ? -1 : 60'000) <= 0) return false;
    char bytes[4096];
    const ssize_t got = read(output_, bytes, sizeof bytes);
    if (got <= 0) return false;
    heard_.append(bytes, static_cast<size_t>(got));
    return true;
  }
  int Wait() {
    int status = 0;
    CHECK(waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return status;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::string heard_, greeting_;
  bool ready_ = false;
  std::thread drain_;
};

}  // namespace holdfast
