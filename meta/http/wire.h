// Wire: one TCP connection on an event loop: bytes in, bytes out, and its end.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <string_view>

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

  // The next bytes, at least one. One read at a time. Errors: eof when the peer has ended its side
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
  Tcp::socket socket_;
};

}  // namespace holdfast
