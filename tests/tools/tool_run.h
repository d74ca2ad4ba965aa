// Runs a command of the tool in process, with what it printed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tools/command.h"

namespace holdfast {

struct ToolRun {
  int exit_code = -1;
  std::string out, err;

  // The lines of `out`.
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::istringstream stream(out);
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    return all;
  }
};

inline ToolRun RunTool(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .clock = RealClock()};
  ToolRun run;
  run.exit_code = RunHoldfast(arguments, console);
  run.out = out.str();
  run.err = err.str();
  return run;
}

inline std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

inline void WriteWholeFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Every file below `directory` with its bytes, folders too.
inline std::map<std::string, std::string> Snapshot(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    files[entry.path().string()] =
        entry.is_regular_file() ? ReadWholeFile(entry.path().string()) : "";
  }
  return files;
}

}  // namespace holdfast
