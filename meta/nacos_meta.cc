#include "meta/nacos_meta.h"

#include <algorithm>
#include <utility>

#include "meta/http/outcome.h"
#include "meta/md5.h"
#include "meta/meta_terms.h"
#include "meta/value_envelope.h"

namespace holdfast {
namespace {

// Not the name of any key.
constexpr std::string_view kProbe = "holdfast.probe";

Status NotOnNacos(std::string_view what) {
  return MakeStatus(StatusCode::kUnimplemented, Detail::kNone,
                    fmt::format("nacos: {}; an etcd or a Meta server can do it", what));
}

Status CheckKey(std::string_view key) {
  RETURN_IF_ERROR(CheckMetaKey(key));
  const size_t bytes = NacosDataId(key).size();
  if (bytes <= kNacosDataIdBytesMax) return absl::OkStatus();
  return Exhausted(Detail::kLimit, "key: {} bytes as the name of a config, Nacos takes {}", bytes,
                   kNacosDataIdBytesMax);
}

bool Holds(const MetaCondition& condition, const NacosStanding& standing) {
  switch (condition.must) {
    case MetaCondition::Must::kBeAbsent:
      return !standing.there();
    case MetaCondition::Must::kExist:
      return standing.there();
    case MetaCondition::Must::kStandAt:
      return standing.there() && standing.revision() == condition.revision;
  }
  return false;
}

Status CheckTransaction(const MetaTransaction& transaction, const MetaWrite& write) {
  if (write.request_id.size() > kRequestIdBytesMax) {
    return Invalid("request_id: {} bytes, at most {} are allowed", write.request_id.size(),
                   kRequestIdBytesMax);
  }
  const std::string* only = nullptr;
  bool several = false, leased = false;
  size_t bytes = 0;
  for (const MetaChange& change : transaction.changes) {
    RETURN_IF_ERROR(CheckKey(change.key));
    several = several || only != nullptr;
    if (only != nullptr && *only == change.key) {
      return Invalid("a transaction changes one key twice");
    }
    only = &change.key;
    leased = leased || change.lease != 0;
    bytes += change.key.size() + change.value.size();
  }
  for (const MetaCondition& condition : transaction.conditions) {
    RETURN_IF_ERROR(CheckKey(condition.key));
    several = several || (only != nullptr && *only != condition.key);
    only = &condition.key;
  }
  if (std::max(transaction.changes.size(), transaction.conditions.size()) > kMetaChangesMax ||
      bytes > kNacosWriteBytesMax) {
    return Exhausted(Detail::kLimit, "a write: at most {} bytes and {} changes",
                     kNacosWriteBytesMax, kMetaChangesMax);
  }
  if (several) return NotOnNacos("it changes one key at a time, and this is about several");
  if (leased) return NotOnNacos("it keeps no leases, so nothing can go with one");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<NacosMeta>> NacosMeta::Create(HttpTransport& transport, Clock& clock,
                                                             const NacosOptions& options,
                                                             uint64_t nonce) {
  if (options.endpoints.empty()) return Invalid("nacos: no endpoint is given");
  const Status place = CheckNacosPlace(options.place);
  if (!place.ok()) return Annotate(place, "nacos");
  if (options.page_entries == 0) return Invalid("nacos: a page has at least one entry");
  RETURN_IF_ERROR(Md5Hex("").status());
  return std::unique_ptr<NacosMeta>(new NacosMeta(transport, clock, options, nonce));
}

absl::StatusOr<std::unique_ptr<NacosMeta>> NacosMeta::Create(
    std::unique_ptr<HttpTransport> transport, Clock& clock, const NacosOptions& options,
    uint64_t nonce) {
  ASSIGN_OR_RETURN(std::unique_ptr<NacosMeta> meta, Create(*transport, clock, options, nonce));
  meta->owned_ = std::move(transport);
  return meta;
}

Status NacosMeta::CheckServer(const MetaCall& call) {
  return ProveCas(clock_.Now() + call.timeout);
}

absl::StatusOr<MetaEntry> NacosMeta::Get(std::string_view key, const MetaCall& call) {
  RETURN_IF_ERROR(CheckKey(key));
  ASSIGN_OR_RETURN(const NacosStanding standing, reader_.Read(key, clock_.Now() + call.timeout));
  if (!standing.there()) return NotFound("no such key");
  return ToMetaEntry(key, standing);
}

absl::StatusOr<MetaList> NacosMeta::List(std::string_view prefix, const MetaPage& page) {
  NacosSnapshots::Ptr snapshot = snapshots_.Find(prefix, page.revision);
  if (page.revision == 0) {
    ASSIGN_OR_RETURN(NacosSnapshot read,
                     reader_.ReadAll(prefix, nullptr, clock_.Now() + page.timeout));
    snapshot = snapshots_.Keep(std::move(read));
  }
  if (snapshot == nullptr) {
    return MetaConflict("no list of this process is of that revision, or it was forgotten");
  }
  MetaList list{.revision = snapshot->revision};
  for (auto at = snapshot->standings.lower_bound(std::string(std::max(prefix, page.after)));
       at != snapshot->standings.end() && at->first.starts_with(prefix); ++at) {
    if (!at->second.there() || (!page.after.empty() && at->first <= page.after)) continue;
    list.more = page.limit != 0 && list.entries.size() == page.limit;
    if (list.more) break;
    list.entries.push_back(ToMetaEntry(at->first, at->second));
  }
  return list;
}

absl::StatusOr<uint64_t> NacosMeta::Delete(std::string_view key, const MetaCall& call) {
  RETURN_IF_ERROR(CheckKey(key));
  return Write(
      key, {.there = false},
      [](const NacosStanding& standing) {
        return standing.there() ? absl::OkStatus() : NotFound("no such key");
      },
      call.timeout);
}

absl::StatusOr<uint64_t> NacosMeta::DeleteAt(std::string_view key, uint64_t revision,
                                             const MetaCall& call) {
  RETURN_IF_ERROR(CheckKey(key));
  return Write(
      key, {.there = false},
      [revision](const NacosStanding& standing) -> Status {
        if (!standing.there()) return NotFound("no such key");
        if (standing.revision() == revision) return absl::OkStatus();
        return MetaConflict("the key stands at another revision");
      },
      call.timeout);
}

absl::StatusOr<uint64_t> NacosMeta::Transact(const MetaTransaction& transaction,
                                             const MetaWrite& write) {
  RETURN_IF_ERROR(CheckTransaction(transaction, write));
  const Judge judge = [&transaction](const NacosStanding& standing) {
    const bool hold = std::ranges::all_of(
        transaction.conditions,
        [&standing](const MetaCondition& each) { return Holds(each, standing); });
    return hold ? absl::OkStatus() : MetaConflict("a condition does not hold");
  };
  const absl::Duration deadline = clock_.Now() + write.timeout;
  if (!transaction.changes.empty()) {
    const MetaChange& change = transaction.changes.front();
    const bool put = change.kind == MetaChange::Kind::kPut;
    bool nothing_to_delete = false;
    const StatusOr<uint64_t> written = Write(
        change.key, {.there = put, .value = change.value, .request_id = write.request_id},
        [&](const NacosStanding& standing) {
          RETURN_IF_ERROR(judge(standing));
          nothing_to_delete = !put && !standing.there();
          return nothing_to_delete ? NotFound("nothing to delete") : absl::OkStatus();
        },
        write.timeout);
    if (written.ok() || !nothing_to_delete) return written;
  } else if (!transaction.conditions.empty()) {
    ASSIGN_OR_RETURN(const NacosStanding standing,
                     reader_.Read(transaction.conditions.front().key, deadline));
    RETURN_IF_ERROR(judge(standing));
  }
  return revisions_.Settle(deadline);
}

absl::StatusOr<std::unique_ptr<MetaWatch>> NacosMeta::Watch(
    std::string_view prefix, uint64_t from_revision,
    std::function<void(const MetaNotice&)> callback, const MetaCall&) {
  if (from_revision == 0) return Invalid("from_revision: 0, at least 1 is needed");
  return watches_.Watch(prefix, snapshots_.Find(prefix, from_revision - 1), std::move(callback));
}

absl::StatusOr<MetaLease> NacosMeta::GrantLease(absl::Duration, const MetaCall&) {
  return NotOnNacos("it keeps no leases");
}
absl::StatusOr<MetaLease> NacosMeta::KeepAlive(uint64_t, const MetaCall&) {
  return NotOnNacos("it keeps no leases");
}
absl::Status NacosMeta::RevokeLease(uint64_t, const MetaCall&) {
  return NotOnNacos("it keeps no leases");
}

StatusOr<uint64_t> NacosMeta::Write(std::string_view key, const Change& change, const Judge& judge,
                                    absl::Duration timeout) {
  const absl::Duration deadline = clock_.Now() + timeout;
  RETURN_IF_ERROR(ProveCas(deadline));
  for (;;) {
    ASSIGN_OR_RETURN(const NacosStanding standing, reader_.Read(key, deadline));
    RETURN_IF_ERROR(judge(standing));
    const StatusOr<uint64_t> written = WriteOver(key, standing, change, deadline);
    if (!absl::IsAborted(written.status())) return written;
    if (clock_.Now() >= deadline) {
      return Unavailable(Detail::kNone, "nacos: the key is being changed all the time");
    }
  }
}

StatusOr<uint64_t> NacosMeta::WriteOver(std::string_view key, const NacosStanding& standing,
                                        const Change& change, absl::Duration deadline) {
  const NacosRevisions::Write write = revisions_.Begin();
  const NacosRecord* const before = standing.record.has_value() ? &*standing.record : nullptr;
  const bool goes_on = standing.there();
  NacosRecord record{.there = change.there, .revision = write.revision()};
  if (change.there) {
    record.create_revision = goes_on ? before->create_revision : record.revision;
    record.version = goes_on ? before->version + 1 : 1;
  }
  record.writes = before == nullptr ? 1 : before->writes + 1;
  record.write_id =
      fmt::format("{:016x}-{}", nonce_, writes_.fetch_add(1, std::memory_order_relaxed));
  record.request_id = change.request_id;
  record.value = change.value;
  const absl::Duration now = clock_.Now();
  const Status published = Publish(NacosDataId(key), EncodeNacosRecord(record), standing.md5,
                                   now + (deadline - now) / 2);
  if (MetaResultOf(published) == MetaResult::kUnknown) {
    return Resolve(key, record, published, deadline);
  }
  RETURN_IF_ERROR(published);
  revisions_.Saw(key, record.revision);
  return record.revision;
}

StatusOr<uint64_t> NacosMeta::Resolve(std::string_view key, const NacosRecord& written,
                                      const Status& unknown, absl::Duration deadline) {
  const StatusOr<NacosStanding> found = reader_.Read(key, deadline);
  if (!found.ok() || !found->record.has_value()) return unknown;
  if (found->record->write_id == written.write_id) return found->revision();
  // Its place in the sequence is taken, and the content that it wanted to replace never comes back.
  if (found->record->writes == written.writes) return MetaConflict("another write came first");
  return unknown;
}

Status NacosMeta::ProveCas(absl::Duration deadline) {
  if (cas_proven_) return absl::OkStatus();
  // The second of two writes to where nothing may be must be refused.
  for (int write = 1; write <= 2; ++write) {
    const Status published = Publish(kProbe, "holdfast", kNacosAbsentMd5, deadline);
    cas_proven_ = absl::IsAborted(published);
    if (cas_proven_) return absl::OkStatus();
    if (!published.ok()) return AsRead(published);
  }
  return WrongState(Detail::kNone,
                    "nacos: the server does not heed casMd5, so no write can be conditional: it is "
                    "too old, or something on the way drops that header");
}

Status NacosMeta::Publish(std::string_view data_id, std::string_view content,
                          std::string_view cas_md5, absl::Duration deadline) {
  const NacosPlace& place = client_.options().place;
  ASSIGN_OR_RETURN(const HttpResponse response,
                   client_.Call(NacosPublish(place, data_id, content, cas_md5),
                                NacosClient::Kind::kWrite, deadline));
  return ReadNacosPublished(place.api, response);
}

}  // namespace holdfast
