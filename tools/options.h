// What each command was asked to do, as plain structs: filled by the command line, or by a host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "holdfast/options.h"

namespace holdfast {

struct InspectCommand {
  std::string directory;
  bool json = false;
};

struct DumpCommand {
  std::string directory;
  std::optional<uint64_t> from, to;  // LSNs, both included
  std::string type;                  // name of a record type; empty: all
  std::optional<std::string> key;    // id, topic or client of the record
  bool follow = false;
  bool payload = false;
  bool json = false;
};

struct VerifyCommand {
  std::string directory;
  bool json = false;
};

enum class ValueKind { kOffset, kDelivery, kDeadLetter };

struct GetCommand {
  std::string directory;
  ValueKind kind = ValueKind::kDelivery;
  std::string topic, client;  // of an offset
  uint64_t partition = 0;
  std::string id;  // of the others
  bool payload = false;
  bool json = false;
};

enum class ListKind { kOffsets, kDeliveries, kDeadLetters, kTasks };

struct ListCommand {
  std::string directory;
  ListKind kind = ListKind::kDeliveries;
  bool json = false;
};

struct RepairCommand {
  std::string directory;
  bool apply = false;
  absl::Duration lock_wait = EngineOptions().lock_wait;
  bool json = false;
};

// How a command opens a store for writing.
struct WriterOptions {
  IoBackend io = IoBackend::kAuto;
  Durability durability = Durability::kSynced;
  absl::Duration commit_interval;
  uint64_t segment_bytes = EngineOptions().segment_bytes;
  absl::Duration lock_wait = EngineOptions().lock_wait;
};

// `checkpoint` and `compact`.
struct MaintenanceCommand {
  enum class Kind { kCheckpoint, kCompact };
  Kind kind = Kind::kCheckpoint;
  std::string directory;
  WriterOptions writer;
  bool dry_run = false;  // of a compaction
  bool json = false;
};

struct WorkloadCommand {
  std::string directory;
  WriterOptions writer;
  uint64_t seed = 1;
  uint64_t operations = 1000;
  uint64_t threads = 1;
  std::string acks;  // empty: none written
  uint64_t event_bytes = 256;
  uint64_t pending = 1000;  // deliveries in flight to aim at, over all threads
  bool json = false;
};

struct CheckCommand {
  std::string directory;
  WriterOptions writer;
  std::string acks;
  bool json = false;
};

struct DemoCommand {
  std::string directory;  // empty: a temporary one
  WriterOptions writer;
  std::string events;  // empty: generated ones
  uint64_t seed = 1;
  uint64_t kills = 5;
  uint64_t clients = 3;
  uint64_t repeat = 0;  // times through the events; 0: as many as make 2,000 events
  // Set in the child only: do the work and report to this descriptor.
  std::optional<int> report_to;
};

using AnyCommand =
    std::variant<InspectCommand, DumpCommand, VerifyCommand, GetCommand, ListCommand, RepairCommand,
                 MaintenanceCommand, WorkloadCommand, CheckCommand, DemoCommand>;

}  // namespace holdfast
