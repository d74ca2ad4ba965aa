// StoreFactory: where the three stores live that the instances of a cluster share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "holdfast/clock.h"
#include "holdfast/meta_store.h"
#include "holdfast/nacos_api.h"
#include "holdfast/session_store.h"
#include "holdfast/subscription_store.h"
#include "holdfast/task_store.h"

namespace holdfast {

enum class SharedBackend {
  kMemory,  // private to this process; nothing survives
  // Engine::meta(), in the engine's own journal: survives, one instance. (An engine in memory keeps
  // it in memory.)
  kEmbeddedMeta,
  kRemoteMeta,  // the cluster's etcd, or an embedded Meta server
  // Beta: a Nacos that is there already. It changes one key at a time and keeps no leases:
  // instances share subscriptions and tasks, every call of the session store that needs a lease
  // fails with kUnimplemented, and `cluster` is refused. What others do is seen within about two
  // seconds. What was ever written leaves a small config for good, each task too.
  // docs/architecture/state-stores.md
  kNacosMeta,
};

// Which configs of a Nacos are meant.
struct NacosStoreOptions {
  NacosApi api = NacosApi::kV3;
  std::string context = "/nacos";  // the path that the server is deployed at
  std::string space;               // id of the namespace; empty: public
  std::string group = "holdfast";  // belongs to Holdfast alone

  bool operator==(const NacosStoreOptions&) const = default;
};

// EngineOptions::shared. Errors name the setting.
struct SharedStoreOptions {
  // Several instances work together. Never starts on a store that is private to this process.
  bool cluster = false;
  SharedBackend backend = SharedBackend::kEmbeddedMeta;
  // kRemoteMeta: http://HOST:PORT or https://HOST:PORT, all of one kind, of each member of one etcd
  // cluster, or of one embedded Meta server. kNacosMeta: the same of each server of one Nacos. An
  // open asks them once and fails if none answers.
  std::vector<std::string> meta_endpoints;
  std::string meta_user, meta_password;  // of those two only; empty: no user
  // https only: PEM files, read when the stores are made. A server is always checked: its
  // certificate is of a CA of meta_ca_file (empty: of the system), is not over, and has HOST among
  // its alternative names. meta_cert_file and meta_key_file are what this process shows of itself,
  // both or neither; a key has no passphrase.
  std::string meta_ca_file, meta_cert_file, meta_key_file;
  NacosStoreOptions nacos;  // kNacosMeta only
  SessionStoreOptions sessions;
  TaskStoreOptions tasks;
};

struct SharedStores {
  std::unique_ptr<MetaStore> meta;  // that they stand on; null: it is somebody else's
  std::unique_ptr<SubscriptionStore> subscriptions;
  std::unique_ptr<SessionStore> sessions;
  std::unique_ptr<TaskStore> tasks;
};

// Whether an engine can be opened with them.
// Errors: kInvalidArgument  a setting is missing, out of range, contradicts another, or is not
//                           supported by this version
absl::Status CheckSharedStoreOptions(const SharedStoreOptions& options);

// Errors: kInvalidArgument  as above; a file that cannot be read or holds something else; and
//                           kEmbeddedMeta: that one is an engine's, whose stores are to be taken
//                           from it
//         kUnavailable      the remote Meta does not answer
//         kFailedPrecondition  this build has no HTTP; a Nacos that does not compare what it writes
// Owns: the stores borrow `clock`.
absl::StatusOr<SharedStores> MakeSharedStores(const SharedStoreOptions& options, Clock& clock);

// The three stores on a Meta of the host's; `options.backend` and `meta_endpoints` are not looked
// at. `nonce` must differ from that of every other process and boot that writes to this Meta.
// Errors: kInvalidArgument  a limit is out of range
// Owns: the stores borrow `meta` and `clock`.
absl::StatusOr<SharedStores> MakeSharedStoresOn(MetaStore& meta, uint64_t nonce,
                                                const SharedStoreOptions& options, Clock& clock);

}  // namespace holdfast
