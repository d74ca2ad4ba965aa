#include "meta/gateway_watches.h"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

constexpr size_t kEventsMax = 100;  // About so many in a frame; whole revisions in any case.
constexpr char kDuplicateId[] = "mvcc: duplicate watch ID provided on the WatchStream";
constexpr char kEmptyRange[] = "mvcc: watcher range is empty";

}  // namespace

GatewayWatches::GatewayWatches(MvccMeta& meta, const GatewayIdentity& identity,
                               absl::Duration notify_interval)
    : meta_(meta), identity_(identity), notify_interval_(notify_interval) {
  listener_ = meta_.AddListener([this] { Wake(); });
  thread_ = std::thread([this] { Loop(); });
}

GatewayWatches::~GatewayWatches() {
  meta_.RemoveListener(listener_);
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

void GatewayWatches::Serve(const std::vector<GatewayWatchRequest>& requests, HttpReply& reply) {
  const auto stream = std::make_shared<Stream>();
  HttpResponse head{.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = {}};
  for (const GatewayWatchRequest& request : requests) Take(request, *stream, head.body);
  const auto wants_notices = [](const Watch& watch) { return watch.create.progress_notify; };
  if (std::ranges::any_of(stream->watches, wants_notices)) {
    stream->notices_due = meta_.clock().Now() + notify_interval_;
  }
  stream->events = reply.Stream(std::move(head));
  {
    MutexLock lock(mu_);
    streams_.insert(stream);
  }
  // The first drain is that of the head.
  stream->events->OnDrained([this, stream] {
    {
      MutexLock lock(mu_);
      stream->full = false;
    }
    Wake();
  });
  stream->events->OnClosed([this, stream] {
    MutexLock lock(mu_);
    stream->closed = true;
    streams_.erase(stream);
  });
}

size_t GatewayWatches::stream_count() {
  MutexLock lock(mu_);
  return streams_.size();
}

void GatewayWatches::Take(const GatewayWatchRequest& request, Stream& stream, std::string& out) {
  if (request.create.has_value()) TakeCreate(*request.create, stream, out);
  if (request.cancel.has_value()) {
    const auto found = std::ranges::find(stream.watches, *request.cancel, &Watch::id);
    if (found != stream.watches.end()) {
      out += Line(*found, {.id = found->id, .canceled = true}, {});
      stream.watches.erase(found);
    }
  }
  if (request.progress) stream.progress = true;
}

void GatewayWatches::TakeCreate(const GatewayWatchCreate& create, Stream& stream,
                                std::string& out) {
  Watch watch{.id = create.id.value_or(0), .create = create};
  const auto taken = [&](int64_t id) {
    return std::ranges::find(stream.watches, id, &Watch::id) != stream.watches.end();
  };
  const auto refuse = [&](const char* reason) {
    out += Line(watch, {.id = -1, .created = true, .canceled = true, .cancel_reason = reason}, {});
  };
  if (!create.range.has_value()) return refuse(kEmptyRange);
  if (create.id.has_value() && taken(*create.id)) return refuse(kDuplicateId);
  while (taken(watch.id)) ++watch.id;
  watch.next = create.from != 0 ? create.from : meta_.published_revision() + 1;
  out += Line(watch, {.id = watch.id, .created = true}, {});
  stream.watches.push_back(std::move(watch));
}

void GatewayWatches::Wake() {
  MutexLock lock(mu_);
  wanted_ = true;
  wake_.NotifyOne();
}

void GatewayWatches::Loop() {
  // Of the streams that have room; those that have none wake it when they do.
  absl::Duration notices_due = absl::InfiniteDuration();
  while (true) {
    std::vector<std::shared_ptr<Stream>> ready;
    {
      MutexLock lock(mu_);
      while (!wanted_ && !stopping_ && meta_.clock().Now() < notices_due) {
        if (notices_due == absl::InfiniteDuration()) {
          wake_.Wait(mu_);
        } else {
          wake_.WaitFor(mu_, meta_.clock().Until(notices_due));
        }
      }
      if (stopping_) return;
      wanted_ = false;
      for (const auto& stream : streams_) {
        if (!stream->full) ready.push_back(stream);
      }
    }
    notices_due = absl::InfiniteDuration();
    for (const auto& stream : ready) {
      const std::string text = ReadOn(*stream);
      if (text.empty()) {
        notices_due = std::min(notices_due, stream->notices_due);
        continue;
      }
      {
        MutexLock lock(mu_);
        stream->full = true;
      }
      // One that is closed is taken out by its own callback.
      stream->events->Write(text);
    }
  }
}

std::string GatewayWatches::ReadOn(Stream& stream) {
  std::string out;
  const uint64_t published = meta_.published_revision();
  std::erase_if(stream.watches, [&](Watch& watch) { return !ReadOn(watch, out); });
  if (stream.progress && out.empty() &&
      std::ranges::all_of(stream.watches,
                          [&](const Watch& watch) { return watch.next > published; })) {
    stream.progress = false;
    out = GatewayWatchLine(identity_, published, {.id = -1}, {}, {});
  }
  if (meta_.clock().Now() >= stream.notices_due) Notify(stream, published, out);
  return out;
}

void GatewayWatches::Notify(Stream& stream, uint64_t published, std::string& out) {
  stream.notices_due = meta_.clock().Now() + notify_interval_;
  for (Watch& watch : stream.watches) {
    const bool told = std::exchange(watch.told, false);
    if (!watch.create.progress_notify || told || watch.next <= published) continue;
    out += GatewayWatchLine(identity_, published, {.id = watch.id}, {}, watch.create);
  }
}

bool GatewayWatches::ReadOn(Watch& watch, std::string& out) {
  const size_t before = out.size();
  while (out.size() == before && watch.next <= meta_.published_revision()) {
    const StatusOr<MvccState::Changes> changes =
        meta_.ChangesOf(*watch.create.range, watch.next, kEventsMax);
    if (RefusalOf(changes.status()) == MvccRefusal::kCompacted) {
      out += Line(
          watch, {.id = watch.id, .canceled = true, .compact_revision = meta_.history_begin()}, {});
      return false;
    }
    if (!changes.ok()) {
      out += Line(watch, {.id = watch.id, .canceled = true, .cancel_reason = "unavailable"}, {});
      return false;
    }
    std::vector<MvccEvent> events = changes->events;
    std::erase_if(events, [&](const MvccEvent& event) {
      return event.now->deleted() ? watch.create.no_deletes : watch.create.no_puts;
    });
    watch.next = std::max(watch.next, changes->next);
    if (events.empty()) continue;
    watch.told = true;
    out += Line(watch, {.id = watch.id}, events);
  }
  return true;
}

std::string GatewayWatches::Line(const Watch& watch, GatewayWatchFrame frame,
                                 const std::vector<MvccEvent>& events) const {
  return GatewayWatchLine(identity_, frame.compact_revision != 0 ? 0 : meta_.published_revision(),
                          frame, events, watch.create);
}

}  // namespace holdfast
