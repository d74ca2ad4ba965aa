#include "meta/http/event_stream.h"

#include <gtest/gtest.h>

#include <memory>

namespace holdfast {
namespace {

class EventStreamTest : public testing::Test {
 protected:
  int wakes_ = 0;
  EventStream stream_{10, [this] { ++wakes_; }};
};

TEST_F(EventStreamTest, WhatWaitsGoesOutAsOnePiece) {
  EXPECT_TRUE(stream_.Write("ab"));
  EXPECT_TRUE(stream_.Write("cd"));
  EXPECT_EQ(wakes_, 1);
  EXPECT_EQ(stream_.TakeForSending(), "abcd");
  EXPECT_TRUE(stream_.Write("ef"));
  EXPECT_EQ(wakes_, 2);
  stream_.Sent();
  EXPECT_EQ(stream_.TakeForSending(), "ef");
}

TEST_F(EventStreamTest, TheEndComesBehindWhatWaits) {
  EXPECT_TRUE(stream_.Write("ab"));
  stream_.End();
  EXPECT_FALSE(stream_.Write("cd"));
  EXPECT_EQ(stream_.TakeForSending(), "ab");
  stream_.Sent();
  EXPECT_EQ(stream_.TakeForSending(), std::nullopt);
}

TEST_F(EventStreamTest, ASlowReaderIsCutOffAtTheCapAndNothingMoreIsKept) {
  EXPECT_TRUE(stream_.Write("123456"));
  EXPECT_EQ(stream_.TakeForSending(), "123456");
  EXPECT_TRUE(stream_.Write("7890"));  // six in flight, four waiting
  EXPECT_FALSE(stream_.overrun());
  EXPECT_FALSE(stream_.Write("1"));
  EXPECT_EQ(wakes_, 3);
  EXPECT_TRUE(stream_.overrun());
  EXPECT_EQ(stream_.TakeForSending(), "");
  EXPECT_FALSE(stream_.Write("2"));
}

TEST_F(EventStreamTest, OnePieceAloneMayBeLargerThanTheCap) {
  EXPECT_TRUE(stream_.Write(std::string(100, 'x')));
  EXPECT_EQ(stream_.TakeForSending()->size(), 100u);
  EXPECT_FALSE(stream_.Write("y"));
}

TEST_F(EventStreamTest, DrainedIsCalledWhenNothingWaits) {
  int drained = 0;
  stream_.OnDrained([&] { ++drained; });
  stream_.RunCallbacks();
  EXPECT_EQ(drained, 0);
  stream_.Write("a");
  stream_.TakeForSending();
  stream_.Write("b");
  stream_.Sent();
  stream_.RunCallbacks();
  EXPECT_EQ(drained, 0);
  stream_.TakeForSending();
  stream_.Sent();
  stream_.RunCallbacks();
  stream_.RunCallbacks();
  EXPECT_EQ(drained, 1);
}

TEST_F(EventStreamTest, ClosedIsCalledOnceEvenIfAskedForLate) {
  int closed = 0;
  stream_.Close();
  stream_.RunCallbacks();
  stream_.OnClosed([&] { ++closed; });
  EXPECT_EQ(wakes_, 1);
  stream_.RunCallbacks();
  stream_.RunCallbacks();
  EXPECT_EQ(closed, 1);
}

TEST_F(EventStreamTest, CallbacksThatHoldTheStreamAreLetGoWhenItCloses) {
  const auto held = std::make_shared<int>(1);
  stream_.OnDrained([held] {});
  stream_.OnClosed([held] {});
  EXPECT_EQ(held.use_count(), 3);
  stream_.Close();
  stream_.RunCallbacks();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace holdfast
