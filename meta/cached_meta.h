// CachedMeta: a copy of the entries under one prefix, decoded, that answers without asking the
// Meta.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "meta/meta_view.h"

namespace holdfast {

// What the entries mean. Called by one thread at a time.
template <typename Key, typename Value>
class MetaMeaning {
 public:
  virtual ~MetaMeaning() = default;
  virtual StatusOr<Key> KeyOf(std::string_view key) const = 0;
  virtual StatusOr<Value> ValueOf(const MetaEntry& entry) const = 0;
};

// Each key is as new as the watch has come, or newer: what this process wrote is there as soon as
// it was noted. It never goes back. See MetaView for how it is kept up.
// Threads: any. The destructor needs every other call to have returned.
template <typename Key, typename Value>
class CachedMeta final : private MetaViewer {
 public:
  // All are borrowed and outlive it. Errors: as MetaView::Open
  static StatusOr<std::unique_ptr<CachedMeta>> Open(MetaStore& meta, std::string prefix,
                                                    const MetaMeaning<Key, Value>& meaning,
                                                    Clock& clock,
                                                    const MetaViewOptions& options = {}) {
    std::unique_ptr<CachedMeta> cache(new CachedMeta(meaning));
    ASSIGN_OR_RETURN(cache->view_, MetaView::Open(meta, std::move(prefix), *cache, clock, options));
    return cache;
  }

  // Calls `read` with all that is there, by key. It must not call the cache, nor block.
  template <typename Read>
  auto With(const Read& read) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return read(std::as_const(values_));
  }
  // Keeps up with writes, see there: revision(), Staleness(), NotePut(), NoteDelete().
  MetaView& view() { return *view_; }
  // Entries that were left out because they do not decode: by a newer version, or damaged.
  uint64_t unreadable() const { return unreadable_.load(std::memory_order_relaxed); }

 private:
  explicit CachedMeta(const MetaMeaning<Key, Value>& meaning) : meaning_(meaning) {}

  void Changed(const MetaEntry& entry) override ABSL_LOCKS_EXCLUDED(mu_) {
    StatusOr<Key> key = meaning_.KeyOf(entry.key);
    StatusOr<Value> value = meaning_.ValueOf(entry);
    if (key.ok() && value.ok()) {
      MutexLock lock(mu_);
      values_.insert_or_assign(*std::move(key), *std::move(value));
      return;
    }
    unreadable_.fetch_add(1, std::memory_order_relaxed);
    if (key.ok()) Gone(entry.key);
  }
  void Gone(std::string_view key) override ABSL_LOCKS_EXCLUDED(mu_) {
    const StatusOr<Key> decoded = meaning_.KeyOf(key);
    if (!decoded.ok()) return;
    MutexLock lock(mu_);
    values_.erase(*decoded);
  }

  const MetaMeaning<Key, Value>& meaning_;
  std::atomic<uint64_t> unreadable_{0};
  Mutex mu_;  // Taken after the view's.
  std::map<Key, Value> values_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<MetaView> view_;  // Goes first: it calls this object.
};

}  // namespace holdfast
