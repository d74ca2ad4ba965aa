#include "journal/base/futex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace holdfast {
namespace {

TEST(FutexTest, AWordThatChangedAlreadyIsNotWaitedFor) {
  std::atomic<uint32_t> word = 1;
  FutexWait(word, 0);  // returns
}

TEST(FutexTest, AllSleepersWakeUp) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<uint32_t> word = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        while (word.load() == 0) FutexWait(word, 0);
      });
    }
    word.store(1);
    FutexWakeAll(word);
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(FutexTest, OneSleeperAfterTheOtherWakesUp) {
  std::atomic<uint32_t> word = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (word.load() == 0) FutexWait(word, 0);
      FutexWakeOne(word);
    });
  }
  word.store(1);
  FutexWakeOne(word);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace holdfast
