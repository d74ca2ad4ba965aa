// A child of this program that can be killed, with a pipe to hear what it reports.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/base/status.h"

namespace holdfast {

// How a child ended: its exit code, or the signal that ended it.
struct ChildEnd {
  int exit_code = -1;
  int signal = 0;
};

// Owns: the process. A child that is still running is killed and waited for on destruction.
// Threads: one.
class ReportingChild {
 public:
  // Descriptor that the child may write its reports to.
  static constexpr int kReportDescriptor = 3;

  // Starts `program` with `arguments` (without its own name); other output goes where ours goes.
  // Errors: kUnavailable  the system refused
  static StatusOr<std::unique_ptr<ReportingChild>> Start(const std::string& program,
                                                         const std::vector<std::string>& arguments);
  ~ReportingChild();
  ReportingChild(const ReportingChild&) = delete;
  ReportingChild& operator=(const ReportingChild&) = delete;

  // The next line that it reported, without its end; none once it has ended and all was read. Text
  // behind the last line end is dropped. Blocks.
  StatusOr<std::optional<std::string>> ReadLine();
  // SIGKILL. What it reported before can still be read.
  void Kill();
  // Blocks until it has ended.
  StatusOr<ChildEnd> Wait();

 private:
  ReportingChild(pid_t pid, int reports) : pid_(pid), reports_(reports) {}

  const pid_t pid_;
  const int reports_;
  std::optional<ChildEnd> end_;
  std::string buffer_;
  size_t read_ = 0;  // of the buffer
};

}  // namespace holdfast
