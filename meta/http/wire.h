// Wire: one TCP connection on an event loop, plain or over TLS: bytes in, bytes out, and its end.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "meta/http/tls.h"

namespace holdfast {

// Lives on the loop's thread. What is passed to a call that ends later stays until it has ended;
// `done` keeps the wire's owner, and runs once, never inside the call.
class Wire {
 public:
  using Tcp = boost::asio::ip::tcp;
  using ErrorCode = boost::system::error_code;
  using Done = std::function<void(ErrorCode, size_t bytes)>;

  // Borrows `loop`, which outlives it. The socket is connected by its owner.
  explicit Wire(boost::asio::io_context& loop) : socket_(loop) {}
  explicit Wire(Tcp::socket socket) : socket_(std::move(socket)) {}

  Tcp::socket& socket() { return socket_; }
  // Null: it is plain.
  const TlsSession* tls() const { return tls_.get(); }
  // What to tell a person about an error of this wire.
  std::string Why(ErrorCode error) const { return why_.empty() ? error.message() : why_; }

  // The handshake; from then on everything goes over TLS. Before anything else, and once.
  void Secure(std::unique_ptr<TlsSession> session, std::function<void(ErrorCode)> done);
  // The next bytes, at least one. One read at a time. Errors: eof when the peer has ended its side;
  // over TLS a connection that ends without saying so is cut off, which is another error
  void ReadSome(boost::asio::mutable_buffer into, Done done);
  // All of both, one behind the other. One write at a time.
  void Write(std::string_view first, std::string_view second, Done done);
  // Nothing more goes out; what comes can still be read.
  void EndWriting();
  void Close();

  // The peer has sent nothing that was not read, and has not closed, as far as this side has heard.
  bool Quiet();
  // It has sent something that was not read.
  bool HasUnread();

 private:
  void GoOnShaking(std::function<void(ErrorCode)> done);
  void ReadTls(boost::asio::mutable_buffer into, Done done, bool in_call);
  void WriteTls(std::string_view first, std::string_view second, size_t written, Done done);
  // Waits for bytes of the peer and hands them to the session. Meanwhile no buffer is held.
  void Receive(std::function<void(ErrorCode)> done);
  // What the session has to say besides the bytes that are written, as far as the socket takes it.
  void SendRest();
  // The error of a session that has failed.
  ErrorCode Failed(const Status& why);

  Tcp::socket socket_;
  std::unique_ptr<TlsSession> tls_;
  std::string out_;  // encrypted, being written
  std::string why_;  // the session has failed, or was cut off
};

}  // namespace holdfast
