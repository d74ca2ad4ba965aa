#include "tools/cli_dlq.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "journal/format/records_text.h"

namespace holdfast {
namespace {

using Action = DlqCommand::Action;

constexpr const char* kFilterOptions[] = {"--topic",      "--client",       "--reason",
                                          "--older-than", "--not-redriven", "--max"};

bool Given(const CLI::App& app, const char* name) {
  const CLI::Option* const option = app.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

Refusal NotBase64(std::string_view word) { return {"not valid base64: " + NameText(word)}; }

// What is wrong with the choice of dead letters to change; empty: nothing.
std::string WrongChoice(const CLI::App& app, const DlqCommand& command) {
  if (command.all) return command.ids.empty() ? "" : "IDs and --all exclude each other";
  if (command.ids.empty()) return "which ones? Give their IDs, or --all";
  const auto* const filter = std::ranges::find_if(
      kFilterOptions, [&app](const char* option) { return Given(app, option); });
  return filter == std::end(kFilterOptions)
             ? ""
             : std::string(*filter) + " goes with --all, not with IDs";
}

}  // namespace

void DlqCommandLine::AddTo(CLI::App& app, CommandTable& commands) {
  CLI::App& dlq = *app.add_subcommand("dlq", "Dead letters: list, show, redrive, purge");
  dlq.require_subcommand(1);
  dlq.footer("`holdfast dlq ACTION --help` has the options of an action, with examples.\n");

  CLI::App& list = AddAction(
      dlq, Action::kList,
      {.name = "list",
       .what = "Dead letters, those that died first come first",
       .examples = "  holdfast dlq list /var/lib/app/state --topic orders --older-than 7d\n"
                   "  holdfast dlq list /var/lib/app/state --reason timeout --json | jq .client\n"},
      commands);
  AddFilter(list);

  CLI::App& show =
      AddAction(dlq, Action::kShow,
                {.name = "show",
                 .what = "Everything about one dead letter, with its event",
                 .examples = "  holdfast dlq show /var/lib/app/state 1-9f0c2a77-42\n"
                             "  holdfast dlq show /var/lib/app/state base64:/wA= --json\n"},
                commands);
  show.add_option("ID", id_words_, "id of the delivery that died (base64:… for any bytes)")
      ->required()
      ->expected(1);

  CLI::App& redrive = AddAction(
      dlq, Action::kRedrive,
      {.name = "redrive",
       .what = "Put events up for delivery again, each as a new delivery that is due now; the dead "
               "letters stay, and count it",
       .examples = "  holdfast dlq redrive /var/lib/app/state 1-9f0c2a77-42\n"
                   "  holdfast dlq redrive /var/lib/app/state --all --client billing --dry-run\n"
                   "  holdfast dlq redrive /var/lib/app/state --all --not-redriven --rate 50\n"},
      commands);
  AddChange(redrive, "only say which ones it would redrive");
  redrive.add_option("--rate", command_.rate, "most a second; 0: no limit")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();

  CLI::App& purge = AddAction(
      dlq, Action::kPurge,
      {.name = "purge",
       .what = "Forget dead letters, with their events and for good",
       .examples = "  holdfast dlq purge /var/lib/app/state 1-9f0c2a77-42 1-9f0c2a77-43\n"
                   "  holdfast dlq purge /var/lib/app/state --all --older-than 90d --dry-run\n"},
      commands);
  AddChange(purge, "only say which ones it would purge");
}

CLI::App& DlqCommandLine::AddAction(CLI::App& dlq, Action action, const CommandText& text,
                                    CommandTable& commands) {
  CLI::App& app = AddCommand(dlq, text);
  commands[&app] = [this, &app, action] { return FetchAction(app, action); };
  app.add_option("DIR", command_.directory, kDirectoryHelp)->required();
  app.add_flag("--json", command_.json, kJsonHelp);
  return app;
}

void DlqCommandLine::AddFilter(CLI::App& action) {
  action.add_option("--topic", topic_word_, "only those of this topic (base64:… for any bytes)");
  action.add_option("--client", client_word_, "only those of this client (base64:… for any bytes)");
  action.add_option("--reason", reason_word_, "only those whose reason has this in it");
  action.add_option("--older-than", age_word_,
                    "only those that died at least so long ago: 90m, 36h, 7d");
  action.add_flag("--not-redriven", command_.filter.not_redriven,
                  "only those that were never redriven");
  action.add_option("--max", count_max_, "at most so many, those that died first")
      ->check(WholeNumber());
}

void DlqCommandLine::AddChange(CLI::App& action, const char* dry_run_help) {
  action.add_option("ID", id_words_, "ids as `dlq list` shows them (base64:… for any bytes)");
  action.add_flag("--all", command_.all, "instead of IDs: all that the options below leave over");
  AddFilter(action);
  action.add_flag("--dry-run", command_.dry_run, dry_run_help);
  writer_.AddOpenOptions(action);
}

FetchedCommand DlqCommandLine::FetchAction(const CLI::App& app, Action action) const {
  DlqCommand command = command_;
  command.action = action;
  command.writer = writer_.Fetch();
  for (const std::string& word : id_words_) {
    std::optional<std::string> id = ParseName(word);
    if (!id.has_value()) return NotBase64(word);
    if (std::ranges::find(command.ids, *id) == command.ids.end()) {
      command.ids.push_back(std::move(*id));
    }
  }
  DeadLetterFilter& filter = command.filter;
  if (Given(app, "--topic")) {
    filter.topic = ParseName(topic_word_);
    if (!filter.topic.has_value()) return NotBase64(topic_word_);
  }
  if (Given(app, "--client")) {
    filter.client = ParseName(client_word_);
    if (!filter.client.has_value()) return NotBase64(client_word_);
  }
  if (Given(app, "--reason")) {
    // An empty one is in every reason: more likely a variable that was not set.
    if (reason_word_.empty()) return Refusal{"--reason: may not be empty"};
    filter.reason = reason_word_;
  }
  if (Given(app, "--older-than")) {
    filter.older_than = ParseAge(age_word_);
    if (!filter.older_than.has_value()) {
      return Refusal{"--older-than: no age such as 90m, 36h or 7d: " + NameText(age_word_)};
    }
  }
  if (Given(app, "--max")) {
    if (count_max_ == 0) return Refusal{"--max: at least 1"};
    filter.count_max = count_max_;
  }
  if (action == Action::kRedrive || action == Action::kPurge) {
    if (std::string wrong = WrongChoice(app, command); !wrong.empty()) return Refusal{wrong};
  }
  return AnyCommand(command);
}

}  // namespace holdfast
