#include "meta/mvcc_state.h"

#include <algorithm>

#include "journal/base/check.h"

namespace holdfast {
namespace {

size_t BytesOf(const MvccEvent& event) {
  const size_t before = event.before == nullptr ? 0 : event.before->value.size();
  return event.now->key.size() + event.now->value.size() + before;
}

bool Before(const MvccEntryPtr& entry, uint64_t revision) { return entry->mod_revision < revision; }

}  // namespace

void MvccState::Apply(const MvccChange& change, absl::Duration now) {
  if (const auto* put = std::get_if<MvccPut>(&change)) {
    ApplyPut(*put, now);
  } else if (const auto* erased = std::get_if<MvccDelete>(&change)) {
    ApplyDelete(*erased, now);
  } else if (const auto* grant = std::get_if<MvccLeaseGrant>(&change)) {
    const auto [place, inserted] = leases_.try_emplace(grant->id);
    if (!inserted && place->second.ttl == grant->ttl) return;  // stated again
    place->second.ttl = grant->ttl;
    SetDeadline(grant->id, place->second, now + grant->ttl);
  } else if (const auto* ended = std::get_if<MvccLeaseEnd>(&change)) {
    const auto found = leases_.find(ended->id);
    if (found == leases_.end()) return;
    lease_ends_.erase({found->second.deadline, ended->id});
    leases_.erase(found);
  } else {
    revision_ = std::max(revision_, std::get<MvccRevision>(change).revision);
  }
}

void MvccState::ApplyPut(const MvccPut& put, absl::Duration now) {
  const MvccEntry& entry = *put.entry;
  revision_ = std::max(revision_, entry.mod_revision);
  Versions& versions = keys_[entry.key];
  MvccEntryPtr before;
  if (!versions.empty()) {
    if (versions.back()->mod_revision >= entry.mod_revision) return;  // stated again
    if (!versions.back()->deleted()) before = versions.back();
  }
  if (before != nullptr) {
    Detach(*before);
  } else {
    ++live_count_;
  }
  if (!serving_) versions.clear();  // nobody reads what was before a restart
  versions.push_back(put.entry);
  Attach(entry);
  AddToHistory({.now = put.entry, .before = std::move(before)}, now);
}

void MvccState::ApplyDelete(const MvccDelete& erased, absl::Duration now) {
  revision_ = std::max(revision_, erased.revision);
  const auto found = keys_.find(erased.key);
  if (found == keys_.end()) return;
  Versions& versions = found->second;
  const MvccEntryPtr before = versions.back();
  if (before->deleted() || before->mod_revision >= erased.revision) return;
  Detach(*before);
  --live_count_;
  if (!serving_) {
    keys_.erase(found);
    return;
  }
  versions.push_back(std::make_shared<const MvccEntry>(
      MvccEntry{.key = erased.key, .mod_revision = erased.revision}));
  AddToHistory({.now = versions.back(), .before = before}, now);
}

void MvccState::BeginServing(uint64_t skip, absl::Duration now) {
  CHECK(!serving_);
  serving_ = true;
  revision_ += skip;
  if (revision_ > 1) {  // else nothing ever was
    compacted_ = revision_;
    history_begin_ = revision_ + 1;
  }
  for (auto& [id, lease] : leases_) SetDeadline(id, lease, now + lease.ttl);
}

void MvccState::Reset() {
  revision_ = 1;
  compacted_ = 0;
  history_begin_ = 1;
  serving_ = false;
  keys_.clear();
  live_count_ = 0;
  history_.clear();
  history_bytes_ = 0;
  leases_.clear();
  lease_ends_.clear();
  keys_of_lease_.clear();
}

MvccEntryPtr MvccState::Find(std::string_view key) const {
  const auto found = keys_.find(key);
  if (found == keys_.end() || found->second.back()->deleted()) return nullptr;
  return found->second.back();
}

StatusOr<MvccReadResult> MvccState::Read(const MvccRead& read) const {
  if (read.revision > revision_) return Refuse(MvccRefusal::kFutureRevision);
  if (read.revision != 0 && read.revision < compacted_) return Refuse(MvccRefusal::kCompacted);
  const uint64_t behind = (read.revision == 0 ? revision_ : read.revision) + 1;
  MvccReadResult result;
  for (auto key = keys_.lower_bound(read.range.begin);
       key != keys_.end() && read.range.Holds(key->first); ++key) {
    const Versions& versions = key->second;
    const auto next = std::lower_bound(versions.begin(), versions.end(), behind, Before);
    if (next == versions.begin() || (*std::prev(next))->deleted()) continue;
    ++result.count;
    if (read.count_only) continue;
    if (read.limit != 0 && result.entries.size() == read.limit) {
      result.more = true;
    } else {
      result.entries.push_back(*std::prev(next));
    }
  }
  return result;
}

void MvccState::Visit(const KeyRange& range,
                      const std::function<bool(const MvccEntryPtr&)>& visit) const {
  for (auto key = keys_.lower_bound(range.begin); key != keys_.end() && range.Holds(key->first);
       ++key) {
    const MvccEntryPtr& newest = key->second.back();
    if (!newest->deleted() && !visit(newest)) return;
  }
}

StatusOr<MvccState::Changes> MvccState::ChangesOf(const KeyRange& range, uint64_t from,
                                                  uint64_t through, size_t events_max) const {
  if (from < history_begin_) return Refuse(MvccRefusal::kCompacted);
  Changes changes{.events = {}, .next = std::max(from, through + 1)};
  auto revised = std::lower_bound(
      history_.begin(), history_.end(), from,
      [](const Revised& entry, uint64_t revision) { return entry.revision < revision; });
  for (; revised != history_.end() && revised->revision <= through; ++revised) {
    if (changes.events.size() >= events_max) {
      changes.next = revised->revision;
      break;
    }
    for (const MvccEvent& event : revised->events) {
      if (range.Holds(event.now->key)) changes.events.push_back(event);
    }
  }
  return changes;
}

Status MvccState::Compact(uint64_t revision) {
  if (revision > revision_) return Refuse(MvccRefusal::kFutureRevision);
  if (revision <= compacted_) return Refuse(MvccRefusal::kCompacted);
  CompactTo(revision);
  return absl::OkStatus();
}

void MvccState::Age(absl::Duration now) {
  uint64_t keep_from = 0;
  for (const Revised& revised : history_) {
    if (revised.at + limits_.age_max > now) break;
    keep_from = revised.revision + 1;
  }
  if (keep_from > compacted_) CompactTo(std::min(keep_from, revision_));
}

void MvccState::AddToHistory(MvccEvent event, absl::Duration now) {
  if (!serving_) return;
  const uint64_t revision = event.now->mod_revision;
  if (history_.empty() || history_.back().revision != revision) {
    CHECK(history_.empty() || history_.back().revision < revision);
    Bound();
    history_.push_back({.revision = revision, .at = now});
  }
  history_.back().bytes += BytesOf(event);
  history_bytes_ += BytesOf(event);
  history_.back().events.push_back(std::move(event));
}

void MvccState::Bound() {
  size_t count = history_.size() + 1;  // one more is about to come
  size_t bytes = history_bytes_;
  uint64_t keep_from = 0;
  for (const Revised& revised : history_) {
    if (count <= limits_.revisions_max && bytes <= limits_.bytes_max) break;
    --count;
    bytes -= revised.bytes;
    keep_from = revised.revision + 1;
  }
  if (keep_from > compacted_) CompactTo(keep_from);
}

// What history holds at `revision` itself stays: a watch may start there.
void MvccState::CompactTo(uint64_t revision) {
  compacted_ = revision;
  history_begin_ = std::max(history_begin_, revision);
  while (!history_.empty() && history_.front().revision < revision) {
    const Revised dropped = std::move(history_.front());
    history_.pop_front();
    history_bytes_ -= dropped.bytes;
    for (const MvccEvent& event : dropped.events) Trim(event.now->key, revision);
  }
  if (history_.empty() || history_.front().revision != revision) return;
  for (const MvccEvent& event : history_.front().events) Trim(event.now->key, revision);
}

void MvccState::Trim(const std::string& key, uint64_t revision) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return;
  Versions& versions = found->second;
  // What a read at `revision` finds is the first to be kept, unless it finds a deletion.
  auto keep = std::lower_bound(versions.begin(), versions.end(), revision + 1, Before);
  if (keep != versions.begin() && !(*std::prev(keep))->deleted()) --keep;
  versions.erase(versions.begin(), keep);
  if (versions.empty()) keys_.erase(found);
}

std::optional<MvccLeaseInfo> MvccState::LeaseInfo(uint64_t id, absl::Duration now) const {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return std::nullopt;
  const std::set<std::string>& keys = KeysOf(id);
  return MvccLeaseInfo{.id = id,
                       .granted = found->second.ttl,
                       .left = std::max(absl::ZeroDuration(), found->second.deadline - now),
                       .keys = {keys.begin(), keys.end()}};
}

std::vector<uint64_t> MvccState::Leases() const {
  std::vector<uint64_t> ids;
  for (const auto& [id, lease] : leases_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

const std::set<std::string>& MvccState::KeysOf(uint64_t lease) const {
  const auto found = keys_of_lease_.find(lease);
  return found == keys_of_lease_.end() ? no_keys_ : found->second;
}

StatusOr<absl::Duration> MvccState::KeepAlive(uint64_t id, absl::Duration now) {
  const auto found = leases_.find(id);
  if (found == leases_.end() || found->second.deadline <= now) {
    return Refuse(MvccRefusal::kLeaseNotFound);
  }
  SetDeadline(id, found->second, now + found->second.ttl);
  return found->second.ttl;
}

uint64_t MvccState::EndedLease(absl::Duration now) const {
  return NextLeaseEnd() <= now ? lease_ends_.begin()->second : 0;
}

absl::Duration MvccState::NextLeaseEnd() const {
  return lease_ends_.empty() ? absl::InfiniteDuration() : lease_ends_.begin()->first;
}

void MvccState::SetDeadline(uint64_t id, Lease& lease, absl::Duration deadline) {
  lease_ends_.erase({lease.deadline, id});
  lease.deadline = deadline;
  lease_ends_.insert({deadline, id});
}

void MvccState::Attach(const MvccEntry& entry) {
  if (entry.lease != 0) keys_of_lease_[entry.lease].insert(entry.key);
}

void MvccState::Detach(const MvccEntry& entry) {
  if (entry.lease == 0) return;
  const auto found = keys_of_lease_.find(entry.lease);
  CHECK(found != keys_of_lease_.end());
  found->second.erase(entry.key);
  if (found->second.empty()) keys_of_lease_.erase(found);
}

}  // namespace holdfast
