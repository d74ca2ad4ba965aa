#include "meta/etcd_watches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "meta/meta_terms.h"

namespace holdfast {

namespace {
// Of a stream that says nothing: how long the head of its answer may take.
constexpr absl::Duration kOpenTimeout = absl::Seconds(5);
// A frame holds one revision at least, whose transaction is bounded.
constexpr size_t kLineBytesMax = size_t{64} << 20;
}  // namespace

EtcdWatches::~EtcdWatches() {
  std::thread ending;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    Renew();
    ending = std::move(thread_);
  }
  if (ending.joinable()) ending.join();
}

std::unique_ptr<MetaWatch> EtcdWatches::Watch(std::string_view prefix, uint64_t from_revision,
                                              std::function<void(const MetaNotice&)> callback) {
  auto watcher = std::make_shared<MvccWatcher>(KeyRange::Prefix(prefix), from_revision,
                                               std::move(callback), client_.clock().Now());
  MutexLock lock(mu_);
  const uint64_t id = next_id_++;
  watchers_.emplace(id, watcher);
  Renew();
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  return std::make_unique<FollowerHandle>(std::move(watcher), client_.clock(),
                                          [this, id] { Remove(id); });
}

void EtcdWatches::Remove(uint64_t id) {
  MutexLock lock(mu_);
  if (watchers_.erase(id) != 0) Renew();
}

void EtcdWatches::Renew() {
  renew_ = true;
  if (open_ != nullptr) open_->Close();
  changed_.NotifyAll();
}

void EtcdWatches::Run() {
  absl::Duration pause = absl::ZeroDuration();
  while (true) {
    Watchers watchers;
    {
      MutexLock lock(mu_);
      const absl::Duration until = client_.clock().Now() + pause;
      while (!stopping_ && (watchers_.empty() || client_.clock().Now() < until)) {
        if (watchers_.empty()) {
          changed_.Wait(mu_);
        } else {
          changed_.WaitFor(mu_, client_.clock().Until(until));
        }
      }
      if (stopping_) return;
      watchers = watchers_;
      renew_ = false;
    }
    if (Serve(watchers)) {
      pause = absl::ZeroDuration();
    } else {
      pause = std::clamp(pause * 2, options_.watch_retry_min, options_.watch_retry_max);
    }
  }
}

bool EtcdWatches::Serve(const Watchers& watchers) {
  std::vector<EtcdWatchRequest> requests;
  for (const auto& [id, watcher] : watchers) {
    requests.push_back({.id = id, .range = watcher->range(), .from = watcher->next()});
  }
  StatusOr<HttpStreamStart> start =
      client_.Open(EtcdWatchBody(requests), client_.clock().Now() + kOpenTimeout);
  if (!start.ok()) return false;
  {
    MutexLock lock(mu_);
    if (renew_) return true;
    open_ = start->stream.get();
  }
  bool served = false, go_on = true;
  std::string unread;
  while (go_on) {
    const StatusOr<std::string> more = start->stream->Read(options_.watch_idle_max);
    if (!more.ok()) {
      // Silence may be that of a server without changes, or without a network.
      if (absl::IsDeadlineExceeded(more.status())) client_.AvoidEndpoint();
      served = served || absl::IsDeadlineExceeded(more.status());
      break;
    }
    unread += *more;
    size_t begin = 0;
    for (size_t end; go_on && (end = unread.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      go_on = Take(watchers, std::string_view(unread).substr(begin, end - begin));
      served = served || go_on;
    }
    unread.erase(0, begin);
    if (unread.size() > kLineBytesMax) break;
  }
  MutexLock lock(mu_);
  open_ = nullptr;
  return served || renew_;
}

bool EtcdWatches::Take(const Watchers& watchers, std::string_view line) {
  const StatusOr<EtcdWatchFrame> frame = ReadEtcdWatchFrame(line);
  if (!frame.ok()) {
    if (absl::IsUnauthenticated(frame.status())) client_.ForgetToken();
    client_.AvoidEndpoint();
    return false;
  }
  if (frame->progress) {
    const absl::Duration now = client_.clock().Now();
    for (const auto& [id, watcher] : watchers) watcher->CaughtUp(now);
    return true;
  }
  if (frame->canceled && frame->cancel_reason.find("invalid auth token") != std::string::npos) {
    client_.ForgetToken();
    return false;
  }
  if (frame->canceled && !frame->id.has_value()) {
    // It refuses a watch without saying which, as where the user may not read.
    for (const auto& [id, watcher] : watchers) TakeCancel(id, *watcher, *frame);
    return false;
  }
  const auto found = watchers.find(frame->id.value_or(0));
  if (found == watchers.end()) return true;
  if (frame->canceled) {
    TakeCancel(found->first, *found->second, *frame);
  } else {
    TakeEvents(*found->second, *frame);
  }
  return true;
}

void EtcdWatches::TakeEvents(MvccWatcher& watcher, const EtcdWatchFrame& frame) {
  MetaNotice notice;
  // A server may repeat itself; what was shown is not shown again.
  for (const MvccEvent& event : frame.events) {
    const uint64_t revision = event.now->mod_revision;
    if (revision < watcher.next() || revision < notice.revision) continue;
    notice.revision = revision;
    notice.events.push_back(ToMetaEvent(event));
  }
  if (notice.events.empty()) return;
  watcher.Call(notice);
  watcher.Advance(notice.revision + 1);
  watcher.CaughtUp(client_.clock().Now());
}

void EtcdWatches::TakeCancel(uint64_t id, MvccWatcher& watcher, const EtcdWatchFrame& frame) {
  const bool compacted = frame.compact_revision != 0;
  watcher.Call({.kind = MetaNotice::Kind::kResync,
                .events = {},
                .revision = compacted ? frame.compact_revision + 1 : 0,
                .reason = compacted ? Refuse(MvccRefusal::kCompacted)
                                    : WrongState(Detail::kNone, "etcd ended the watch: {}",
                                                 frame.cancel_reason)});
  MutexLock lock(mu_);
  watchers_.erase(id);
}

}  // namespace holdfast
