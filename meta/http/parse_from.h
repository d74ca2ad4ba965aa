// ParseFrom: feeds a parser of Beast's from a wire until it has enough.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <functional>
#include <utility>

#include "meta/http/wire.h"

namespace holdfast {

// What it is done on, all borrowed; `done` keeps their owner.
template <bool kIsRequest>
struct ParseSource {
  Wire& wire;
  boost::beast::flat_buffer& buffer;  // read, and not taken by the parser yet
  boost::beast::http::basic_parser<kIsRequest>& parser;
};

// Calls `done`, never inside the call, as soon as the parser has taken something and `enough()`
// holds, or with what went wrong. Errors: the parser's and the wire's; end_of_stream where the peer
// ended between two messages
template <bool kIsRequest>
void ParseFrom(const ParseSource<kIsRequest>& source, std::function<bool()> enough,
               std::function<void(Wire::ErrorCode)> done) {
  namespace http = boost::beast::http;
  const auto finish = [&](Wire::ErrorCode error) {
    boost::asio::post(source.wire.socket().get_executor(),
                      [done = std::move(done), error] { done(error); });
  };
  while (source.buffer.size() != 0) {
    Wire::ErrorCode error;
    source.buffer.consume(source.parser.put(source.buffer.data(), error));
    if (error == http::error::need_more) break;
    if (error || enough()) return finish(error);
  }
  constexpr size_t kReadBytesMax = size_t{64} << 10;
  const size_t room = boost::beast::read_size(source.buffer, kReadBytesMax);
  if (room == 0) return finish(http::error::buffer_overflow);
  source.wire.ReadSome(source.buffer.prepare(room),
                       [source, enough = std::move(enough), done = std::move(done)](
                           Wire::ErrorCode error, size_t got) {
                         source.buffer.commit(got);
                         if (!error) return ParseFrom(source, enough, done);
                         if (error == boost::asio::error::eof && !source.parser.got_some()) {
                           error = http::error::end_of_stream;
                         } else if (error == boost::asio::error::eof) {
                           // The end of a body that has no other; anywhere else it is cut off.
                           error = {};
                           source.parser.put_eof(error);
                         }
                         done(error);
                       });
}

}  // namespace holdfast
