// TcpProxy: a network between a client and a real server on the loopback, which is cut, falls
// silent, delays, or loses what the server says.
#pragma once

#include <poll.h>

#include <atomic>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "holdfast/clock.h"
#include "journal/base/mutex.h"
#include "tests/support/raw_socket.h"

namespace holdfast {

class TcpProxy {
 public:
  enum class Mode {
    kPass,
    kCut,          // connections are reset, new ones too
    kSilent,       // connections stay, and nothing passes: half open
    kLoseAnswers,  // the server hears everything, and nobody hears the server
  };

  explicit TcpProxy(uint16_t server_port) : server_port_(server_port) {
    thread_ = std::thread([this] { Run(); });
  }
  ~TcpProxy() {
    stop_.store(true);
    thread_.join();
  }
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  uint16_t port() const { return listener_.port(); }
  // Holds when it returns. `delay` holds every byte up so long, in both directions. What a mode
  // swallowed does not come later: connections that it held are reset when it ends.
  void Set(Mode mode, absl::Duration delay = absl::ZeroDuration()) {
    MutexLock lock(mu_);
    mode_ = mode;
    delay_ = delay;
    const uint64_t set = ++set_;
    while (taken_ < set) taken_over_.Wait(mu_);
  }

 private:
  static constexpr int kLookMs = 2;

  // One direction of a connection.
  struct Way {
    std::deque<std::pair<absl::Duration, std::string>> held;  // when it may pass
    bool ended = false;
  };
  struct Connection {
    RawSocket client, server;
    Way up, down;
    bool swallowed = false;  // it lost something: it is of no use once all passes again
    bool gone = false;
  };

  void Run() {
    while (!stop_.load()) {
      Mode mode;
      absl::Duration delay;
      {
        MutexLock lock(mu_);
        mode = mode_;
        delay = delay_;
        taken_ = set_;
        taken_over_.NotifyAll();
      }
      Wait();
      if (listener_.Ready()) Take(mode);
      for (Connection& each : connections_) {
        if (mode == Mode::kCut || (mode == Mode::kPass && each.swallowed)) {
          each.client.Reset();
          each.server.Reset();
          each.gone = true;
          continue;
        }
        const absl::Duration due = RealClock().Now() + delay;
        const bool silent = mode == Mode::kSilent;
        Read(each.client, each.up, due, silent, each);
        Read(each.server, each.down, due, silent || mode == Mode::kLoseAnswers, each);
        Pass(each.up, each.server);
        Pass(each.down, each.client);
        each.gone = each.up.ended && each.up.held.empty() && each.down.ended;
        if (each.down.ended && each.down.held.empty()) each.gone = true;
      }
      connections_.remove_if([](const Connection& each) { return each.gone; });
    }
  }

  // Until something comes, or for a moment.
  void Wait() {
    std::vector<pollfd> ends{{.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
    for (const Connection& each : connections_) {
      if (!each.up.ended) ends.push_back({each.client.fd(), POLLIN, 0});
      if (!each.down.ended) ends.push_back({each.server.fd(), POLLIN, 0});
    }
    poll(ends.data(), ends.size(), kLookMs);
  }
  void Take(Mode mode) {
    RawSocket client = listener_.Accept();
    if (mode == Mode::kCut) return client.Reset();
    std::optional<RawSocket> server = RawSocket::TryConnect(server_port_);
    if (!server.has_value()) return client.Reset();
    connections_.push_back({.client = std::move(client), .server = *std::move(server)});
  }
  static void Read(RawSocket& from, Way& way, absl::Duration due, bool swallow,
                   Connection& connection) {
    while (!way.ended && from.Ready()) {
      std::string bytes = from.ReadSome();
      if (bytes.empty()) {
        way.ended = true;
      } else if (swallow) {
        connection.swallowed = true;
      } else {
        way.held.emplace_back(due, std::move(bytes));
      }
    }
  }
  static void Pass(Way& way, RawSocket& to) {
    while (!way.held.empty() && way.held.front().first <= RealClock().Now()) {
      if (!to.Send(way.held.front().second)) way.ended = true;
      way.held.pop_front();
    }
    if (way.ended && way.held.empty()) to.EndSending();
  }

  const uint16_t server_port_;
  RawListener listener_;
  std::list<Connection> connections_;  // of the thread
  std::atomic<bool> stop_ = false;
  Mutex mu_;
  Mode mode_ ABSL_GUARDED_BY(mu_) = Mode::kPass;
  absl::Duration delay_ ABSL_GUARDED_BY(mu_);
  uint64_t set_ ABSL_GUARDED_BY(mu_) = 0, taken_ ABSL_GUARDED_BY(mu_) = 0;
  CondVar taken_over_;
  std::thread thread_;
};

}  // namespace holdfast
