// Connection: one client of the server: its requests one after the other, or one stream, on the
// loop's thread.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "journal/base/mutex.h"
#include "meta/http/event_stream.h"
#include "meta/http/request_head.h"
#include "meta/http/routes.h"
#include "meta/http/server.h"
#include "meta/http/tls.h"
#include "meta/http/wire.h"

namespace holdfast {

// The way into the loop for other threads. Outlives the loop, and is shut when that ends.
class Gate {
 public:
  explicit Gate(boost::asio::io_context& loop) : loop_(&loop) {}
  void Post(std::function<void()> work) {
    MutexLock lock(mu_);
    if (loop_ != nullptr) boost::asio::post(*loop_, std::move(work));
  }
  void Shut() {
    MutexLock lock(mu_);
    loop_ = nullptr;
  }

 private:
  Mutex mu_;
  boost::asio::io_context* loop_ ABSL_GUARDED_BY(mu_);
};

class Connection;

// What the connections share. Only the loop's thread touches it, but for the counters.
struct ServerCore {
  HttpServerOptions options;
  std::unique_ptr<TlsContext> tls;  // null: plain HTTP
  Routes routes;
  std::shared_ptr<Gate> gate;  // last owner: the last reply
  // An owner besides the operations under way, for the stop.
  std::unordered_set<std::shared_ptr<Connection>> connections;
  bool stopping = false;
  std::function<void()> connection_closed;
  std::atomic<uint64_t> open = 0, streams = 0, requests = 0, refused = 0, slow_readers = 0;
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  // Borrows `core`, which outlives it.
  Connection(ServerCore& core, Wire::Tcp::socket socket);

  void Start();
  // Of the request that a route has.
  void Answer(HttpResponse response);
  void BeginStream(HttpResponse head, std::shared_ptr<EventStream> events);
  // The stream may have something to say. Also called too early, before it has begun.
  void Woken();
  // Ends as soon as what has begun is done.
  void Finish();
  void Close();

 private:
  using ErrorCode = Wire::ErrorCode;
  enum class State {
    kShaking,  // hands, over TLS
    kReadingHead,
    kReadingBody,
    kHandling,
    kAnswering,
    kStreaming,
    kLingering,
    kClosed
  };

  // Closes it when the time is over, unless another limit, or none, is set before.
  void Within(absl::Duration time);
  void WithoutLimit();

  void Shaken(ErrorCode error);
  std::string_view buffered() const;
  void ReadHead();
  void ParseHead(size_t head_bytes);
  void ReadBody();
  void Dispatch();
  void RefuseError(ErrorCode error);
  void Refuse(const HttpRefusal& refusal);

  // The head of an answer; without a length the body comes as chunks, or ends with the connection.
  std::string HeadText(const HttpResponse& response, bool keep_alive,
                       std::optional<size_t> body_bytes) const;
  void AppendPiece(std::string_view bytes, std::string& out) const;
  void WriteAnswer();
  void Answered();
  void EndConnection();
  void Linger();
  void DiscardSome();

  // A reader that goes shows only in reading.
  void WatchReader();
  void SendWaiting();
  void WritePiece();
  void PieceWritten();
  void EndStream();

  ServerCore& core_;
  Wire wire_;
  boost::asio::steady_timer limit_;
  uint64_t limits_set_ = 0;
  boost::beast::flat_buffer buffer_;
  State state_ = State::kReadingHead;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  bool keep_alive_ = false, chunked_ = true, no_body_ = false, linger_ = false;
  std::string head_, body_;  // being written
  size_t discarded_ = 0;
  std::shared_ptr<EventStream> events_;  // last owner: who writes to it
  bool writing_ = false, last_piece_ = false;
};

}  // namespace holdfast
