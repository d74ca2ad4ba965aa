// What a figure must not be quoted without: machine, kernel, file system, build.
#pragma once

#include <string>

namespace holdfast::bench {

struct Machine {
  std::string cpu;  // model and number of cores
  std::string memory;
  std::string kernel;
  std::string file_system;  // of the directory that is measured: type and device
  std::string compiler;
  std::string commit;  // of the sources, as git describes them; "unknown" outside a checkout
};

Machine DescribeMachine(const std::string& directory);

}  // namespace holdfast::bench
