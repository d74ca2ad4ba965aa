#include "meta/meta_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "meta/meta_pages.h"

namespace holdfast {
namespace {

constexpr size_t kPageEntries = 1'000;

}  // namespace

MetaView::MetaView(MetaStore& meta, std::string prefix, MetaViewer& viewer, Clock& clock,
                   const MetaViewOptions& options)
    : meta_(meta),
      prefix_(std::move(prefix)),
      viewer_(viewer),
      clock_(clock),
      options_(options),
      fresh_at_(clock.Now()) {}

StatusOr<std::unique_ptr<MetaView>> MetaView::Open(MetaStore& meta, std::string prefix,
                                                   MetaViewer& viewer, Clock& clock,
                                                   const MetaViewOptions& options) {
  std::unique_ptr<MetaView> view(new MetaView(meta, std::move(prefix), viewer, clock, options));
  RETURN_IF_ERROR(view->ListAndWatch());
  view->thread_ = std::thread([self = view.get()] { self->Loop(); });
  return view;
}

MetaView::~MetaView() {
  std::unique_ptr<MetaWatch> watch;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  {
    MutexLock lock(mu_);
    watch = std::move(watch_);
  }
}

StatusOr<MetaList> MetaView::ListAll() {
  MetaList all;
  ASSIGN_OR_RETURN(all.revision,
                   ForEachEntry(meta_, prefix_, kPageEntries, [&all](const MetaEntry& entry) {
                     all.entries.push_back(entry);
                     return absl::OkStatus();
                   }));
  return all;
}

Status MetaView::ListAndWatch() {
  ASSIGN_OR_RETURN(const MetaList all, ListAll());
  {
    MutexLock lock(mu_);
    if (all.revision < revision_) {
      return Unavailable(Detail::kIo,
                         "the Meta is at revision {}, and was at {} before: it lost what it had",
                         all.revision, revision_);
    }
    ShowList(all);
    fresh_at_ = clock_.Now();
    lost_ = false;  // before the watch, which may say at once that it is
  }
  StatusOr<std::unique_ptr<MetaWatch>> watch = meta_.Watch(
      prefix_, all.revision + 1, [this](const MetaNotice& notice) { OnNotice(notice); }, {});
  MutexLock lock(mu_);
  if (!watch.ok()) {
    lost_ = true;
    return watch.status();
  }
  watch_ = *std::move(watch);
  return absl::OkStatus();
}

void MetaView::Reconcile() {
  const StatusOr<MetaList> all = ListAll();
  if (!all.ok()) return;  // the watch tells of that, and the next time comes
  MutexLock lock(mu_);
  ShowList(*all);
}

// What is known and not in the list is gone, unless a write of our own or the watch made it since.
void MetaView::ShowList(const MetaList& list) {
  std::set<std::string> missing;
  auto entry = list.entries.begin();
  for (const auto& [key, known] : known_) {
    while (entry != list.entries.end() && entry->key < key) ++entry;
    const bool listed = entry != list.entries.end() && entry->key == key;
    if (known.there && !listed && known.revision <= list.revision) missing.insert(key);
  }
  doubted_.swap(missing);
  for (auto key = doubted_.begin(); key != doubted_.end();) {
    if (!missing.contains(*key)) {
      ++key;
      continue;
    }
    ShowGone(*key, list.revision);
    key = doubted_.erase(key);
  }
  // What is unknown may have been there then, and be forgotten since.
  const bool overtaken = list.revision < revision_;
  for (const MetaEntry& each : list.entries) {
    if (!overtaken || known_.contains(each.key)) Show(each);
  }
  Reached(list.revision);
}

void MetaView::OnNotice(const MetaNotice& notice) {
  MutexLock lock(mu_);
  if (notice.kind == MetaNotice::Kind::kResync) {
    if (!lost_) fresh_at_ = clock_.Now();
    lost_ = true;
    wake_.NotifyAll();
    return;
  }
  for (const MetaEvent& event : notice.events) {
    if (event.kind == MetaEvent::Kind::kPut) {
      Show(event.entry);
    } else {
      ShowGone(event.entry.key, event.entry.revision);
    }
  }
  Reached(notice.revision);
}

void MetaView::NotePut(const MetaEntry& entry) {
  MutexLock lock(mu_);
  if (entry.revision > revision_) Show(entry);
}

void MetaView::NoteDelete(std::string_view key, uint64_t revision) {
  MutexLock lock(mu_);
  if (revision > revision_) ShowGone(key, revision);
}

void MetaView::Show(const MetaEntry& entry) {
  Known& known = known_[entry.key];
  if (entry.revision <= known.revision) return;
  known = {.revision = entry.revision};
  viewer_.Changed(entry);
}

void MetaView::ShowGone(std::string_view key, uint64_t revision) {
  const auto [place, added] = known_.try_emplace(std::string(key));
  Known& known = place->second;
  if (revision <= known.revision) return;
  const bool shown = !added && known.there;
  known = {.revision = revision, .there = false};
  gone_.emplace(revision, key);
  if (shown) viewer_.Gone(key);
}

// The watch brings nothing older any more: what is gone need not be remembered.
void MetaView::Reached(uint64_t revision) {
  if (!doubted_.empty()) return;
  revision_ = std::max(revision_, revision);
  while (!gone_.empty() && gone_.begin()->first <= revision_) {
    const auto known = known_.find(gone_.begin()->second);
    if (known != known_.end() && !known->second.there && known->second.revision <= revision_) {
      known_.erase(known);
    }
    gone_.erase(gone_.begin());
  }
}

uint64_t MetaView::revision() {
  MutexLock lock(mu_);
  return revision_;
}

absl::Duration MetaView::Staleness() {
  MutexLock lock(mu_);
  const bool unsure = lost_ || watch_ == nullptr || !doubted_.empty();
  return unsure ? clock_.Now() - fresh_at_ : watch_->Staleness();
}

void MetaView::Loop() {
  absl::Duration retry = options_.retry_min;
  absl::Duration next = clock_.Now() + options_.reconcile_every;
  for (;;) {
    std::unique_ptr<MetaWatch> old;
    bool lost = false;
    {
      MutexLock lock(mu_);
      while (!lost_ && !stopping_ && clock_.Now() < next) {
        wake_.WaitFor(mu_, clock_.Until(next));
      }
      if (stopping_) return;
      lost = lost_;
      if (lost) old = std::move(watch_);
    }
    old.reset();  // Without the lock: its last callback may be waiting for it.
    if (!lost) {
      Reconcile();
    } else if (ListAndWatch().ok()) {
      retry = options_.retry_min;
    } else {
      MutexLock lock(mu_);
      const absl::Duration until = clock_.Now() + retry;
      retry = std::min(2 * retry, options_.retry_max);
      while (!stopping_ && clock_.Now() < until) wake_.WaitFor(mu_, clock_.Until(until));
    }
    MutexLock lock(mu_);
    next = clock_.Now() + (doubted_.empty() ? options_.reconcile_every : options_.retry_min);
  }
}

}  // namespace holdfast
