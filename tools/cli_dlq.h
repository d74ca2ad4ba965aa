// The command line of `holdfast dlq` and its actions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli_parts.h"
#include "tools/options.h"

namespace holdfast {

class DlqCommandLine {
 public:
  // Borrows `writer`, which outlives this object.
  explicit DlqCommandLine(WriterArguments& writer) : writer_(writer) {}
  DlqCommandLine(const DlqCommandLine&) = delete;
  DlqCommandLine& operator=(const DlqCommandLine&) = delete;

  // Adds `dlq` with its actions to the commands of `app`; what it notes borrows this object.
  void AddTo(CLI::App& app, CommandTable& commands);

 private:
  CLI::App& AddAction(CLI::App& dlq, DlqCommand::Action action, const CommandText& text,
                      CommandTable& commands);
  void AddFilter(CLI::App& action);
  void AddChange(CLI::App& action, const char* dry_run_help);

  FetchedCommand FetchAction(const CLI::App& app, DlqCommand::Action action) const;

  WriterArguments& writer_;
  DlqCommand command_;
  // As typed. An empty word and none at all are not the same, so the parser is asked which it was.
  std::vector<std::string> id_words_;
  std::string topic_word_, client_word_, reason_word_, age_word_;
  uint64_t count_max_ = 0;
};

}  // namespace holdfast
