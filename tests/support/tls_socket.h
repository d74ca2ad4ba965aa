// TlsSocket: bytes over TLS as a test wants them, on a raw socket.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "meta/http/tls.h"
#include "tests/support/raw_socket.h"

namespace holdfast {

class TlsSocket {
 public:
  // Borrows both. Goes through the handshake, or as far as the peer lets it.
  TlsSocket(RawSocket& socket, TlsSession& session) : socket_(socket), session_(session) {
    StatusOr<bool> done = false;
    while (true) {
      done = session_.Handshake();
      socket_.Send(session_.TakeOutput());
      if (!done.ok() || *done || !Hear()) break;
    }
    shaken_ = done.ok() && *done;
  }
  bool shaken() const { return shaken_; }

  void Send(std::string_view bytes) { socket_.Send(Encrypted(bytes)); }
  // The bytes for the wire, for a test that sends them as it likes.
  std::string Encrypted(std::string_view bytes) {
    CHECK(session_.Write(bytes).ok());
    return session_.TakeOutput();
  }
  // Says that no more comes.
  void End() {
    session_.End();
    socket_.Send(session_.TakeOutput());
  }
  // Everything up to and including `mark`; less if the peer ends before.
  std::string ReadUntil(std::string_view mark) {
    size_t end;
    while ((end = read_.find(mark)) == std::string::npos) {
      if (!ReadMore()) return std::exchange(read_, std::string());
    }
    std::string all = read_.substr(0, end + mark.size());
    read_.erase(0, end + mark.size());
    return all;
  }
  std::string ReadToEnd() {
    while (ReadMore()) {
    }
    return std::exchange(read_, std::string());
  }
  // The peer has said that it ends, as it should.
  bool ended() const { return ended_; }

 private:
  bool Hear() {
    const std::string bytes = socket_.ReadSome();
    session_.Receive(bytes);
    return !bytes.empty();
  }
  bool ReadMore() {
    std::array<char, 4096> space;
    const StatusOr<size_t> got = session_.Read(space);
    ended_ = ended_ || absl::IsOutOfRange(got.status());
    if (!got.ok()) return false;
    read_.append(space.data(), *got);
    return *got != 0 || Hear();
  }

  RawSocket& socket_;
  TlsSession& session_;
  std::string read_;
  bool shaken_ = false, ended_ = false;
};

}  // namespace holdfast
