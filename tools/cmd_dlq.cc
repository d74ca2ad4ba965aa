#include <algorithm>
#include <deque>

#include "journal/base/json.h"
#include "journal/format/records_text.h"
#include "tools/command.h"
#include "tools/dead_letter_selection.h"
#include "tools/store_access.h"
#include "tools/value_printer.h"

namespace holdfast {
namespace {

using Action = DlqCommand::Action;

std::string_view CommandOf(Action action) {
  switch (action) {
    case Action::kList:
      return "dlq list";
    case Action::kShow:
      return "dlq show";
    case Action::kRedrive:
      return "dlq redrive";
    case Action::kPurge:
      break;
  }
  return "dlq purge";
}

// Of the two that change something. The second is also the member of a summary that counts them.
const char* DoesOf(Action action) { return action == Action::kRedrive ? "redrive" : "purge"; }
const char* DoneOf(Action action) { return action == Action::kRedrive ? "redriven" : "purged"; }

int FailOrNotFound(Console& console, std::string_view command, const Status& status) {
  if (status.code() != StatusCode::kNotFound) return Fail(console, command, status);
  Complain(console, command, Message(status));
  return kExitNotFound;
}

Status List(const DlqCommand& options, DeadLetterStore& store, Console& console) {
  const DeadLetterSelection selection = SelectDeadLetters(store, options.filter, console);
  Progress progress(console, "dead letters", selection.ids.size());
  uint64_t listed = 0;
  for (const std::string& id : selection.ids) {
    ASSIGN_OR_RETURN(const StoredDeadLetter stored, store.Get(id));
    console.out << DeadLetterLine(stored, {.json = options.json});
    progress.Update(++listed);
    if (!console.out.good()) break;
  }
  return selection.unreadable;
}

Status Show(const DlqCommand& options, DeadLetterStore& store, Console& console) {
  const std::string& id = options.ids.front();
  const StatusOr<StoredDeadLetter> stored = store.Get(id);
  if (stored.status().code() == StatusCode::kNotFound) {
    return NotFound("no dead letter {}", NameText(id));
  }
  RETURN_IF_ERROR(stored.status());
  console.out << DeadLetterLine(*stored,
                                {.json = options.json, .field_lines = true, .event = true});
  return absl::OkStatus();
}

// The dead letters to change. If one that is named is not there, or the filter cannot be put to
// all of them, nothing is changed: what was meant is not known.
StatusOr<std::vector<std::string>> Targets(const DlqCommand& options, DeadLetterStore& store,
                                           Console& console) {
  if (options.all) {
    DeadLetterSelection selection = SelectDeadLetters(store, options.filter, console);
    RETURN_IF_ERROR(selection.unreadable);
    return std::move(selection.ids);
  }
  std::string missing;
  for (const std::string& id : options.ids) {
    ASSIGN_OR_RETURN(const DeadLetterStore::Presence presence, store.IsDeadLettered(id));
    if (!presence.recorded) missing += (missing.empty() ? "" : ", ") + NameText(id);
  }
  if (!missing.empty()) return NotFound("no dead letter {}; nothing was changed", missing);
  return options.ids;
}

// Redrives or purges dead letters one after the other and prints each once that is confirmed, so
// that what was printed is true whatever happens next. Ends early when one fails, when it is asked
// to, or when nobody reads the results.
// Threads: one.
class Change {
 public:
  // Borrows all of it; each outlives this object.
  Change(const DlqCommand& options, Engine& engine, Console& console)
      : options_(options), engine_(engine), console_(console) {}

  // Errors: the code of the first that failed; each is told on the message stream
  //         kUnavailable  asked to stop
  Status Run(const std::vector<std::string>& ids) {
    Progress progress(console_, fmt::format("dead letters {}", DoneOf(options_.action)),
                      ids.size());
    for (const std::string& id : ids) {
      AwaitTurn(progress);
      if (Ending()) break;
      Submit(id);
      if (!unconfirmed_.back().commit.refused().ok()) ConfirmAll();
      if (unconfirmed_.size() == kUnconfirmedMax) ConfirmOldest();
      progress.Update(confirmed_);
    }
    ConfirmAll();
    if (confirmed_ == ids.size()) return absl::OkStatus();
    return MakeStatus(failure_.ok() ? StatusCode::kUnavailable : failure_.code(), Detail::kNone,
                      fmt::format("stopped: {} of {} dead letters were not {}",
                                  ids.size() - confirmed_, ids.size(), DoneOf(options_.action)));
  }
  uint64_t confirmed() const { return confirmed_; }

 private:
  // As many go into one group of the journal, and into its confirmation.
  static constexpr size_t kUnconfirmedMax = 256;
  static constexpr absl::Duration kLookInterval = absl::Milliseconds(100);

  struct Unconfirmed {
    const std::string& id;
    std::string new_id;
    Commit commit;
  };

  bool Ending() const {
    return !failure_.ok() || console_.stop_requested() || !console_.out.good();
  }

  // No faster than the rate, and without catching up after a stall.
  void AwaitTurn(Progress& progress) {
    if (options_.rate == 0) return;
    Clock& clock = console_.clock;
    if (clock.Now() < next_turn_) ConfirmAll();
    while (clock.Now() < next_turn_ && !Ending()) {
      progress.Update(confirmed_);
      Pause(std::min(clock.Until(next_turn_), kLookInterval));
    }
    next_turn_ =
        std::max(next_turn_, clock.Now()) + absl::Seconds(1) / static_cast<int64_t>(options_.rate);
  }

  void Submit(const std::string& id) {
    DeadLetterStore& store = engine_.dead_letters();
    if (options_.action == Action::kPurge) {
      unconfirmed_.push_back({.id = id, .new_id = "", .commit = store.Purge(id)});
      return;
    }
    std::string new_id = engine_.NewDeliveryId();
    Commit commit = store.Redrive(
        id, {.new_id = new_id, .due = engine_.EngineNow(), .created = console_.clock.WallNow()});
    unconfirmed_.push_back({.id = id, .new_id = std::move(new_id), .commit = std::move(commit)});
  }

  void ConfirmAll() {
    while (!unconfirmed_.empty()) ConfirmOldest();
  }

  void ConfirmOldest() {
    const Unconfirmed& oldest = unconfirmed_.front();
    if (Status status = oldest.commit.Wait(); status.ok()) {
      ++confirmed_;
      console_.out << Line(oldest) << std::flush;
    } else {
      Complain(console_, CommandOf(options_.action),
               fmt::format("{}: {}", NameText(oldest.id), Message(status)));
      failure_.Update(std::move(status));
    }
    unconfirmed_.pop_front();
  }

  std::string Line(const Unconfirmed& changed) const {
    const bool redriven = options_.action == Action::kRedrive;
    if (!options_.json) {
      return redriven ? fmt::format("{} -> {}\n", NameText(changed.id), NameText(changed.new_id))
                      : fmt::format("{} {}\n", DoneOf(options_.action), NameText(changed.id));
    }
    std::string line;
    JsonWriter json(line);
    json.BeginObject().Field("id", changed.id);
    if (redriven) json.Field("new_id", changed.new_id);
    json.EndObject();
    return line + "\n";
  }

  const DlqCommand& options_;
  Engine& engine_;
  Console& console_;
  std::deque<Unconfirmed> unconfirmed_;  // in the order of their commits
  uint64_t confirmed_ = 0;
  Status failure_;
  absl::Duration next_turn_ = -absl::InfiniteDuration();
};

std::string Summary(const DlqCommand& options, uint64_t selected, uint64_t changed) {
  if (options.json) {
    std::string line;
    JsonWriter(line)
        .BeginObject()
        .Field("dry_run", options.dry_run)
        .Field("selected", selected)
        .Field(DoneOf(options.action), changed)
        .EndObject();
    return line + "\n";
  }
  return options.dry_run
             ? fmt::format("would {} {} dead letters; nothing was changed\n",
                           DoesOf(options.action), selected)
             : fmt::format("{} {} of {} dead letters\n", DoneOf(options.action), changed, selected);
}

Status Foresee(const DlqCommand& options, DeadLetterStore& store, Console& console) {
  ASSIGN_OR_RETURN(const std::vector<std::string> ids, Targets(options, store, console));
  for (const std::string& id : ids) {
    std::string line;
    if (options.json) {
      JsonWriter(line).BeginObject().Field("id", id).EndObject();
    } else {
      line = fmt::format("would {} {}", DoesOf(options.action), NameText(id));
    }
    console.out << line << "\n";
  }
  console.out << Summary(options, ids.size(), 0);
  return absl::OkStatus();
}

int RunChange(const DlqCommand& options, LogSink& log, Console& console) {
  const std::string_view command = CommandOf(options.action);
  StatusOr<std::unique_ptr<Engine>> engine =
      OpenExisting(options.directory, options.writer, console, log);
  if (!engine.ok()) return Fail(console, command, engine.status());
  const StatusOr<std::vector<std::string>> ids =
      Targets(options, (*engine)->dead_letters(), console);
  if (!ids.ok()) return FailOrNotFound(console, command, ids.status());
  Change change(options, **engine, console);
  const Status changed = change.Run(*ids);
  console.out << Summary(options, ids->size(), change.confirmed());
  const Status closed = (*engine)->Close();
  if (!changed.ok()) return Fail(console, command, changed);
  return closed.ok() ? kExitOk : Fail(console, command, closed);
}

}  // namespace

int RunDlq(const DlqCommand& options, Console& console) {
  const std::string_view command = CommandOf(options.action);
  ConsoleLog log(console, std::string(command));
  const bool changes = options.action == Action::kRedrive || options.action == Action::kPurge;
  if (changes && !options.dry_run) return RunChange(options, log, console);
  const StatusOr<std::unique_ptr<Engine>> engine = OpenForReading(options.directory, console, log);
  if (!engine.ok()) return Fail(console, command, engine.status());
  const auto run = changes ? Foresee : options.action == Action::kShow ? Show : List;
  const Status done = run(options, (*engine)->dead_letters(), console);
  return done.ok() ? kExitOk : FailOrNotFound(console, command, done);
}

}  // namespace holdfast
