#include "holdfast/store_factory.h"

#include <algorithm>
#include <utility>

#include "journal/base/duration_range.h"
#include "journal/base/seeded_rng.h"
#include "journal/base/status.h"
#include "meta/etcd_meta.h"
#include "meta/http/tls_options.h"
#include "meta/http/transport.h"
#include "meta/memory_meta.h"
#include "meta/nacos_meta.h"
#include "stores/session_store.h"
#include "stores/subscription_store.h"
#include "stores/task_store.h"

namespace holdfast {
namespace {

Status CheckLimits(const SharedStoreOptions& options) {
  constexpr absl::Duration kDay = absl::Hours(24);
  RETURN_IF_ERROR(CheckRange("shared.sessions.agent_ttl", options.sessions.agent_ttl,
                             {absl::Seconds(1), absl::Hours(1)}));
  RETURN_IF_ERROR(CheckRange("shared.sessions.session_idle_max", options.sessions.session_idle_max,
                             {absl::Seconds(1), 30 * kDay}));
  RETURN_IF_ERROR(CheckRange("shared.tasks.pending_idle_max", options.tasks.pending_idle_max,
                             {absl::Seconds(1), 30 * kDay}));
  return CheckRange("shared.tasks.terminal_kept", options.tasks.terminal_kept,
                    {absl::Seconds(1), 365 * kDay});
}

StatusOr<std::vector<HttpEndpoint>> EndpointsOf(const SharedStoreOptions& options) {
  std::vector<HttpEndpoint> endpoints;
  for (const std::string& url : options.meta_endpoints) {
    const StatusOr<HttpEndpoint> endpoint = ParseEndpointUrl(url);
    if (!endpoint.ok()) {
      return Invalid("shared.meta_endpoints: one is http://HOST:PORT or https://HOST:PORT ({})",
                     Message(endpoint.status()));
    }
    endpoints.push_back(*endpoint);
  }
  return endpoints;
}

TlsClientOptions TlsOf(const SharedStoreOptions& options) {
  return {.ca = {.path = options.meta_ca_file, .setting = "shared.meta_ca_file"},
          .cert = {.path = options.meta_cert_file, .setting = "shared.meta_cert_file"},
          .key = {.path = options.meta_key_file, .setting = "shared.meta_key_file"}};
}

Status CheckNoTls(const SharedStoreOptions& options, std::string_view why) {
  const TlsClientOptions files = TlsOf(options);
  for (const TlsFile* const file : {&files.ca, &files.cert, &files.key}) {
    if (!file->path.empty()) return Invalid("{}: set, but {}", file->setting, why);
  }
  return absl::OkStatus();
}

// Whether the endpoints are of one kind, and the files go with it.
Status CheckTls(const SharedStoreOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<HttpEndpoint> endpoints, EndpointsOf(options));
  const bool tls = endpoints.front().tls;
  if (!std::ranges::all_of(endpoints, [&](const auto& one) { return one.tls == tls; })) {
    return Invalid("shared.meta_endpoints: http and https; all are to be of one kind");
  }
  return tls ? absl::OkStatus() : CheckNoTls(options, "shared.meta_endpoints are not https");
}

NacosPlace PlaceOf(const NacosStoreOptions& options) {
  return {.api = options.api,
          .context = options.context,
          .space = options.space,
          .group = options.group};
}

bool IsRemote(SharedBackend backend) {
  return backend == SharedBackend::kRemoteMeta || backend == SharedBackend::kNacosMeta;
}

Status CheckBackend(const SharedStoreOptions& options) {
  if (!IsRemote(options.backend)) {
    constexpr std::string_view kWhy = "shared.backend is not a remote Meta";
    if (!options.meta_user.empty()) return Invalid("shared.meta_user: set, but {}", kWhy);
    RETURN_IF_ERROR(CheckNoTls(options, kWhy));
    if (!options.meta_endpoints.empty()) return Invalid("shared.meta_endpoints: set, but {}", kWhy);
  }
  if (options.nacos != NacosStoreOptions() && options.backend != SharedBackend::kNacosMeta) {
    return Invalid("shared.nacos: set, but shared.backend is not Nacos");
  }
  switch (options.backend) {
    case SharedBackend::kMemory:
      if (!options.cluster) return absl::OkStatus();
      return Invalid(
          "shared.backend: memory is private to this process; shared.cluster needs the remote "
          "Meta");
    case SharedBackend::kEmbeddedMeta:
      if (options.cluster) {
        return Invalid(
            "shared.backend: the embedded Meta is private to this engine; shared.cluster needs the "
            "remote Meta");
      }
      return absl::OkStatus();
    case SharedBackend::kNacosMeta:
      if (options.cluster) {
        return Invalid(
            "shared.backend: Nacos keeps no leases and changes one key at a time, so nobody could "
            "tell which instance lives and owns what; shared.cluster needs the remote Meta");
      }
      if (const Status place = CheckNacosPlace(PlaceOf(options.nacos)); !place.ok()) {
        return Annotate(place, "shared.nacos");
      }
      [[fallthrough]];
    case SharedBackend::kRemoteMeta:
      if (options.meta_endpoints.empty()) {
        return Invalid("shared.meta_endpoints: empty; a remote Meta needs at least one");
      }
      return CheckTls(options);
  }
  return Invalid("shared.backend: {} is unknown", static_cast<int>(options.backend));
}

StatusOr<std::unique_ptr<HttpTransport>> TransportTo(const std::vector<HttpEndpoint>& endpoints,
                                                     const SharedStoreOptions& options) {
  HttpClientOptions http;
  if (endpoints.front().tls) http.tls = TlsOf(options);
  return NewHttpTransport(http);
}

StatusOr<std::unique_ptr<MetaStore>> ConnectEtcd(const SharedStoreOptions& options, Clock& clock) {
  EtcdOptions etcd{.user = options.meta_user, .password = options.meta_password};
  ASSIGN_OR_RETURN(etcd.endpoints, EndpointsOf(options));
  ASSIGN_OR_RETURN(std::unique_ptr<HttpTransport> transport, TransportTo(etcd.endpoints, options));
  return EtcdMeta::Create(std::move(transport), clock, etcd);
}

StatusOr<std::unique_ptr<MetaStore>> ConnectNacos(const SharedStoreOptions& options, Clock& clock) {
  NacosOptions nacos{.place = PlaceOf(options.nacos),
                     .user = options.meta_user,
                     .password = options.meta_password};
  ASSIGN_OR_RETURN(nacos.endpoints, EndpointsOf(options));
  ASSIGN_OR_RETURN(std::unique_ptr<HttpTransport> transport, TransportTo(nacos.endpoints, options));
  ASSIGN_OR_RETURN(std::unique_ptr<NacosMeta> meta,
                   NacosMeta::Create(std::move(transport), clock, nacos, EntropySeed()));
  const Status server = meta->CheckServer({});
  if (!server.ok()) return Annotate(server, "shared.meta_endpoints");
  return meta;
}

// A Meta that nobody can reach would make every call fail later, one by one.
StatusOr<std::unique_ptr<MetaStore>> ConnectRemote(const SharedStoreOptions& options,
                                                   Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<MetaStore> meta, options.backend == SharedBackend::kNacosMeta
                                                        ? ConnectNacos(options, clock)
                                                        : ConnectEtcd(options, clock));
  // On Nacos it reads all of it, after which the revisions of this process are above what is there.
  const Status asked = meta->List("/em/", {.limit = 1}).status();
  if (!asked.ok()) return Annotate(asked, "shared.meta_endpoints");
  return meta;
}

}  // namespace

Status CheckSharedStoreOptions(const SharedStoreOptions& options) {
  RETURN_IF_ERROR(CheckLimits(options));
  return CheckBackend(options);
}

StatusOr<SharedStores> MakeSharedStores(const SharedStoreOptions& options, Clock& clock) {
  RETURN_IF_ERROR(CheckSharedStoreOptions(options));
  if (options.backend == SharedBackend::kEmbeddedMeta) {
    return Invalid(
        "shared.backend: the embedded Meta is an engine's; open one and take its stores");
  }
  if (IsRemote(options.backend)) {
    ASSIGN_OR_RETURN(std::unique_ptr<MetaStore> remote, ConnectRemote(options, clock));
    ASSIGN_OR_RETURN(SharedStores stores,
                     MakeSharedStoresOn(*remote, EntropySeed(), options, clock));
    stores.meta = std::move(remote);
    return stores;
  }
  // Nobody else ever writes to it, so any nonce is unique.
  constexpr uint64_t kNonce = 1;
  auto meta = std::make_unique<MemoryMeta>(clock, kNonce);
  ASSIGN_OR_RETURN(SharedStores stores, MakeSharedStoresOn(*meta, kNonce, options, clock));
  stores.meta = std::move(meta);
  return stores;
}

StatusOr<SharedStores> MakeSharedStoresOn(MetaStore& meta, uint64_t nonce,
                                          const SharedStoreOptions& options, Clock& clock) {
  RETURN_IF_ERROR(CheckLimits(options));
  // Each writer has ids of its own.
  SeededRng nonces(nonce);
  return SharedStores{
      .meta = nullptr,
      .subscriptions = std::make_unique<MetaSubscriptionStore>(meta, nonces.Next(), clock),
      .sessions = std::make_unique<MetaSessionStore>(meta, nonces.Next(), options.sessions),
      .tasks = std::make_unique<MetaTaskStore>(meta, nonces.Next(), options.tasks, clock)};
}

}  // namespace holdfast
