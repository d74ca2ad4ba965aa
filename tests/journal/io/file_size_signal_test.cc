#include "journal/io/file_size_signal.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>

#include "tests/support/child_process.h"

namespace holdfast {
namespace {

bool IsPending() {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, SIGXFSZ) == 1;
}

void Block(int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  pthread_sigmask(how, &set, nullptr);
}

TEST(FileSizeSignalTest, TheSignalDoesNotKill) {
  EXPECT_EQ(InChild([] {
              {
                const FileSizeSignalBlock block;
                raise(SIGXFSZ);
              }
              return IsPending() ? "left over" : "";
            }),
            "");
}

TEST(FileSizeSignalTest, AHostThatWantsTheSignalGetsItAgainAfterwards) {
  EXPECT_EQ(InChild([] {
              {
                const FileSizeSignalBlock block;
              }
              raise(SIGXFSZ);
              return std::string("alive");
            }),
            "killed: File size limit exceeded");
}

TEST(FileSizeSignalTest, ASignalThatWasPendingBeforeStaysPending) {
  EXPECT_EQ(InChild([] {
              Block(SIG_BLOCK);
              raise(SIGXFSZ);
              {
                const FileSizeSignalBlock block;
              }
              return IsPending() ? "" : "swallowed";
            }),
            "");
}

TEST(FileSizeSignalTest, AHostThatBlocksTheSignalKeepsItBlocked) {
  EXPECT_EQ(InChild([] {
              Block(SIG_BLOCK);
              {
                const FileSizeSignalBlock block;
                raise(SIGXFSZ);
              }
              if (IsPending()) return "left over";
              raise(SIGXFSZ);
              return IsPending() ? "" : "unblocked";
            }),
            "");
}

}  // namespace
}  // namespace holdfast
