// MetaLedger: the ledger of dead letters in a Meta, so that every instance knows which deliveries
// are not to be made any more.
//
//   /em/dlq/<delivery id> = <dead-letter topic>:<offset>
//
// The first entry of an id wins. With a membership, an entry goes under the fence of its partition:
// an owner that was replaced records nothing any more.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/dispatcher.h"
#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "meta/membership.h"
#include "meta/meta_writer.h"

namespace holdfast {

// Calls of the Meta take their time, so they are made one after the other by a thread of its own.
// Threads: any. The destructor answers what still waits with kUnavailable.
class MetaLedger final : public DeadLetterLedger {
 public:
  static constexpr size_t kWaitingMax = 10'000;  // more are kResourceExhausted, to come again

  // `meta` and `membership` are borrowed and outlive it; without `membership` (null) there is one
  // instance. `nonce`: as MetaWriter's.
  MetaLedger(MetaStore& meta, uint64_t nonce, Membership* membership);
  ~MetaLedger() override;
  MetaLedger(const MetaLedger&) = delete;
  MetaLedger& operator=(const MetaLedger&) = delete;

  void Record(const Delivery& delivery, const DeadLetterPlace& place,
              std::function<void(absl::Status)> done) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<bool> Has(std::string_view id) override;
  // By pages of the ledger: at most as many calls as there are ids, and far fewer where they stand
  // side by side.
  absl::StatusOr<std::vector<bool>> HasAll(const std::vector<std::string>& ids) override;
  // Errors: kNotFound  it is in no ledger
  StatusOr<DeadLetterPlace> Find(std::string_view id);

 private:
  struct Waiting {
    std::string id;
    SourceKey source;
    DeadLetterPlace place;
    std::function<void(absl::Status)> done;
  };
  Status Write(const Waiting& entry);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  MetaStore& meta_;
  MetaWriter writer_;
  Membership* const membership_;
  Mutex mu_;
  CondVar wake_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace holdfast
