// RawSocket and RawListener: bytes over TCP as a hostile peer sends them, bounded in time.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "journal/base/check.h"
#include "journal/base/seeded_rng.h"

namespace holdfast {

inline constexpr int kSocketPatienceMs =
    20'000;  // A peer that says nothing so long fails the test.

inline sockaddr_in LoopbackAddress(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Owns one end of a connection.
class RawSocket {
 public:
  static RawSocket Connect(uint16_t port) {
    RawSocket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = LoopbackAddress(port);
    CHECK(connect(made.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return made;
  }
  // None: nobody listens.
  static std::optional<RawSocket> TryConnect(uint16_t port) {
    RawSocket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = LoopbackAddress(port);
    if (connect(made.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return std::nullopt;
    }
    return made;
  }
  explicit RawSocket(int fd) : fd_(fd) {
    CHECK(fd_ >= 0);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket() { Close(); }

  // False: the peer has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // The next bytes; empty at the end, when the connection was reset, or when patience is over.
  std::string ReadSome() {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kSocketPatienceMs) <= 0) return {};
    std::string bytes(size_t{64} << 10, '\0');
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    reset_ = got < 0 && errno == ECONNRESET;
    at_end_ = got <= 0;
    bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return bytes;
  }
  // Everything up to and including `mark`; less if the peer ends before.
  std::string ReadUntil(std::string_view mark) {
    size_t end;
    while ((end = read_.find(mark)) == std::string::npos) {
      const std::string more = ReadSome();
      if (more.empty()) return std::exchange(read_, std::string());
      read_ += more;
    }
    std::string all = read_.substr(0, end + mark.size());
    read_.erase(0, end + mark.size());
    return all;
  }
  std::string ReadToEnd() {
    for (std::string more = ReadSome(); !more.empty(); more = ReadSome()) read_ += more;
    return std::exchange(read_, std::string());
  }
  // Whether reading would not wait.
  bool Ready() const {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&ready, 1, 0) > 0;
  }
  int fd() const { return fd_; }
  bool at_end() const { return at_end_; }
  bool was_reset() const { return reset_; }

  // No more bytes from here; the other direction stays.
  void EndSending() { shutdown(fd_, SHUT_WR); }
  // The peer sees a reset, not an end.
  void Reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    Close();
  }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  void SetReceiveBuffer(int bytes) { setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); }

 private:
  int fd_;
  std::string read_;
  bool at_end_ = false, reset_ = false;
};

// A port of the loopback for a server that is started there, and perhaps started again. It lies
// below those that the kernel gives to outgoing connections, so none of them takes it meanwhile,
// not even one that a client wants to this very server.
inline uint16_t FreePort(uint16_t other_than = 0) {
  for (;;) {
    const auto port = static_cast<uint16_t>(10'000 + EntropySeed() % 20'000);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    const sockaddr_in address = LoopbackAddress(port);
    const bool is_free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    if (is_free && port != other_than) return port;
  }
}

// Listens on a free port of the loopback.
class RawListener {
 public:
  RawListener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    CHECK(fd_ >= 0);
    sockaddr_in address = LoopbackAddress(0);
    socklen_t size = sizeof address;
    CHECK(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    CHECK(listen(fd_, 16) == 0);
    CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;
  ~RawListener() { Close(); }

  uint16_t port() const { return port_; }
  int fd() const { return fd_; }
  // Whether somebody waits to be accepted.
  bool Ready() const {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&ready, 1, 0) > 0;
  }
  RawSocket Accept() {
    const int accepted = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    CHECK(accepted >= 0);
    return RawSocket(accepted);
  }
  // From now on connecting is refused.
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
  uint16_t port_ = 0;
};

}  // namespace holdfast
