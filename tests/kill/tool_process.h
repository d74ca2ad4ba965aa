// The built `holdfast` as a process of its own: started, watched, killed, waited for.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast {

// Path of the binary under test: $HOLDFAST_TOOL, which meson sets.
const std::string& ToolPath();

// How a process ended: an exit code, or a signal.
struct ToolEnd {
  int exit_code = -1;
  int signal = 0;
};

// Counts what happens to the files in some folders: opened, written, made, renamed, removed.
class FolderWatch {
 public:
  explicit FolderWatch(const std::vector<std::string>& folders);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // What has happened since the last call; waits a little if that is nothing.
  uint64_t TakeEvents();

 private:
  int fd_ = -1;
};

// Owns the process: killed and waited for at the latest when it goes.
class ToolProcess {
 public:
  // Its output goes to `output` (both streams), which is made or continued.
  ToolProcess(const std::vector<std::string>& arguments, const std::string& output);
  ~ToolProcess();
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  // Blocks until `file` has more than `bytes`, or the process has ended. True: it still runs.
  // Needs: the file is there.
  bool AwaitGrowth(const std::string& file, uint64_t bytes);
  // Blocks until `count` things more have happened in the folders, or the process has ended.
  void AwaitEvents(FolderWatch& watch, uint64_t count);
  // SIGKILL; does not wait.
  void Kill();
  ToolEnd Wait();

 private:
  bool Ended();

  pid_t pid_ = -1;
  ToolEnd end_;
};

struct ToolOutput {
  ToolEnd end;
  std::string text;  // both streams
};
// Runs it to its end.
ToolOutput RunToolProcess(const std::vector<std::string>& arguments);

uint64_t FileBytes(const std::string& path);  // 0 if there is none

}  // namespace holdfast
