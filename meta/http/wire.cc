#include "meta/http/wire.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

namespace holdfast {

namespace asio = boost::asio;

namespace {
constexpr size_t kReceiveBytes = size_t{16} << 10;
constexpr size_t kWriteBytesMax = size_t{64} << 10;  // encrypted at once
}  // namespace

void Wire::ReadSome(asio::mutable_buffer into, Done done) {
  if (tls_ != nullptr) return ReadTls(into, std::move(done), true);
  socket_.async_read_some(into, std::move(done));
}

void Wire::Write(std::string_view first, std::string_view second, Done done) {
  if (tls_ != nullptr) return WriteTls(first, second, 0, std::move(done));
  const std::array buffers = {asio::buffer(first.data(), first.size()),
                              asio::buffer(second.data(), second.size())};
  asio::async_write(socket_, buffers, std::move(done));
}

void Wire::EndWriting() {
  if (tls_ != nullptr) {
    tls_->End();
    SendRest();
  }
  ErrorCode ignored;  // The peer has gone already; then nobody misses the end.
  socket_.shutdown(Tcp::socket::shutdown_send, ignored);
}

void Wire::Close() {
  ErrorCode ignored;  // Nothing is left to do about a socket that does not close.
  socket_.close(ignored);
}

bool Wire::Quiet() {
  if (tls_ != nullptr && tls_->HasUnread()) return false;
  char byte = 0;
  return ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool Wire::HasUnread() {
  if (tls_ != nullptr && tls_->HasUnread()) return true;
  ErrorCode ignored;  // A socket that cannot be asked has nothing to read.
  return socket_.available(ignored) != 0;
}

// ---- over TLS

void Wire::Secure(std::unique_ptr<TlsSession> session, std::function<void(ErrorCode)> done) {
  tls_ = std::move(session);
  ErrorCode error;
  socket_.non_blocking(true, error);  // For the reads that follow a wait.
  asio::post(socket_.get_executor(), [this, error, done = std::move(done)] {
    if (error) return done(error);
    GoOnShaking(done);
  });
}

void Wire::GoOnShaking(std::function<void(ErrorCode)> done) {
  const StatusOr<bool> ready = tls_->Handshake();
  if (!ready.ok()) {
    SendRest();
    return done(Failed(ready.status()));
  }
  const auto go_on = [this, ready = *ready, done](ErrorCode error) {
    out_.clear();
    if (error || ready) return done(error);
    Receive([this, done](ErrorCode error) {
      if (error == asio::error::eof) {
        error = Failed(Unavailable(Detail::kNone, "TLS: the peer has closed in the handshake"));
      }
      if (error) return done(error);
      GoOnShaking(done);
    });
  };
  out_ = tls_->TakeOutput();
  if (out_.empty()) return go_on({});
  asio::async_write(socket_, asio::buffer(std::as_const(out_)),
                    [go_on](ErrorCode error, size_t) { go_on(error); });
}

void Wire::ReadTls(asio::mutable_buffer into, Done done, bool in_call) {
  const StatusOr<size_t> got = tls_->Read({static_cast<char*>(into.data()), into.size()});
  if (got.ok() && *got == 0) {
    return Receive([this, into, done = std::move(done)](ErrorCode error) {
      if (error == asio::error::eof) {
        error = Failed(Unavailable(Detail::kNone, "TLS: cut off"));
      }
      if (error) return done(error, 0);
      ReadTls(into, done, false);
    });
  }
  ErrorCode error;
  if (absl::IsOutOfRange(got.status())) {
    error = asio::error::eof;
  } else if (!got.ok()) {
    error = Failed(got.status());
    SendRest();
  }
  const size_t bytes = got.ok() ? *got : 0;
  if (!in_call) return done(error, bytes);
  asio::post(socket_.get_executor(),
             [done = std::move(done), error, bytes] { done(error, bytes); });
}

void Wire::WriteTls(std::string_view first, std::string_view second, size_t written, Done done) {
  size_t room = kWriteBytesMax;
  Status encrypted;
  for (std::string_view* const rest : {&first, &second}) {
    const std::string_view piece = rest->substr(0, room);
    rest->remove_prefix(piece.size());
    room -= piece.size();
    if (encrypted.ok()) encrypted = tls_->Write(piece);
  }
  if (!encrypted.ok()) {
    const ErrorCode error = Failed(encrypted);
    return asio::post(socket_.get_executor(),
                      [done = std::move(done), error, written] { done(error, written); });
  }
  written += kWriteBytesMax - room;
  out_ = tls_->TakeOutput();
  asio::async_write(
      socket_, asio::buffer(std::as_const(out_)),
      [this, first, second, written, done = std::move(done)](ErrorCode error, size_t) {
        out_ = std::string();
        if (error || (first.empty() && second.empty())) return done(error, written);
        WriteTls(first, second, written, done);
      });
}

void Wire::Receive(std::function<void(ErrorCode)> done) {
  socket_.async_wait(Tcp::socket::wait_read, [this, done = std::move(done)](ErrorCode error) {
    if (error) return done(error);
    std::array<char, kReceiveBytes> bytes;
    const size_t got = socket_.read_some(asio::buffer(bytes), error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      return Receive(done);
    }
    tls_->Receive({bytes.data(), got});
    done(error);
  });
}

void Wire::SendRest() {
  if (!out_.empty()) return;  // It would come in between.
  const std::string rest = tls_->TakeOutput();
  ErrorCode ignored;  // Whoever does not hear why sees the end.
  socket_.write_some(asio::buffer(rest), ignored);
}

Wire::ErrorCode Wire::Failed(const Status& why) {
  why_ = Message(why);
  return asio::error::connection_aborted;
}

}  // namespace holdfast
