// The command line, read into plain structs. The only place that knows the parser.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tools/options.h"

namespace holdfast {

// There is nothing to run: what to print, and the exit code.
struct CommandLineAnswer {
  int exit_code = 0;
  std::string out;  // help or version
  std::string err;  // what is wrong with the command line
};

// `arguments` without the program's name. Unknown commands, options and values are refused.
std::variant<AnyCommand, CommandLineAnswer> ParseCommandLine(
    const std::vector<std::string>& arguments);

}  // namespace holdfast
