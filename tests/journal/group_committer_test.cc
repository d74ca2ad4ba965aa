// The journal with its threads, on real and simulated disks. Runs under ThreadSanitizer too. A lost
// wake-up shows as a test that does not end.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <thread>

#include "journal/io/open_storage.h"
#include "tests/journal/live_journal.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/forwarding_storage.h"
#include "tests/support/recording_log.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace holdfast {
namespace {

constexpr size_t kThreads = 6;

// Where and how a journal runs.
struct Setting {
  const char* name;
  enum class Disk { kPosix, kUring, kSimulated } disk;
  Durability durability = Durability::kSynced;
  absl::Duration interval = absl::ZeroDuration();
};
std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

const Setting kSimulated[] = {
    {"SimulatedSynced", Setting::Disk::kSimulated},
    {"SimulatedWritten", Setting::Disk::kSimulated, Durability::kWritten},
    {"SimulatedInterval", Setting::Disk::kSimulated, Durability::kSynced, absl::Milliseconds(5)},
};
const Setting kReal[] = {
    {"PosixSynced", Setting::Disk::kPosix},
    {"PosixWritten", Setting::Disk::kPosix, Durability::kWritten},
    {"PosixInterval", Setting::Disk::kPosix, Durability::kSynced, absl::Milliseconds(5)},
    {"UringSynced", Setting::Disk::kUring},
    {"UringWritten", Setting::Disk::kUring, Durability::kWritten},
    {"UringInterval", Setting::Disk::kUring, Durability::kSynced, absl::Milliseconds(5)},
    {"UringWrittenInterval", Setting::Disk::kUring, Durability::kWritten, absl::Milliseconds(5)},
};

void InThreads(size_t count, const std::function<void(size_t)>& work) {
  std::vector<std::thread> threads;
  for (size_t index = 0; index < count; ++index) threads.emplace_back([&, index] { work(index); });
  for (std::thread& thread : threads) thread.join();
}

JournalOptions OptionsOf(const Setting& setting) {
  JournalOptions options;
  options.durability = setting.durability;
  options.commit_interval = setting.interval;
  options.segment_bytes = 256 << 10;  // small: there are many rotations
  return options;
}

class JournalThreadsTest : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Storage>> storage = OpenDisk();
    if (!storage.ok() && GetParam().disk == Setting::Disk::kUring) {
      GTEST_SKIP() << storage.status().ToString();
    }
    ASSERT_OK(storage);
    storage_ = *std::move(storage);
    journal_ = std::make_unique<LiveJournal>(*storage_, RealClock());
    ASSERT_OK(journal_->Open(Options(), &log_));
  }

  StatusOr<std::unique_ptr<Storage>> OpenDisk() {
    switch (GetParam().disk) {
      case Setting::Disk::kPosix:
        return OpenStorage(directory_.path(), {.io = IoBackend::kPosix});
      case Setting::Disk::kUring:
        return OpenStorage(directory_.path(), {.io = IoBackend::kUring});
      case Setting::Disk::kSimulated:
        break;
    }
    return std::make_unique<SimStorage>(SimDisk(), SimStorageOptions{.wait_really = true});
  }

  static JournalOptions Options() { return OptionsOf(GetParam()); }

  // Everything in `values`, each once, is there again after a clean stop.
  void ExpectRecovered(const std::multiset<uint64_t>& values) {
    ASSERT_OK((*journal_)->Close());
    ASSERT_OK(journal_->Open(Options()));
    EXPECT_TRUE(journal_->report().clean);
    const std::vector<uint64_t> found = journal_->Values();
    EXPECT_EQ(std::multiset<uint64_t>(found.begin(), found.end()), values);
  }
  static std::multiset<uint64_t> AllOf(size_t threads, uint64_t each) {
    std::multiset<uint64_t> values;
    for (size_t thread = 0; thread < threads; ++thread) {
      for (uint64_t i = 0; i < each; ++i) values.insert(thread * 1'000'000 + i);
    }
    return values;
  }

  TempDir directory_;
  RecordingLog log_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<LiveJournal> journal_;
};

// Proves: G1 G3
TEST_P(JournalThreadsTest, EveryWaiterIsConfirmed) {
  constexpr uint64_t kEach = 150;
  InThreads(kThreads, [&](size_t thread) {
    for (uint64_t i = 0; i < kEach; ++i) {
      const Commit commit = journal_->Append({thread * 1'000'000 + i}, i * 97 % 1500);
      ASSERT_OK(commit.Wait());
      ASSERT_TRUE(commit.confirmed());
    }
  });
  ExpectRecovered(AllOf(kThreads, kEach));
}

// Somebody flushes beside a writer and leaves: whoever appended meanwhile still has the committer
// to count on.
TEST_P(JournalThreadsTest, AWriterBesideAFlusherIsConfirmed) {
  constexpr uint64_t kCommits = 500;
  std::atomic<uint64_t> commits = 0;
  InThreads(2, [&](size_t thread) {
    if (thread == 0) {
      for (; commits < kCommits; ++commits) {
        Commit last;
        for (uint64_t more = 0; more <= commits % 40; ++more) last = journal_->Append({more}, 50);
        ASSERT_OK(last.Wait());
      }
    } else {
      for (uint64_t seen = 0; seen < kCommits;) {
        ASSERT_OK((*journal_)->Flush());
        while (commits == seen) std::this_thread::yield();
        seen = commits;
      }
    }
  });
}

// A lone caller, and callers that come and go: whoever leads hands over when it leaves.
TEST_P(JournalThreadsTest, CallersThatComeAndGoAreAllConfirmed) {
  std::atomic<uint64_t> value = 0;
  for (int round = 0; round < 20; ++round) {
    InThreads(1 + round % kThreads, [&](size_t thread) {
      for (size_t i = 0; i <= thread; ++i) ASSERT_OK(journal_->Append(value.fetch_add(1)).Wait());
    });
  }
}

TEST_P(JournalThreadsTest, EachCallbackRunsOnceAndKeptOnesInOrder) {
  constexpr uint64_t kEach = 300;
  std::atomic<uint64_t> calls = 0;
  std::atomic<uint64_t> failures = 0;
  std::atomic<uint64_t> newest_kept = 0;
  std::atomic<uint64_t> disorder = 0;
  InThreads(kThreads, [&](size_t thread) {
    for (uint64_t i = 0; i < kEach; ++i) {
      const Commit commit = journal_->Append({thread * 1'000'000 + i}, 200);
      const std::thread::id caller = std::this_thread::get_id();
      const uint64_t lsn = commit.lsn();
      commit.Then([&, caller, lsn](const Status& status) {
        calls.fetch_add(1);
        if (!status.ok()) failures.fetch_add(1);
        if (caller == std::this_thread::get_id()) return;  // it was known at once
        if (newest_kept.exchange(lsn) > lsn) disorder.fetch_add(1);
      });
    }
  });
  ASSERT_OK((*journal_)->Close());
  EXPECT_EQ(calls, kThreads * kEach);
  EXPECT_EQ(failures, 0u);
  EXPECT_EQ(disorder, 0u);
}

// Nobody waits, and no call follows: it is confirmed all the same.
TEST_P(JournalThreadsTest, WhatNobodyWaitsForIsConfirmedToo) {
  const Commit commit = journal_->Append(1);
  while (!commit.confirmed()) std::this_thread::yield();
  std::atomic<bool> called = false;
  journal_->Append(2).Then([&](const Status&) { called = true; });
  while (!called) std::this_thread::yield();
}

TEST_P(JournalThreadsTest, CallbacksThatAppendKeepTheJournalGoing) {
  std::atomic<int> left = 500;
  std::function<void(const Status&)> next = [&](const Status& status) {
    EXPECT_OK(status);
    if (left.fetch_sub(1) > 0) journal_->Append({7}, 300).Then(next);
  };
  for (int i = 0; i < 8; ++i) journal_->Append({7}, 300).Then(next);
  while (left > -8) std::this_thread::yield();  // all eight chains ended
}

TEST_P(JournalThreadsTest, WaitersCallbacksFlushesAndReadersMix) {
  constexpr uint64_t kEach = 200;
  std::atomic<uint64_t> calls = 0;
  InThreads(kThreads, [&](size_t thread) {
    for (uint64_t i = 0; i < kEach; ++i) {
      const uint64_t value = thread * 1'000'000 + i;
      const Commit commit = journal_->Append({value}, 100 + i * 31 % 900);
      switch (thread % 4) {
        case 0:
          ASSERT_OK(commit.Wait());
          break;
        case 1:
          commit.Then([&](const Status&) { calls.fetch_add(1); });
          break;
        case 2:
          if (i % 20 == 0) {
            ASSERT_OK((*journal_)->Flush());
          }
          break;
        default:
          break;  // told to nobody
      }
      const StatusOr<uint64_t> read = journal_->Read(Lsn(commit.lsn()));
      ASSERT_OK(read);
      ASSERT_EQ(*read, value);
    }
  });
  ExpectRecovered(AllOf(kThreads, kEach));
}

// Appenders who never wait are held back by the disk, not by luck.
TEST_P(JournalThreadsTest, AppendersThatNeverWaitAreHeldBack) {
  constexpr uint64_t kEach = 400;
  InThreads(kThreads, [&](size_t thread) {
    for (uint64_t i = 0; i < kEach; ++i) {
      ASSERT_OK(journal_->Append({thread * 1'000'000 + i}, 2000).refused());
    }
  });
  ASSERT_OK((*journal_)->Flush());
  ExpectRecovered(AllOf(kThreads, kEach));
}

TEST_P(JournalThreadsTest, CloseConfirmsWhoStillWaits) {
  std::atomic<size_t> appended = 0;
  std::atomic<size_t> confirmed = 0;
  std::thread closer([&] {
    while (appended < kThreads) std::this_thread::yield();
    EXPECT_OK((*journal_)->Close());
  });
  InThreads(kThreads, [&](size_t thread) {
    for (uint64_t i = 0;; ++i) {
      const Commit commit = journal_->Append(thread * 1'000'000 + i);
      if (i == 0) appended.fetch_add(1);
      if (!commit.refused().ok()) {
        EXPECT_EQ(DetailOf(commit.refused()), Detail::kClosed);
        return;
      }
      EXPECT_OK(commit.Wait());
      confirmed.fetch_add(1);
    }
  });
  closer.join();
  ASSERT_OK(journal_->Open(Options()));
  EXPECT_EQ(journal_->Values().size(), confirmed);
}

// On simulated disks only: the real ones do not fail on demand.
class FailingDiskTest : public testing::TestWithParam<Setting> {};

// Whatever fails and whenever: every call returns, and what was confirmed is there afterwards.
// Proves: G2 G3
TEST_P(FailingDiskTest, LeavesNobodyWaiting) {
  for (const uint64_t seed : Seeds(60)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    SimStorage storage(SimDisk(), {.seed = seed, .wait_really = true});
    LiveJournal journal(storage, RealClock());
    ASSERT_OK(journal.Open(OptionsOf(GetParam())));
    const auto effect = static_cast<SimFault::Effect>(rng.Below(4));
    storage.SetFault(SimFault{.at = storage.operations() + 5 + rng.Below(60), .effect = effect});
    std::array<std::atomic<uint64_t>, kThreads> confirmed{};
    std::atomic<uint64_t> callbacks = 0;
    std::atomic<uint64_t> calls = 0;
    InThreads(kThreads, [&](size_t thread) {
      for (uint64_t i = 1; i <= 40; ++i) {
        const Commit commit = journal.Append({thread * 1'000'000 + i}, 1000);
        commit.Then([&](const Status&) { calls.fetch_add(1); });
        callbacks.fetch_add(1);
        const Status status = commit.Wait();
        if (!status.ok()) return;
        confirmed[thread] = i;
      }
    });
    const Status closed = journal->Close();
    EXPECT_EQ(closed.ok(), !journal->poisoned()) << closed;
    EXPECT_EQ(calls, callbacks);
    storage.SetFault(std::nullopt);
    SimDisk disk = storage.disk();
    storage.PowerOff();
    journal.Destroy();
    SimStorage after(GetParam().durability == Durability::kSynced
                         ? disk.PowerCut(std::vector<bool>(disk.Loose().size(), false))
                         : disk.Kill(seed, /*late=*/false));
    LiveJournal reopened(after, RealClock());
    ASSERT_OK(reopened.Open(OptionsOf(GetParam())));
    std::array<uint64_t, kThreads> found{};
    for (const uint64_t value : reopened.Values()) {
      EXPECT_EQ(++found[value / 1'000'000], value % 1'000'000);  // in order, without a gap
    }
    for (size_t thread = 0; thread < kThreads; ++thread) {
      EXPECT_GE(found[thread], confirmed[thread]);
    }
  }
}

// A disk that takes requests and, once it is told to, answers none any more.
class SilentStorage final : public ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;
  void FallSilent() { silent_.store(true); }

 private:
  class Queue final : public ForwardingQueue {
   public:
    Queue(std::unique_ptr<WriteQueue> inner, const std::atomic<bool>& silent)
        : ForwardingQueue(std::move(inner)), silent_(silent) {}
    StatusOr<Completion> WaitOne(absl::Duration timeout) override {
      if (!silent_.load()) return ForwardingQueue::WaitOne(timeout);
      std::this_thread::yield();
      return MakeStatus(StatusCode::kDeadlineExceeded, Detail::kNone, "silence");
    }

   private:
    const std::atomic<bool>& silent_;
  };
  std::unique_ptr<WriteQueue> WrapQueue(std::unique_ptr<WriteQueue> queue) override {
    return std::make_unique<Queue>(std::move(queue), silent_);
  }
  std::atomic<bool> silent_ = false;
};

// Proves: G2 G3
TEST_P(FailingDiskTest, AnAnswerThatNeverComesIsTakenForLost) {
  SimClock clock;
  SimStorage disk(SimDisk(), {.wait_really = true});
  SilentStorage storage(disk);
  LiveJournal journal(storage, clock);
  ASSERT_OK(journal.Open(OptionsOf(GetParam())));
  const Commit before = journal.Append(1);
  std::atomic<bool> done = false;
  std::thread time([&] {  // for the interval, and then for the silence
    while (!done) {
      clock.Advance(absl::Milliseconds(10));
      std::this_thread::yield();
    }
  });
  ASSERT_OK(before.Wait());
  storage.FallSilent();
  const Commit after = journal.Append(2);
  EXPECT_FAILS(after.Wait(), kUnavailable, kPoisoned);
  EXPECT_TRUE(journal->poisoned());
  EXPECT_OK(before.Wait());
  EXPECT_FAILS(journal->Close(), kUnavailable, kPoisoned);
  done = true;
  time.join();
}

std::string NameOf(const testing::TestParamInfo<Setting>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Real, JournalThreadsTest, testing::ValuesIn(kReal), NameOf);
INSTANTIATE_TEST_SUITE_P(Simulated, JournalThreadsTest, testing::ValuesIn(kSimulated), NameOf);
INSTANTIATE_TEST_SUITE_P(Simulated, FailingDiskTest, testing::ValuesIn(kSimulated), NameOf);

}  // namespace
}  // namespace holdfast
