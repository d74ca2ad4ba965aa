// Cluster: this process among those that share the partitions of some sources. Each partition has
// one owner; an owner that dies or falls silent is replaced, and what it had not finished is
// delivered by its successor.
//
//   auto engine = Engine::Open({.directory = "state", .shared = {.cluster = true,
//       .backend = SharedBackend::kRemoteMeta, .meta_endpoints = {"http://meta:2379"}}});
//   auto cluster = Cluster::Open(**engine, {.instance = "node-1", .partitions = {...}});
//   auto dispatcher = Dispatcher::Make(**engine, rng, {}, {.ledger = &(*cluster)->ledger(),
//                                                          .guard = &(*cluster)->guard()});
//   (*dispatcher)->Recover(), (*dispatcher)->Start();
//   (*cluster)->Start(**dispatcher, host);   // host.Taken(partition): read it from its cursor on
//   …
//   (*cluster)->Leave();                     // then the dispatcher goes, then the cluster
//
// A partition moves when its owner's lease ends, when its owner leaves, and when instances come or
// go and the shares become uneven; never more of them than that takes. Its fencing token rises with
// each move, and what an owner that was replaced still writes to the Meta is refused.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/clock.h"
#include "holdfast/dispatcher.h"
#include "holdfast/engine.h"
#include "holdfast/log_sink.h"
#include "holdfast/meta_store.h"
#include "holdfast/offset_store.h"

namespace holdfast {

struct ClusterOptions {
  // Not empty; the name of no other instance that lives. The same one after each restart on the
  // same directory: then what nobody took meanwhile goes on where it was.
  std::string instance;
  std::string address;  // where others reach it; kept as given, for the host's own use
  // What the instances share. All of them name the same ones: a partition falls to one of those
  // that live, and waits if that one does not name it. Every other source is nobody's here, and its
  // events are refused. None twice.
  std::vector<SourceKey> partitions;
  // How long after its last sign of life others take what an instance owned. 1 s .. 1 h; a backend
  // may raise it (etcd: whole seconds, at least 2).
  absl::Duration lease_ttl = absl::Seconds(10);
  // It stops to act this long before its lease may end. 0 .. half of lease_ttl.
  absl::Duration lease_margin = absl::Seconds(1);
  // How often the offsets and cursors that rose are made known to whoever comes next. 10 ms .. 1 h.
  absl::Duration mirror_interval = absl::Seconds(1);
  // An owner that could not make them known for two intervals refuses acknowledgements
  // (kStaleOwner) until it can. False: it goes on, and what it acknowledged meanwhile comes again
  // if the partition moves.
  bool ack_requires_mirror = true;
  // How often an instance looks who is there and what is free. 10 ms .. 1 h.
  absl::Duration balance_interval = absl::Seconds(1);
  // How long Open waits for the lease of a predecessor of the same name that was killed. 0 .. 2 h.
  absl::Duration join_wait = absl::Seconds(20);
  LogSink* log = nullptr;  // borrowed
  Clock* clock = nullptr;  // borrowed; null: RealClock()
};

// One of those that live.
struct Instance {
  std::string id;
  std::string address;
  uint64_t joined = 0;  // revision of its entry
};

// Whose a partition is, or was last.
struct Assignment {
  SourceKey partition;
  std::string instance;  // its owner; empty: it was released
  uint64_t token = 0;    // only rises
  bool alive = false;    // the owner lives, and has since it took it
};

struct OwnedPartition {
  SourceKey partition;
  uint64_t token = 0;  // of the ownership: higher than that of every owner before
  // From here on the source hands its events in again. None: from its start.
  std::optional<uint64_t> cursor;
};

// A snapshot; counters since Open.
struct ClusterStats {
  uint64_t instances = 0;      // that lived at the last look
  uint64_t partitions = 0;     // that are shared
  uint64_t owned = 0;          // by this one, and served
  uint64_t taken = 0;          // times that one was taken
  uint64_t continued = 0;      // among them: nobody had it since this one did
  uint64_t handed_over = 0;    // to another in good order
  uint64_t lost = 0;           // with the lease
  uint64_t failed_turns = 0;   // looks or moves that failed and are tried again
  uint64_t mirror_writes = 0;  // transactions of the mirror
  uint64_t mirror_failed = 0;  // likewise
  absl::Duration mirror_age;   // of what is known for sure of the partition that is furthest behind
  absl::Duration lease_left;   // see Cluster::LeaseLeft
  absl::Duration since_look;   // since who is there was last known; infinite: never
};

// The same in the text format of Prometheus (version 0.0.4); names begin with holdfast_cluster_.
std::string MetricsText(const ClusterStats& stats);

// What the host plugs in. Calls come one at a time, from the cluster's thread (or from Leave()).
// They may call the dispatcher and hold up the cluster's next look; they must not call Leave().
class ClusterHost {
 public:
  virtual ~ClusterHost() = default;
  // The partition is this instance's. Its source is to be read from `taken.cursor` on, each event
  // handed to Dispatcher::Deliver; what is known there is answered as such and not delivered again.
  virtual void Taken(const OwnedPartition& taken) = 0;
  // It is not any more: its source is not to be read here. Events are refused already.
  virtual void Left(const SourceKey& partition) = 0;
};

// Owns: its place in the cluster (a lease that its thread keeps), the mirror, the ledger.
// Threads: any, unless a function says otherwise. The destructor needs every other call to have
//          returned, and the dispatcher to be gone.
// Durable: who owns what is as durable as the Meta. A crash costs the lease; the next Open of this
//          instance goes on from its directory.
class Cluster {
 public:
  // Joins, over the Meta that the engine shares with others (EngineOptions::shared). Takes nothing
  // yet. `engine` is borrowed and outlives it.
  // Errors: kInvalidArgument  an option is out of range, or shared.backend is private to the engine
  //         kAlreadyExists    an instance of this name lives
  //         kUnavailable      the Meta
  static absl::StatusOr<std::unique_ptr<Cluster>> Open(Engine& engine,
                                                       const ClusterOptions& options);
  // The same over a Meta of the host's, which must be the same for all instances. Borrowed.
  static absl::StatusOr<std::unique_ptr<Cluster>> OpenOn(Engine& engine, MetaStore& meta,
                                                         const ClusterOptions& options);
  // Leaves, if Leave() was not called.
  virtual ~Cluster() = default;

  // For the DispatcherHost of the dispatcher on the same engine. They live as long as the cluster.
  virtual OwnershipGuard& guard() = 0;
  virtual DeadLetterLedger& ledger() = 0;

  // From now on partitions are taken and handed over. `dispatcher` and `host` are borrowed until
  // Leave() returns.
  // Needs: dispatcher.Recover() succeeded; not started before
  virtual void Start(Dispatcher& dispatcher, ClusterHost& host) = 0;
  // Stops to act for all partitions, makes known how far they have come, and frees them at once.
  // What is in flight stays in the engine. Again it does nothing.
  // Errors: kUnavailable  the Meta or the journal: what was acknowledged last comes again
  // elsewhere,
  //                       and others take the partitions when the lease ends
  virtual absl::Status Leave() = 0;

  // What this instance serves, by partition. Asks nobody.
  virtual std::vector<OwnedPartition> Owned() = 0;
  // How long its lease is surely held from now on, by its own clock; it acts for nothing once this
  // is down to lease_margin. Zero: lost, or left.
  virtual absl::Duration LeaseLeft() = 0;
  // These two ask the Meta. Errors: kUnavailable
  virtual absl::StatusOr<std::vector<Instance>> Instances() = 0;
  virtual absl::StatusOr<std::vector<Assignment>> Assignments() = 0;
  virtual ClusterStats Stats() = 0;
};

}  // namespace holdfast
