// A process that writes to the Meta in its journal from several threads is killed by SIGKILL, again
// and again, on one directory. What was answered is there, what it shows only rises, and leases
// have their full time again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/engine.h"
#include "journal/base/seeded_rng.h"
#include "tests/support/child_process.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace holdfast {
namespace {

constexpr int kWriters = 3;
constexpr int kKeys = 20;  // of each writer, who is the only one to write them
constexpr absl::Duration kLeaseTtl = absl::Hours(1);

EngineOptions OptionsOf(const std::string& directory) {
  EngineOptions options;
  options.directory = directory;
  options.segment_bytes = uint64_t{256} << 10;  // so that there is housekeeping
  return options;
}

// What happened to one key: the number of the write, in the value, and the revision; 0: deleted.
struct Fate {
  uint64_t write = 0;
  uint64_t revision = 0;
};

std::string KeyOf(int writer, uint64_t key) {
  return "w" + std::to_string(writer) + "/" + std::to_string(key);
}

void Tell(int tell, const std::string& line) {
  CHECK(write(tell, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
}

// "<begun|done> <key> <write> <revision>" lines, each by one call: whole, or not at all.
void WriteUntilKilled(MetaStore& meta, int writer, uint64_t seed, uint64_t first_write, int tell) {
  SeededRng rng(seed * 100 + static_cast<uint64_t>(writer));
  for (uint64_t write = first_write;; ++write) {
    const std::string key = KeyOf(writer, rng.Below(kKeys));
    const bool deletes = rng.OneIn(5);
    const uint64_t named = deletes ? 0 : write;
    Tell(tell, fmt::format("begun {} {} 0\n", key, named));
    const std::string value = std::to_string(write) + ":" + std::string(rng.Below(2'000), 'v');
    const StatusOr<uint64_t> written = deletes ? meta.Delete(key, {}) : meta.Put(key, value, {});
    if (!written.ok() && written.status().code() != StatusCode::kNotFound) return;
    Tell(tell, fmt::format("done {} {} {}\n", key, named, written.ok() ? *written : 0));
  }
}

void RunBoot(const std::string& directory, uint64_t seed, uint64_t first_write, int tell) {
  auto engine = Engine::Open(OptionsOf(directory));
  CHECK_OK(engine);
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back(
        [&, i] { WriteUntilKilled((*engine)->meta(), i, seed, first_write, tell); });
  }
  for (std::thread& writer : writers) writer.join();
}

// What a run told, over all of its boots.
class Told {
 public:
  void Hear(const std::string& text) {
    std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
    std::string what, key;
    for (Fate fate; lines >> what >> key >> fate.write >> fate.revision;) {
      highest_write_ = std::max(highest_write_, fate.write);
      highest_revision_ = std::max(highest_revision_, fate.revision);
      if (what == "begun") {
        begun_[key].insert(fate.write);
      } else {
        begun_.erase(key);
        done_[key] = fate;
        ++answers_;
      }
    }
  }

  // Compares with what is there, and takes it for what is known.
  void ExpectThere(MetaStore& meta) {
    for (int writer = 0; writer < kWriters; ++writer) {
      for (uint64_t i = 0; i < kKeys; ++i) {
        const std::string key = KeyOf(writer, i);
        const StatusOr<MetaEntry> entry = meta.Get(key, {});
        ASSERT_TRUE(entry.ok() || entry.status().code() == StatusCode::kNotFound) << entry.status();
        const uint64_t found = entry.ok() ? std::stoull(entry->value) : 0;
        const auto done = done_.find(key);
        const auto begun = begun_.find(key);
        const bool is_done = found == (done == done_.end() ? 0 : done->second.write);
        const bool is_begun = begun != begun_.end() && begun->second.contains(found);
        EXPECT_TRUE(is_done || is_begun) << key << ": write " << found << " is there";
        if (is_done && entry.ok() && done->second.revision != 0) {
          EXPECT_EQ(entry->revision, done->second.revision) << key;
        }
        done_[key] = {.write = found, .revision = entry.ok() ? entry->revision : 0};
      }
    }
    begun_.clear();
    ASSERT_OK_AND_ASSIGN(const MetaList list, meta.List("w", {}));
    EXPECT_GE(list.revision, highest_revision_) << "the revision went back";
    highest_revision_ = list.revision;
  }

  uint64_t next_write() const { return highest_write_ + 1; }
  uint64_t highest_revision() const { return highest_revision_; }
  uint64_t answers() const { return answers_; }

 private:
  std::map<std::string, Fate> done_;                 // the newest that was answered
  std::map<std::string, std::set<uint64_t>> begun_;  // since then
  uint64_t highest_write_ = 0;
  uint64_t highest_revision_ = 0;
  uint64_t answers_ = 0;
};

// Proves: G1, G11, S1
TEST(MetaKillTest, WhatWasAnsweredOutlivesEveryKillAndRevisionsNeverComeBack) {
  for (const uint64_t seed : Seeds(2)) {
    SCOPED_TRACE(seed);
    TempDir directory;
    const std::string store = directory.Sub("store");
    SeededRng rng(seed);
    Told told;
    uint64_t lease = 0;
    {
      ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open(OptionsOf(store)));
      ASSERT_OK_AND_ASSIGN(const MetaLease granted, engine->meta().GrantLease(kLeaseTtl, {}));
      lease = granted.id;
      ASSERT_OK(engine->meta().Put("leased", "", {.lease = lease}));
    }
    for (int boot = 0; boot < 12; ++boot) {
      SCOPED_TRACE(boot);
      ChildProcess child([&](int tell) {
        RunBoot(store, seed * 1'000 + static_cast<uint64_t>(boot), told.next_write(), tell);
      });
      // Somewhere in the middle of it, in a place that is another one each time.
      std::string text = child.Hear(500 + rng.Below(20'000));
      child.Kill();
      text += child.Hear(size_t{1} << 20);
      const int status = child.Wait();
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
      told.Hear(text);
      const bool looks = rng.OneIn(2);  // else the next process meets what this one left
      if (!looks && boot < 11) continue;
      ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open(OptionsOf(store)));
      told.ExpectThere(engine->meta());
      ASSERT_OK_AND_ASSIGN(const MetaEntry leased, engine->meta().Get("leased", {}));
      EXPECT_EQ(leased.lease, lease);
      EXPECT_OK(engine->meta().KeepAlive(lease, {}));
      ASSERT_OK_AND_ASSIGN(const uint64_t next, engine->meta().Put("look", "", {}));
      EXPECT_GT(next, told.highest_revision());
      if (HasFailure()) return;
    }
    EXPECT_GT(told.answers(), 300u);
  }
}

}  // namespace
}  // namespace holdfast
