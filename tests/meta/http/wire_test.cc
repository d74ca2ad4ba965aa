#include "meta/http/wire.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/asio/error.hpp>
#include <string>

#include "tests/support/raw_socket.h"

namespace holdfast {
namespace {

namespace asio = boost::asio;

class WireTest : public testing::Test {
 protected:
  WireTest() : wire_(loop_), peer_(Join()) {}

  // What the next read brings, or why it brings nothing.
  std::string Read() {
    std::string got;
    wire_.ReadSome(asio::buffer(space_), [&](Wire::ErrorCode error, size_t bytes) {
      got = error ? error.message() : std::string(space_.data(), bytes);
    });
    EXPECT_EQ(got, "");  // Never inside the call.
    Run();
    return got;
  }
  void Write(std::string_view first, std::string_view second) {
    size_t written = 0;
    wire_.Write(first, second, [&](Wire::ErrorCode error, size_t bytes) {
      EXPECT_FALSE(error) << error.message();
      written = bytes;
    });
    Run();
    EXPECT_EQ(written, first.size() + second.size());
  }
  void Run() {
    loop_.restart();
    loop_.run();
  }

  RawListener listener_;
  asio::io_context loop_{1};
  std::array<char, 100> space_;
  Wire wire_;
  RawSocket peer_;

 private:
  RawSocket Join() {
    wire_.socket().connect({asio::ip::address_v4::loopback(), listener_.port()});
    return listener_.Accept();
  }
};

TEST_F(WireTest, CarriesBytesBothWaysInOrder) {
  peer_.Send("ping");
  EXPECT_EQ(Read(), "ping");
  Write("one,", "two.");
  EXPECT_EQ(peer_.ReadUntil("."), "one,two.");
}

TEST_F(WireTest, ItsEndIsSeenAndWhatComesIsStillRead) {
  wire_.EndWriting();
  EXPECT_EQ(peer_.ReadToEnd(), "");
  EXPECT_TRUE(peer_.at_end());
  peer_.Send("after");
  EXPECT_EQ(Read(), "after");
  peer_.EndSending();
  EXPECT_EQ(Read(), make_error_code(asio::error::eof).message());
}

TEST_F(WireTest, AClosedWireEndsWhatGoesOn) {
  std::string ended;
  wire_.ReadSome(asio::buffer(space_),
                 [&](Wire::ErrorCode error, size_t) { ended = error.message(); });
  wire_.Close();
  Run();
  EXPECT_EQ(ended, make_error_code(asio::error::operation_aborted).message());
  EXPECT_EQ(peer_.ReadToEnd(), "");
}

TEST_F(WireTest, SaysWhetherThePeerHasSentOrClosed) {
  EXPECT_TRUE(wire_.Quiet());
  EXPECT_FALSE(wire_.HasUnread());
  peer_.Send("x");
  while (!wire_.HasUnread()) {
  }
  EXPECT_FALSE(wire_.Quiet());
  EXPECT_EQ(Read(), "x");
  EXPECT_TRUE(wire_.Quiet());
  peer_.Close();
  while (wire_.Quiet()) {
  }
  EXPECT_FALSE(wire_.HasUnread());
}

}  // namespace
}  // namespace holdfast
