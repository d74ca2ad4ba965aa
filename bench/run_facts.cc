#include "bench/run_facts.h"

#include <fmt/format.h>

#include "journal/base/json.h"

namespace holdfast::bench {

std::string FactsMarkdown(const RunFacts& facts, const std::string& io) {
  const Machine& machine = facts.machine;
  return fmt::format(
      "- machine: {}, {}; {}\n- directory: {}{}\n- build: {}, commit {}\n- command: `{}`\n\n",
      machine.cpu, machine.memory, machine.kernel, machine.file_system,
      io.empty() ? "" : "; journal I/O: " + io, machine.compiler, machine.commit,
      facts.command_line);
}

std::string TargetsMarkdown(const std::vector<Target>& targets) {
  std::string out =
      "## Ratios that this version is built to\n\n"
      "| what | measured | target | |\n|---|---|---|---|\n";
  for (const Target& target : targets) {
    fmt::format_to(std::back_inserter(out), "| {} | {:.2f} | {} {} | {} |\n", target.what,
                   target.measured, target.at_least ? ">=" : "<=", target.bound,
                   target.met() ? "met" : "missed");
  }
  return out;
}

std::string FactsJson(const RunFacts& facts, const std::string& io) {
  std::string out;
  JsonWriter(out)
      .BeginObject()
      .Field("kind", "run")
      .Field("cpu", facts.machine.cpu)
      .Field("memory", facts.machine.memory)
      .Field("kernel", facts.machine.kernel)
      .Field("file_system", facts.machine.file_system)
      .Field("compiler", facts.machine.compiler)
      .Field("commit", facts.machine.commit)
      .Field("io", io)
      .Field("command", facts.command_line)
      .EndObject();
  return out + "\n";
}

std::string TargetsJson(const std::vector<Target>& targets) {
  std::string out;
  for (const Target& target : targets) {
    JsonWriter(out)
        .BeginObject()
        .Field("kind", "target")
        .Field("what", target.what)
        .Field("measured", target.measured)
        .Field(target.at_least ? "at_least" : "at_most", target.bound)
        .Field("met", target.met())
        .EndObject();
    out += '\n';
  }
  return out;
}

}  // namespace holdfast::bench
