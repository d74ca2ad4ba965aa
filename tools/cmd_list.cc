#include "tools/command.h"
#include "tools/store_access.h"
#include "tools/value_printer.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "list";

Status ListTasks(TaskStore& tasks, const ValueForm& form, Console& console) {
  TaskQuery query;
  std::string page_token;
  do {
    query.page_token = page_token;
    ASSIGN_OR_RETURN(TaskPage page, tasks.List(query));
    for (const TaskRecord& task : page.tasks) console.out << TaskLine(task, form);
    page_token = std::move(page.next_page_token);
  } while (!page_token.empty());
  return absl::OkStatus();
}

Status ListAll(const ListCommand& options, Engine& engine, Console& console) {
  const ValueForm form{.json = options.json, .engine_now = engine.EngineNow()};
  uint64_t listed = 0;
  switch (options.kind) {
    case ListKind::kOffsets:
      for (const StoredOffset& offset : engine.offsets().ReadAll()) {
        console.out << OffsetLine(offset, form);
      }
      return absl::OkStatus();
    case ListKind::kDeliveries: {
      Progress progress(console, "deliveries", engine.deliveries().Count());
      return engine.deliveries().Iterate([&](const StoredDelivery& delivery) {
        console.out << DeliveryLine(delivery, form);
        progress.Update(++listed);
        return console.out.good();
      });
    }
    case ListKind::kDeadLetters: {
      Progress progress(console, "dead letters", engine.dead_letters().Count());
      return engine.dead_letters().Iterate([&](const StoredDeadLetter& dead_letter) {
        console.out << DeadLetterLine(dead_letter, form);
        progress.Update(++listed);
        return console.out.good();
      });
    }
    case ListKind::kTasks:
      break;
  }
  return ListTasks(engine.tasks(), form, console);
}

}  // namespace

int RunList(const ListCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  StatusOr<std::unique_ptr<Engine>> engine =
      OpenForReading(options.directory, console, log);
  if (!engine.ok()) return Fail(console, kCommand, engine.status());
  const Status listed = ListAll(options, **engine, console);
  return listed.ok() ? kExitOk : Fail(console, kCommand, listed);
}

}  // namespace holdfast
