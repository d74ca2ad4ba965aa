#include "tests/meta/meta_history.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "tests/meta/linearizability.h"
#include "tests/meta/watch_log.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Kind = KeyOperation::Kind;
using Outcome = KeyOperation::Outcome;

// One operation as the client that made it knows it.
struct Done {
  std::string key;
  KeyOperation operation;
  uint64_t revision = 0;  // of a write that was answered
};

class Client {
 public:
  Client(MetaStore& store, const MetaHistoryOptions& options, size_t number,
         std::atomic<uint64_t>& moments)
      : store_(store),
        options_(options),
        number_(number),
        moments_(moments),
        rng_(options.seed * 1'000 + number) {}

  void Run() {
    for (size_t at = 0; at < options_.operations; ++at) {
      if (number_ == 0) options_.disturb(at);
      const std::string key =
          fmt::format("history/{}/{}", options_.seed, rng_.Below(options_.keys));
      const std::string id = fmt::format("{}-{}-{}", options_.seed, number_, at);
      switch (rng_.Below(8)) {
        case 0:
          Write(key, id);
          break;
        case 1:
          WriteIfAbsent(key, id);
          break;
        case 2:
          Delete(key);
          break;
        case 3:
        case 4:
          WriteIfAt(key, id);
          break;
        default:
          Read(key);
      }
    }
  }
  const std::vector<Done>& done() const { return done_; }

 private:
  struct Seen {
    uint64_t revision = 0;
    std::optional<std::string> id;
  };

  template <typename Call>
  auto Timed(KeyOperation& operation, const Call& call) {
    operation.called = moments_.fetch_add(1);
    auto result = call();
    operation.answered = moments_.fetch_add(1);
    return result;
  }
  // False: it certainly did not happen, and says nothing.
  static bool Judge(const Status& status, bool refusal, KeyOperation& operation) {
    const MetaResult result = MetaResultOf(status);
    if (result == MetaResult::kUnknown) operation.outcome = Outcome::kUnknown;
    if (refusal) operation.outcome = Outcome::kRefused;
    return status.ok() || refusal || result == MetaResult::kUnknown;
  }
  void Keep(const std::string& key, KeyOperation operation, const StatusOr<uint64_t>& revision) {
    if (revision.ok() && operation.made.has_value()) seen_[key] = {*revision, operation.made};
    done_.push_back({key, std::move(operation), revision.ok() ? *revision : 0});
  }

  void Read(const std::string& key) {
    KeyOperation read{.kind = Kind::kRead};
    const auto entry = Timed(read, [&] { return store_.Get(key, {.timeout = options_.timeout}); });
    const bool absent = MetaResultOf(entry.status()) == MetaResult::kNotFound;
    if (!entry.ok() && !absent) return;
    if (!absent) read.seen = entry->request_id;
    seen_[key] = absent ? Seen() : Seen{entry->revision, entry->request_id};
    done_.push_back({key, std::move(read), 0});
  }
  void Write(const std::string& key, const std::string& id) {
    KeyOperation write{.kind = Kind::kWrite, .made = id};
    const auto revision = Timed(write, [&] {
      return store_.Put(key, "v" + id, {.request_id = id, .timeout = options_.timeout});
    });
    if (Judge(revision.status(), false, write)) Keep(key, std::move(write), revision);
  }
  void WriteIfAbsent(const std::string& key, const std::string& id) {
    KeyOperation write{.kind = Kind::kWriteIfAt, .made = id};
    const auto revision = Timed(write, [&] {
      return store_.PutIfAbsent(key, "v" + id, {.request_id = id, .timeout = options_.timeout});
    });
    const bool refused = MetaResultOf(revision.status()) == MetaResult::kConflict;
    if (Judge(revision.status(), refused, write)) Keep(key, std::move(write), revision);
  }
  // Where it was seen last, by whatever operation.
  void WriteIfAt(const std::string& key, const std::string& id) {
    const Seen seen = seen_[key];
    if (!seen.id.has_value()) return WriteIfAbsent(key, id);
    KeyOperation write{.kind = Kind::kWriteIfAt, .made = id, .expected = seen.id};
    const auto revision = Timed(write, [&] {
      return store_.CompareAndSet(key, seen.revision, "v" + id,
                                  {.request_id = id, .timeout = options_.timeout});
    });
    const bool refused = MetaResultOf(revision.status()) == MetaResult::kConflict;
    if (Judge(revision.status(), refused, write)) Keep(key, std::move(write), revision);
  }
  void Delete(const std::string& key) {
    KeyOperation remove{.kind = Kind::kDelete};
    const auto revision =
        Timed(remove, [&] { return store_.Delete(key, {.timeout = options_.timeout}); });
    const bool refused = MetaResultOf(revision.status()) == MetaResult::kNotFound;
    if (Judge(revision.status(), refused, remove)) Keep(key, std::move(remove), revision);
  }

  MetaStore& store_;
  const MetaHistoryOptions& options_;
  const size_t number_;
  std::atomic<uint64_t>& moments_;
  SeededRng rng_;
  std::map<std::string, Seen> seen_;
  std::vector<Done> done_;
};

// Nothing missing, nothing twice, nothing invented, in order.
void ExpectShown(const std::vector<MetaEvent>& events, const std::vector<Done>& all) {
  std::map<std::string, const Done*> issued;
  std::map<uint64_t, const Done*> answered;
  for (const Done& each : all) {
    if (each.operation.made.has_value()) issued[*each.operation.made] = &each;
    if (each.revision != 0) answered[each.revision] = &each;
  }
  uint64_t last = 0;
  for (const MetaEvent& event : events) {
    EXPECT_GT(event.entry.revision, last) << "out of order, or twice";
    last = event.entry.revision;
    if (event.kind == MetaEvent::Kind::kPut) {
      const auto by = issued.find(event.entry.request_id);
      ASSERT_NE(by, issued.end()) << "invented: " << event.entry.request_id;
      EXPECT_EQ(by->second->key, event.entry.key);
      EXPECT_EQ(event.entry.value, "v" + event.entry.request_id);
      EXPECT_NE(by->second->operation.outcome, Outcome::kRefused);
      issued.erase(by);  // it happens once
    }
    const auto known = answered.find(event.entry.revision);
    if (known == answered.end()) continue;  // its answer was lost
    EXPECT_EQ(known->second->key, event.entry.key);
    EXPECT_EQ(event.kind == MetaEvent::Kind::kDelete,
              known->second->operation.kind == Kind::kDelete);
    answered.erase(known);
  }
  for (const auto& [revision, done] : answered) {
    ADD_FAILURE() << "never shown: revision " << revision << " of " << done->key;
  }
}

// From `from` on, with the end that the last event marks.
std::vector<MetaEvent> Watched(MetaStore& observer, const std::string& prefix, uint64_t from,
                               uint64_t end) {
  WatchLog log(observer, prefix, from);
  for (size_t count = 1;; ++count) {
    std::vector<MetaEvent> events = log.AwaitEvents(count);
    EXPECT_FALSE(log.resynced()) << "the history is not that long";
    if (log.resynced()) return {};
    if (events.size() < count || events.back().entry.revision < end) continue;
    events.pop_back();  // the mark
    return events;
  }
}

std::string Describe(const std::vector<KeyOperation>& operations) {
  std::string text;
  for (const KeyOperation& each : operations) {
    text +=
        fmt::format("  {:>3}..{:<3} kind {} outcome {} seen {} expected {} made {}\n", each.called,
                    each.answered, static_cast<int>(each.kind), static_cast<int>(each.outcome),
                    each.seen.value_or("-"), each.expected.value_or("-"), each.made.value_or("-"));
  }
  return text;
}

}  // namespace

void RunMetaHistory(const std::vector<MetaStore*>& clients, MetaStore& observer,
                    const MetaHistoryOptions& options) {
  SCOPED_TRACE(fmt::format("seed {}", options.seed));
  const std::string prefix = fmt::format("history/{}/", options.seed);
  const auto before = observer.List(prefix, {});
  ASSERT_OK(before);
  ASSERT_TRUE(before->entries.empty());

  std::atomic<uint64_t> moments{1};
  std::vector<std::unique_ptr<Client>> running;
  for (size_t i = 0; i < clients.size(); ++i) {
    running.push_back(std::make_unique<Client>(*clients[i], options, i, moments));
  }
  std::vector<std::thread> threads;
  std::latch all_there(static_cast<ptrdiff_t>(running.size()));
  for (const auto& client : running) {
    threads.emplace_back([&client, &all_there] {
      all_there.arrive_and_wait();
      client->Run();
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<Done> all;
  for (const auto& client : running) {
    all.insert(all.end(), client->done().begin(), client->done().end());
  }
  std::map<std::string, std::vector<KeyOperation>> of_key;
  for (const Done& each : all) of_key[each.key].push_back(each.operation);
  for (const auto& [key, operations] : of_key) {
    EXPECT_TRUE(IsLinearizable(operations)) << key << '\n' << Describe(operations);
  }

  if (!options.watches) return;
  const auto end = observer.Put(prefix + "end", "", {});
  ASSERT_OK(end);
  const std::vector<MetaEvent> events = Watched(observer, prefix, before->revision + 1, *end);
  ExpectShown(events, all);
  // Whoever lost its stream goes on from any revision.
  if (events.empty()) return;
  const uint64_t middle = events[events.size() / 2].entry.revision;
  const std::vector<MetaEvent> rest = Watched(observer, prefix, middle, *end);
  ASSERT_EQ(rest.size(), events.size() - events.size() / 2);
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i].entry.revision, events[events.size() / 2 + i].entry.revision);
  }
}

}  // namespace holdfast
