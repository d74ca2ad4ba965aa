// Runs a piece of a test in a child process: limits, filters, mounts and kills stay in there.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>

#include "journal/base/check.h"

namespace holdfast {

// Owns the child; kills it at the latest when it goes.
class ChildProcess {
 public:
  // `body` gets a descriptor to tell the parent something through; the child exits when it returns.
  explicit ChildProcess(const std::function<void(int tell)>& body) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_ = fork();
    CHECK(pid_ >= 0);
    if (pid_ == 0) {
      close(ends[0]);
      body(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    told_ = ends[0];
  }
  ~ChildProcess() {
    if (pid_ > 0) {
      Kill();
      Wait();
    }
    close(told_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Blocks until the child has told `bytes`, or has told all that it ever will.
  std::string Hear(size_t bytes) {
    std::string heard(bytes, '\0');
    size_t done = 0;
    while (done < bytes) {
      const ssize_t got = read(told_, heard.data() + done, bytes - done);
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    heard.resize(done);
    return heard;
  }
  pid_t pid() const { return pid_; }
  void Kill() { CHECK(kill(pid_, SIGKILL) == 0); }
  // How it ended, as waitpid() says.
  int Wait() {
    int status = 0;
    CHECK(waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int told_ = -1;
};

// Empty if `body` returned an empty string in a child; else what it returned, or how the child
// died. A body returns what went wrong: assertions of a child are not seen.
inline std::string InChild(const std::function<std::string()>& body) {
  ChildProcess child([&](int tell) {
    const std::string told = body() + "\n";
    CHECK(write(tell, told.data(), told.size()) == static_cast<ssize_t>(told.size()));
  });
  std::string heard = child.Hear(size_t{1} << 16);
  const int status = child.Wait();
  if (WIFSIGNALED(status)) return std::string("killed: ") + strsignal(WTERMSIG(status));
  if (heard.empty()) return "the child said nothing";
  heard.pop_back();
  return heard;
}

}  // namespace holdfast
