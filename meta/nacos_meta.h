// NacosMeta: a MetaStore whose values are configs of a Nacos. Beta: Nacos keeps configs for people
// to change, and this is what it can do beyond that.
//
//   One key at a time      a transaction is over one key; over more: kUnimplemented
//   No leases              GrantLease, and all that names a lease: kUnimplemented
//   Revisions              of one key they only rise, deleted or not, whoever writes. Over all keys
//                          they are in order for the writes of one process; those of two processes
//                          are ordered only where the one has seen what the other wrote
//   Lists                  whole, each entry as of when its page was read; entries that another
//                          process wrote meanwhile may have revisions above the list's
//   Watches                start behind a List of the same process, of the last minute; from
//                          anywhere else they begin with kResync. They show the newest of what
//                          happened to a key between two looks, not each change: so of a key that
//                          was put and deleted, only the deletion
//   Freshness              as that of Nacos's database, which a Get reads
//   Deletions              stay as tombstones: a name once used keeps a small config for ever
//   Creation               of two that create at once the database takes one. A config that
//   somebody
//                          removes by other means between a read and a write is written again:
//                          casMd5 compares with what is there, and lets pass where nothing is
//   Sizes                  a name has 255 bytes (see NacosDataId), a write kNacosWriteBytesMax
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/clock.h"
#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "meta/nacos_client.h"
#include "meta/nacos_reader.h"
#include "meta/nacos_revisions.h"
#include "meta/nacos_snapshots.h"
#include "meta/nacos_watches.h"
#include "meta/transacted_meta.h"

namespace holdfast {

// Its server takes forms of 2 MB, and a value is written in base64.
inline constexpr size_t kNacosWriteBytesMax = 1'500'000;

// Every write carries an id of its own. One that was sent and not answered is looked for by it, in
// the second half of its time: found, it is OK; another one in its place, it never was; else
// UNKNOWN. It is never sent twice.
// Threads: any. Watches are called back on one thread of its own; a callback that blocks holds up
//          the others.
class NacosMeta final : public TransactedMeta {
 public:
  // Borrows `transport` and `clock`, which outlive it. `nonce`: differs from that of every other
  // process and boot that writes to this Nacos.
  // Errors: kInvalidArgument  no endpoint; as CheckNacosPlace
  //         kFailedPrecondition  no MD5, see Md5Hex
  static absl::StatusOr<std::unique_ptr<NacosMeta>> Create(HttpTransport& transport, Clock& clock,
                                                           const NacosOptions& options,
                                                           uint64_t nonce);
  // The same with a transport of its own.
  static absl::StatusOr<std::unique_ptr<NacosMeta>> Create(std::unique_ptr<HttpTransport> transport,
                                                           Clock& clock,
                                                           const NacosOptions& options,
                                                           uint64_t nonce);

  // Whether the server heeds casMd5, asked with a config that is no key of ours. The first write
  // does so otherwise, and fails in the same way.
  // Errors: kFailedPrecondition  it does not: nothing that is written there can be conditional
  Status CheckServer(const MetaCall& call);

  absl::StatusOr<MetaEntry> Get(std::string_view key, const MetaCall& call) override;
  absl::StatusOr<MetaList> List(std::string_view prefix, const MetaPage& page) override;
  absl::StatusOr<uint64_t> Delete(std::string_view key, const MetaCall& call) override;
  absl::StatusOr<uint64_t> DeleteAt(std::string_view key, uint64_t revision,
                                    const MetaCall& call) override;
  absl::StatusOr<uint64_t> Transact(const MetaTransaction& transaction,
                                    const MetaWrite& write) override;
  absl::StatusOr<std::unique_ptr<MetaWatch>> Watch(std::string_view prefix, uint64_t from_revision,
                                                   std::function<void(const MetaNotice&)> callback,
                                                   const MetaCall& call) override;
  absl::StatusOr<MetaLease> GrantLease(absl::Duration ttl, const MetaCall& call) override;
  absl::StatusOr<MetaLease> KeepAlive(uint64_t lease, const MetaCall& call) override;
  absl::Status RevokeLease(uint64_t lease, const MetaCall& call) override;

 private:
  // What a write makes of a key.
  struct Change {
    bool there = true;  // false: deletes it
    std::string_view value;
    std::string_view request_id;
  };
  // Whether the write may go on where the key stands so.
  using Judge = std::function<Status(const NacosStanding&)>;

  NacosMeta(HttpTransport& transport, Clock& clock, const NacosOptions& options, uint64_t nonce)
      : clock_(clock),
        nonce_(nonce),
        client_(transport, clock, options),
        revisions_(clock),
        reader_(client_, revisions_),
        snapshots_(clock),
        watches_(client_, reader_, revisions_) {}

  StatusOr<uint64_t> Write(std::string_view key, const Change& change, const Judge& judge,
                           absl::Duration timeout);
  // One attempt. Errors: kConflict  the key did not stand so any more: nothing was written
  StatusOr<uint64_t> WriteOver(std::string_view key, const NacosStanding& standing,
                               const Change& change, absl::Duration deadline);
  // What became of a write that was not answered.
  StatusOr<uint64_t> Resolve(std::string_view key, const NacosRecord& written,
                             const Status& unknown, absl::Duration deadline);
  Status ProveCas(absl::Duration deadline);
  Status Publish(std::string_view data_id, std::string_view content, std::string_view cas_md5,
                 absl::Duration deadline);

  std::unique_ptr<HttpTransport> owned_;  // null: the transport is borrowed
  Clock& clock_;
  const uint64_t nonce_;
  std::atomic<uint64_t> writes_{0};
  std::atomic<bool> cas_proven_{false};
  NacosClient client_;
  NacosRevisions revisions_;
  NacosReader reader_;
  NacosSnapshots snapshots_;
  NacosWatches watches_;
};

}  // namespace holdfast
