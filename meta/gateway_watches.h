// GatewayWatches: the watch streams of an embedded Meta server. A stream is a place in the history;
// one thread reads on for each that has room, so nothing is buffered for one that is slow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "journal/base/mutex.h"
#include "meta/gateway_answers.h"
#include "meta/gateway_requests.h"
#include "meta/http/server.h"
#include "meta/mvcc_meta.h"

namespace holdfast {

// Threads: any. The server whose streams they are is stopped before this goes.
class GatewayWatches {
 public:
  // Borrows `meta`, which outlives it. A watch that wants to be notified of progress is, each
  // `notify_interval` in which nothing else was told of it.
  GatewayWatches(MvccMeta& meta, const GatewayIdentity& identity, absl::Duration notify_interval);
  ~GatewayWatches();
  GatewayWatches(const GatewayWatches&) = delete;
  GatewayWatches& operator=(const GatewayWatches&) = delete;

  // Answers `requests`, the first ones of a stream, and what happens from then on. Needs: the
  // server's thread, inside of the handler
  void Serve(const std::vector<GatewayWatchRequest>& requests, HttpReply& reply)
      ABSL_LOCKS_EXCLUDED(mu_);
  size_t stream_count() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Watch {
    int64_t id = 0;
    GatewayWatchCreate create;
    uint64_t next = 0;  // the revision that it has to be shown next
    bool told = false;  // something, since the stream's notices were due last
  };
  struct Stream {
    std::vector<Watch> watches;                             // The thread's, once it is served.
    bool progress = false;                                  // asked for, and not answered yet
    absl::Duration notices_due = absl::InfiniteDuration();  // The thread's, once it is served.
    std::shared_ptr<HttpEventStream> events;
    bool full = true;     // Guarded by mu_: what was written last is still on its way.
    bool closed = false;  // Guarded by mu_.
  };

  void Take(const GatewayWatchRequest& request, Stream& stream, std::string& out);
  void TakeCreate(const GatewayWatchCreate& create, Stream& stream, std::string& out);
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);
  // What the stream has to be shown next; empty: nothing.
  std::string ReadOn(Stream& stream);
  // To those that want it and were told nothing since, as of `published`, up to which all is shown.
  void Notify(Stream& stream, uint64_t published, std::string& out);
  // False: the watch is over.
  bool ReadOn(Watch& watch, std::string& out);
  std::string Line(const Watch& watch, GatewayWatchFrame frame,
                   const std::vector<MvccEvent>& events) const;

  MvccMeta& meta_;
  const GatewayIdentity identity_;
  const absl::Duration notify_interval_;
  Mutex mu_;  // Never held across a call of the meta or of a stream.
  CondVar wake_;
  bool wanted_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::unordered_set<std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mu_);
  uint64_t listener_ = 0;
  std::thread thread_;
};

}  // namespace holdfast
