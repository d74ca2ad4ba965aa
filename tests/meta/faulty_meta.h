// FaultyMeta: a Meta whose answers get lost and whose watches break, as a test says.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string_view>
#include <utility>

#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"

namespace holdfast {

// Threads: any.
class FaultyMeta final : public MetaStore {
 public:
  enum class Fault {
    kNone,
    kUnreachable,  // not sent: UNAVAILABLE
    kLost,         // sent and lost on the way: UNKNOWN, it never happens
    kUnanswered,   // it happens, and the answer is lost: UNKNOWN
  };
  enum class Call { kGet, kList, kWatch, kWrite, kLease };

  // Borrowed.
  explicit FaultyMeta(MetaStore& meta) : meta_(&meta) {}

  // What becomes of each call, until another one is set.
  void SetFaults(std::function<Fault(Call)> faults) {
    MutexLock lock(mu_);
    faults_ = std::move(faults);
  }
  void Heal() { SetFaults({}); }
  // What each page of a list goes through before it is answered.
  void SetLists(std::function<void(MetaList&)> lists) {
    MutexLock lock(mu_);
    lists_ = std::move(lists);
  }
  // Calls go to another one from now on, as if the one before had been set up anew.
  void SwitchTo(MetaStore& meta) { meta_.store(&meta); }
  // Every watch that there is now is told to list again, and brings nothing any more.
  void CutWatches() {
    MutexLock lock(mu_);
    for (const auto& watch : watches_) watch->Cut();
  }
  // Every watch that there is now brings nothing any more, and nobody is told.
  void MuteWatches() {
    MutexLock lock(mu_);
    for (const auto& watch : watches_) watch->Close();
  }

  absl::StatusOr<MetaEntry> Get(std::string_view key, const MetaCall& call) override {
    RETURN_IF_ERROR(Before(Call::kGet));
    return meta_.load()->Get(key, call);
  }
  absl::StatusOr<MetaList> List(std::string_view prefix, const MetaPage& page) override {
    RETURN_IF_ERROR(Before(Call::kList));
    absl::StatusOr<MetaList> list = meta_.load()->List(prefix, page);
    std::function<void(MetaList&)> lists;
    {
      MutexLock lock(mu_);
      lists = lists_;
    }
    if (list.ok() && lists) lists(*list);
    return list;
  }
  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                               const MetaWrite& write) override {
    return Written(Call::kWrite, [&] { return meta_.load()->Put(key, value, write); });
  }
  absl::StatusOr<uint64_t> PutIfAbsent(std::string_view key, std::string_view value,
                                       const MetaWrite& write) override {
    return Written(Call::kWrite, [&] { return meta_.load()->PutIfAbsent(key, value, write); });
  }
  absl::StatusOr<uint64_t> CompareAndSet(std::string_view key, uint64_t revision,
                                         std::string_view value, const MetaWrite& write) override {
    return Written(Call::kWrite,
                   [&] { return meta_.load()->CompareAndSet(key, revision, value, write); });
  }
  absl::StatusOr<uint64_t> Delete(std::string_view key, const MetaCall& call) override {
    return Written(Call::kWrite, [&] { return meta_.load()->Delete(key, call); });
  }
  absl::StatusOr<uint64_t> DeleteAt(std::string_view key, uint64_t revision,
                                    const MetaCall& call) override {
    return Written(Call::kWrite, [&] { return meta_.load()->DeleteAt(key, revision, call); });
  }
  absl::StatusOr<uint64_t> Transact(const MetaTransaction& transaction,
                                    const MetaWrite& write) override {
    return Written(Call::kWrite, [&] { return meta_.load()->Transact(transaction, write); });
  }
  absl::StatusOr<std::unique_ptr<MetaWatch>> Watch(std::string_view prefix, uint64_t from_revision,
                                                   std::function<void(const MetaNotice&)> callback,
                                                   const MetaCall& call) override {
    RETURN_IF_ERROR(Before(Call::kWatch));
    auto watched = std::make_shared<Watched>(std::move(callback));
    ASSIGN_OR_RETURN(auto inner,
                     meta_.load()->Watch(
                         prefix, from_revision,
                         [watched](const MetaNotice& notice) { watched->Show(notice); }, call));
    MutexLock lock(mu_);
    watches_.push_back(watched);
    return std::make_unique<OuterWatch>(*this, watched, std::move(inner));
  }
  absl::StatusOr<MetaLease> GrantLease(absl::Duration ttl, const MetaCall& call) override {
    return Written(Call::kLease, [&] { return meta_.load()->GrantLease(ttl, call); });
  }
  absl::StatusOr<MetaLease> KeepAlive(uint64_t lease, const MetaCall& call) override {
    return Written(Call::kLease, [&] { return meta_.load()->KeepAlive(lease, call); });
  }
  absl::Status RevokeLease(uint64_t lease, const MetaCall& call) override {
    return Written(Call::kLease, [&] { return meta_.load()->RevokeLease(lease, call); });
  }

 private:
  // One watch as its owner sees it.
  class Watched {
   public:
    explicit Watched(std::function<void(const MetaNotice&)> callback)
        : callback_(std::move(callback)) {}
    void Show(const MetaNotice& notice) {
      MutexLock lock(mu_);
      if (callback_) callback_(notice);
      if (notice.kind == MetaNotice::Kind::kResync) callback_ = nullptr;
    }
    void Cut() { Show({.kind = MetaNotice::Kind::kResync, .events = {}, .reason = Unreachable()}); }
    void Close() {
      MutexLock lock(mu_);
      callback_ = nullptr;
    }

   private:
    Mutex mu_;
    std::function<void(const MetaNotice&)> callback_ ABSL_GUARDED_BY(mu_);
  };
  class OuterWatch final : public MetaWatch {
   public:
    OuterWatch(FaultyMeta& meta, std::shared_ptr<Watched> watched, std::unique_ptr<MetaWatch> inner)
        : meta_(meta), watched_(std::move(watched)), inner_(std::move(inner)) {}
    ~OuterWatch() override {
      watched_->Close();
      MutexLock lock(meta_.mu_);
      meta_.watches_.remove(watched_);
    }
    absl::Duration Staleness() const override { return inner_->Staleness(); }

   private:
    FaultyMeta& meta_;
    const std::shared_ptr<Watched> watched_;  // shared with the inner watch's callback
    const std::unique_ptr<MetaWatch> inner_;
  };

  static Status Unreachable() { return Unavailable(Detail::kIo, "no Meta can be reached"); }
  static Status Lost() { return Unavailable(Detail::kUnknownOutcome, "no answer came"); }

  Fault FaultOf(Call call) {
    std::function<Fault(Call)> faults;
    {
      MutexLock lock(mu_);
      faults = faults_;
    }
    return faults ? faults(call) : Fault::kNone;
  }
  Status Before(Call call) {
    return FaultOf(call) == Fault::kNone ? absl::OkStatus() : Unreachable();
  }
  template <typename Write>
  auto Written(Call call, const Write& write) -> decltype(write()) {
    switch (FaultOf(call)) {
      case Fault::kUnreachable:
        return Unreachable();
      case Fault::kLost:
        return Lost();
      case Fault::kUnanswered:
        (void)write();  // its answer is what gets lost
        return Lost();
      case Fault::kNone:
        break;
    }
    return write();
  }

  std::atomic<MetaStore*> meta_;
  Mutex mu_;
  std::function<Fault(Call)> faults_ ABSL_GUARDED_BY(mu_);
  std::function<void(MetaList&)> lists_ ABSL_GUARDED_BY(mu_);
  std::list<std::shared_ptr<Watched>> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
