// What each command was asked to do, as plain structs: filled by the command line, or by a host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

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

// Which dead letters are meant: those that pass every condition that is given.
struct DeadLetterFilter {
  std::optional<std::string> topic, client;  // exactly this one
  std::string reason;                        // has this in it; empty: any
  std::optional<absl::Duration> older_than;  // died at least so long ago
  bool not_redriven = false;
  std::optional<uint64_t> count_max;  // those that died first
};

struct DlqCommand {
  enum class Action { kList, kShow, kRedrive, kPurge };
  Action action = Action::kList;
  std::string directory;
  WriterOptions writer;          // to redrive and purge
  std::vector<std::string> ids;  // to show (one), redrive and purge
  bool all = false;              // to redrive and purge, without ids: what the filter takes
  DeadLetterFilter filter;
  uint64_t rate = 0;  // redrives a second, at most; 0: no limit
  bool dry_run = false;
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
  uint64_t clients = 5;
  uint64_t repeat = 0;  // times through the events; 0: as many as make 2,000 events
  // Set in the child only: do the work and report to this descriptor.
  std::optional<int> report_to;
  std::string told = "0";  // to the child: what its source knows the end of, as ToldOffsets has it
};

struct MetaServerCommand {
  std::string directory;
  WriterOptions writer;
  std::string listen = "127.0.0.1:2379";  // a numeric address and a port; port 0: a free one
  std::string name = "holdfast";
  std::string cert, key, client_ca;  // PEM files; without cert it serves plain HTTP
};

struct ClusterCommand {
  std::vector<std::string> meta;  // http://HOST:PORT of each member of the Meta
  std::string user, password;     // empty: none
  bool json = false;
};

using AnyCommand = std::variant<InspectCommand, DumpCommand, VerifyCommand, GetCommand, ListCommand,
                                RepairCommand, MaintenanceCommand, DlqCommand, WorkloadCommand,
                                CheckCommand, DemoCommand, MetaServerCommand, ClusterCommand>;

}  // namespace holdfast
