#include "tests/sim/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "journal/base/check.h"

namespace holdfast {

size_t History::Begin(std::vector<Change> changes) {
  for (const Change& change : changes) names_.Add(change);
  Model next = states_.back();
  const ModelAnswer answer = next.Apply(changes);
  states_.push_back(std::move(next));
  Entry& entry = entries_.emplace_back();
  entry.changes = std::move(changes);
  entry.changed = answer.changed;
  entry.refused = answer.code != absl::StatusCode::kOk;
  return entries_.size() - 1;
}

std::string History::End(size_t index, const Commit& commit) {
  Entry& entry = entries_[index];
  entry.ended = true;
  Model before = states_[index];
  const ModelAnswer want = before.Apply(entry.changes);
  const ModelAnswer real{commit.refused().code(), commit.refused().ok() && commit.changed()};
  if (real != want) {
    return fmt::format("{}: the engine says {} changed={}, the model {} changed={}",
                       Describe(entry.changes), absl::StatusCodeToString(real.code), real.changed,
                       absl::StatusCodeToString(want.code), want.changed);
  }
  if (entry.refused) return "";
  entry.lsn = commit.lsn();
  if (entry.changed) {
    if (commit.lsn() <= lsn_max_) {
      return fmt::format("{}: LSN {} was given before; the highest is {}", Describe(entry.changes),
                         commit.lsn(), lsn_max_);
    }
    lsn_max_ = commit.lsn();
  }
  entry.commit = commit;
  entry.commit_open = true;
  open_.push_back(index);
  return "";
}

// An answer "nothing to change" stays true only if the call that made it so stays: the last one
// after which this one was a no-op, and before which it was not.
size_t History::NeededFor(size_t index) const {
  if (entries_[index].changed) return index + 1;
  for (size_t count = index; count > 0; --count) {
    Model before = states_[count - 1];
    if (before.Apply(entries_[index].changes).changed) return count;
  }
  return 0;
}

void History::Confirm(size_t index) {
  Entry& entry = entries_[index];
  if (entry.confirmed || entry.refused) return;
  entry.confirmed = true;
  ++confirmed_count_;
  required_ = std::max(required_, NeededFor(index));
}

void History::Poll() {
  std::erase_if(open_, [&](size_t index) {
    if (!entries_[index].commit.confirmed()) return false;
    Confirm(index);
    return true;
  });
}

void History::CloseCommits() {
  for (const size_t index : open_) entries_[index].commit = Commit();
  open_.clear();
}

bool History::AllConfirmed() const {
  return std::all_of(entries_.begin() + static_cast<std::ptrdiff_t>(required_), entries_.end(),
                     [](const Entry& entry) { return !entry.changed; });
}

void History::EndRefused(size_t index, bool may_appear) {
  CHECK(index + 1 == entries_.size());
  if (may_appear) {
    entries_[index].ended = entries_[index].may_appear = true;
    return;
  }
  entries_.pop_back();
  states_.pop_back();
}

size_t History::CountThrough(uint64_t lsn) const {
  size_t count = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    // What changed nothing has no place of its own: it is there with what stands before it.
    if (entry.changed && (entry.lsn == 0 || entry.lsn > lsn)) break;
    count = i + 1;
  }
  return count;
}

History::Verdict History::Judge(const Model& found, uint64_t last_lsn, size_t required,
                                size_t begun) const {
  CHECK(required <= begun);
  CHECK(begun < states_.size());
  size_t count = std::min(CountThrough(last_lsn), begun);
  // Behind that only calls whose numbers nobody learnt.
  while (!(states_[count] == found) && count < begun && entries_[count].may_appear) ++count;
  if (!(states_[count] == found)) {
    std::string others;
    for (size_t i = 0; i <= begun; ++i) {
      if (states_[i] == found) others += fmt::format(" {}", i);
    }
    return {count, fmt::format(
                       "recovery says last LSN {}, so the state must be that after {} of {} calls; "
                       "it is that after{}. Compared:{}",
                       last_lsn, count, begun, others.empty() ? " none of them" : others,
                       states_[count].DifferenceTo(found))};
  }
  if (count < required) {
    return {count,
            fmt::format("only the first {} of {} calls are there, and {} had to be; the first one "
                        "lost is: {}",
                        count, begun, required, Describe(entries_[count].changes))};
  }
  return {count, ""};
}

void History::CutTo(size_t count) {
  entries_.resize(count);
  states_.resize(count + 1);
  std::erase_if(open_, [&](size_t index) { return index >= count; });
  CHECK(required_ <= count);
}

}  // namespace holdfast
