// What the command lines of the single commands are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/time/time.h"
#include "tools/options.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace holdfast {

inline constexpr char kDirectoryHelp[] = "directory of the store";
inline constexpr char kJsonHelp[] = "one JSON object per line";
inline constexpr char kExitCodes[] =
    "Exit codes: 0 fine, 1 torn tail (normal after a kill), 2 damage or a failed audit, 3 usage or "
    "I/O, 4 not found.";

// A command line that parses but means nothing.
struct Refusal {
  std::string why;
};

using FetchedCommand = std::variant<AnyCommand, Refusal>;
// Called once the line is parsed: makes the command of what was given.
using Fetch = std::function<FetchedCommand()>;
using CommandTable = std::map<const CLI::App*, Fetch>;

struct CommandText {
  const char* name;
  const char* what;
  const char* examples;  // lines, each with its end
};
// Adds a command below `parent`, which owns it.
CLI::App& AddCommand(CLI::App& parent, const CommandText& text);

// A name as it stands on a command line: any bytes as "base64:…". None: not valid base64.
std::optional<std::string> ParseName(std::string_view word);
std::optional<uint64_t> ParseNumber(std::string_view word);
// "90s", "1h30m" or whole days, "7d". None: something else, or negative.
std::optional<absl::Duration> ParseAge(const std::string& word);

// The parser alone would take a negative number for a very large one.
const CLI::Validator& WholeNumber();

// The options of commands that open a store for writing. One object serves all commands of a line,
// because only one of them is chosen.
class WriterArguments {
 public:
  void AddLockWait(CLI::App& command);
  // How to open a store that is there.
  void AddOpenOptions(CLI::App& command);
  // How to open or make one, and when an operation counts.
  void AddWriterOptions(CLI::App& command);

  WriterOptions Fetch() const;

 private:
  WriterOptions writer_;
  std::string io_ = "auto";
  std::string durability_ = "synced";
  uint64_t commit_interval_ms_ = 0;
  uint64_t lock_wait_ms_ =
      static_cast<uint64_t>(absl::ToInt64Milliseconds(EngineOptions().lock_wait));
};

}  // namespace holdfast
