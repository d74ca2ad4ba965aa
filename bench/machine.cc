#include "bench/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "bench/build_commit.h"

namespace holdfast::bench {
namespace {

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// The mount with the longest path that holds the directory.
std::string FileSystemOf(const std::string& directory) {
  std::error_code ignored;  // The path as given is then compared.
  const std::string path = std::filesystem::weakly_canonical(directory, ignored).string();
  std::ifstream file("/proc/self/mounts");
  std::string found = "unknown";
  size_t longest = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string device, point, type;
    fields >> device >> point >> type;
    const bool inside = point == "/" || path == point || path.starts_with(point + "/");
    if (inside && point.size() >= longest) {
      longest = point.size();
      found = fmt::format("{} on {}", type, device);
    }
  }
  return found;
}

}  // namespace

Machine DescribeMachine(const std::string& directory) {
  Machine machine;
  machine.cpu = fmt::format("{}, {} cores", CpuModel(), sysconf(_SC_NPROCESSORS_ONLN));
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  const double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  machine.memory = fmt::format("{:.0f} GiB", pages * page_bytes / (1 << 30));
  utsname kernel{};
  uname(&kernel);
  machine.kernel = fmt::format("{} {}", kernel.sysname, kernel.release);
  machine.file_system = FileSystemOf(directory);
#ifdef __clang__
  machine.compiler = fmt::format("clang {}", __clang_version__);
#else
  machine.compiler = fmt::format("g++ {}", __VERSION__);
#endif
#ifndef NDEBUG
  machine.compiler += ", with debug checks";
#endif
  machine.commit = kBuildCommit;
  return machine;
}

}  // namespace holdfast::bench
