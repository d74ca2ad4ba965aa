// AnswerWindow: the newest acknowledgements, by the number of the removal that each made, and by a
// hash of what the client sent. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "journal/base/checksum.h"
#include "journal/base/strong.h"

namespace holdfast {

// What a repeated acknowledgement has in common with the first (FORMAT.md §5).
inline uint64_t AnswerHash(std::string_view id, uint64_t epoch, std::string_view client,
                           std::string_view key) {
  return Checksum(AsBytes(key), Checksum(AsBytes(client), Checksum(AsBytes(id), epoch)));
}

struct RememberedAnswer {
  Lsn lsn;  // of the removal
  uint64_t hash = 0;
  Lsn basis;  // the record that it rests on: the removal, or the newest that states it again
  uint32_t segment = 0;  // where that lies

  bool operator==(const RememberedAnswer&) const = default;
};

// Holds the answers with the highest numbers of all that were added, in whatever order they came.
// One that comes in order costs some nanoseconds; so do late ones that are in order among
// themselves, as those of a compaction are.
// Threads: one at a time.
class AnswerWindow {
 public:
  explicit AnswerWindow(uint64_t answers_max) : answers_max_(answers_max) {}

  // Null: it is not there. Valid until the next change.
  RememberedAnswer* Find(Lsn lsn) {
    return const_cast<RememberedAnswer*>(std::as_const(*this).Find(lsn));
  }
  const RememberedAnswer* Find(Lsn lsn) const {
    if (const RememberedAnswer* found = FindIn(in_order_, lsn)) return found;
    return FindIn(late_, lsn);
  }
  // The number of one with this hash; none: there is none.
  Lsn FindHash(uint64_t hash) const {
    const auto found = by_hash_.find(hash);
    Lsn newest = found == by_hash_.end() ? Lsn() : found->second;
    for (size_t back = 1; back <= std::min(kBehind, in_order_.size()); ++back) {
      const RememberedAnswer& answer = in_order_[in_order_.size() - back];
      if (answer.hash == hash) newest = std::max(newest, answer.lsn);
    }
    return newest;
  }

  // Adds an answer, and gives back the one that is no longer among the newest: the one added, too.
  // Needs: its number is not there
  std::optional<RememberedAnswer> Add(const RememberedAnswer& answer) {
    if (!in_order_.empty() && answer.lsn <= in_order_.back().lsn) {
      late_.insert(LowerBound(late_, answer.lsn), answer);
      Enter(answer);
    } else {
      in_order_.push_back(answer);
      by_hash_.prefetch(answer.hash);
      if (in_order_.size() > kBehind) {
        Enter(in_order_[in_order_.size() - 1 - kBehind]);
        by_hash_.prefetch(in_order_[kBehind].hash);  // it leaves soon
      }
    }
    return size() > answers_max_ ? std::optional(TakeOldest()) : std::nullopt;
  }

  size_t size() const { return in_order_.size() + late_.size(); }
  void Clear() {
    in_order_.clear();
    late_.clear();
    by_hash_.clear();
  }

  // Visits those with `from` and higher numbers, in order, until `visit` answers false.
  template <typename Visit>  // bool(const RememberedAnswer&)
  void ForEachFrom(Lsn from, Visit visit) const {
    auto one = LowerBound(in_order_, from), other = LowerBound(late_, from);
    while (one != in_order_.end() || other != late_.end()) {
      const bool first = other == late_.end() || (one != in_order_.end() && one->lsn < other->lsn);
      if (!visit(first ? *one++ : *other++)) return;
    }
  }

 private:
  template <typename Answers>
  static decltype(std::declval<Answers&>().begin()) LowerBound(Answers& answers, Lsn lsn) {
    if (answers.empty() || answers.back().lsn < lsn) return answers.end();
    return std::lower_bound(
        answers.begin(), answers.end(), lsn,
        [](const RememberedAnswer& answer, Lsn wanted) { return answer.lsn < wanted; });
  }
  static const RememberedAnswer* FindIn(const std::deque<RememberedAnswer>& answers, Lsn lsn) {
    const auto found = LowerBound(answers, lsn);
    return found != answers.end() && found->lsn == lsn ? &*found : nullptr;
  }
  void Enter(const RememberedAnswer& answer) {
    // At half its room at most, or what is erased would leave marks that make it slow.
    if (by_hash_.size() >= by_hash_.capacity() / 2) by_hash_.reserve(by_hash_.capacity() + 1);
    Lsn& newest = by_hash_[answer.hash];
    newest = std::max(newest, answer.lsn);
  }
  RememberedAnswer TakeOldest() {
    const bool late =
        in_order_.empty() || (!late_.empty() && late_.front().lsn < in_order_.front().lsn);
    std::deque<RememberedAnswer>& from = late ? late_ : in_order_;
    const RememberedAnswer oldest = from.front();
    from.pop_front();
    const auto found = by_hash_.find(oldest.hash);
    if (found != by_hash_.end() && found->second == oldest.lsn) by_hash_.erase(found);
    return oldest;
  }

  // The newest in order are not in by_hash_ yet: their places there are on the way to the cache.
  static constexpr size_t kBehind = 4;

  const uint64_t answers_max_;
  // Both in order of their numbers. What comes behind the newest goes to the first, the rest, which
  // only a recovery has, to the second.
  std::deque<RememberedAnswer> in_order_, late_;
  absl::flat_hash_map<uint64_t, Lsn> by_hash_;  // the newest of each, but for kBehind
};

}  // namespace holdfast
