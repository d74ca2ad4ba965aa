#include "meta/http/wire.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

namespace holdfast {

namespace asio = boost::asio;

void Wire::ReadSome(asio::mutable_buffer into, Done done) {
  socket_.async_read_some(into, std::move(done));
}

void Wire::Write(std::string_view first, std::string_view second, Done done) {
  const std::array buffers = {asio::buffer(first.data(), first.size()),
                              asio::buffer(second.data(), second.size())};
  asio::async_write(socket_, buffers, std::move(done));
}

void Wire::EndWriting() {
  ErrorCode ignored;  // The peer has gone already; then nobody misses the end.
  socket_.shutdown(Tcp::socket::shutdown_send, ignored);
}

void Wire::Close() {
  ErrorCode ignored;  // Nothing is left to do about a socket that does not close.
  socket_.close(ignored);
}

bool Wire::Quiet() {
  char byte = 0;
  return ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool Wire::HasUnread() {
  ErrorCode ignored;  // A socket that cannot be asked has nothing to read.
  return socket_.available(ignored) != 0;
}

}  // namespace holdfast
