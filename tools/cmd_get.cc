#include "journal/format/records_text.h"
#include "tools/command.h"
#include "tools/store_access.h"
#include "tools/value_printer.h"

namespace holdfast {
namespace {

constexpr std::string_view kCommand = "get";

int Missing(Console& console, std::string_view what) {
  Complain(console, kCommand, what);
  return kExitNotFound;
}

int GetOffset(const GetCommand& options, Engine& engine, Console& console) {
  const OffsetKey key{options.topic, options.client, options.partition};
  StatusOr<StoredOffset> offset = engine.offsets().Read(key);
  if (offset.status().code() == StatusCode::kNotFound) {
    return Missing(console, "no offset was ever written for this topic, client and partition");
  }
  if (!offset.ok()) return Fail(console, kCommand, offset.status());
  console.out << OffsetLine(*offset, {.json = options.json});
  return kExitOk;
}

int GetDelivery(const GetCommand& options, Engine& engine, Console& console) {
  StatusOr<StoredDelivery> stored = engine.deliveries().Get(options.id);
  if (stored.status().code() == StatusCode::kNotFound) {
    return Missing(console, fmt::format("no live delivery {}", NameText(options.id)));
  }
  if (!stored.ok()) return Fail(console, kCommand, stored.status());
  if (options.payload && !options.json) {
    console.out << stored->delivery.event;
  } else {
    console.out << DeliveryLine(
        *stored,
        {.json = options.json, .event = options.payload, .engine_now = engine.EngineNow()});
  }
  return kExitOk;
}

int GetDeadLetter(const GetCommand& options, Engine& engine, Console& console) {
  StatusOr<StoredDeadLetter> stored = engine.dead_letters().Get(options.id);
  if (stored.status().code() == StatusCode::kNotFound) {
    return Missing(console, fmt::format("no dead letter {}", NameText(options.id)));
  }
  if (!stored.ok()) return Fail(console, kCommand, stored.status());
  if (options.payload && !options.json) {
    console.out << stored->dead_letter.event;
  } else {
    console.out << DeadLetterLine(*stored, {.json = options.json, .event = options.payload});
  }
  return kExitOk;
}

}  // namespace

int RunGet(const GetCommand& options, Console& console) {
  ConsoleLog log(console, std::string(kCommand));
  StatusOr<std::unique_ptr<Engine>> engine =
      OpenForReading(options.directory, console, log);
  if (!engine.ok()) return Fail(console, kCommand, engine.status());
  switch (options.kind) {
    case ValueKind::kOffset:
      return GetOffset(options, **engine, console);
    case ValueKind::kDelivery:
      return GetDelivery(options, **engine, console);
    case ValueKind::kDeadLetter:
      break;
  }
  return GetDeadLetter(options, **engine, console);
}

}  // namespace holdfast
