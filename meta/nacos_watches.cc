#include "meta/nacos_watches.h"

#include <algorithm>
#include <set>
#include <utility>

namespace holdfast {
namespace {

constexpr absl::Duration kLookTimeout = absl::Seconds(5);
// More than that in one long poll is too much to ask; the others wait for the next look.
constexpr size_t kListenedMax = 3'000;
// A server whose copies are behind its database names the same again at once.
constexpr absl::Duration kPause = absl::Milliseconds(50);

}  // namespace

NacosWatches::~NacosWatches() {
  std::thread ending;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
    ending = std::move(thread_);
  }
  if (ending.joinable()) ending.join();
}

std::unique_ptr<MetaWatch> NacosWatches::Watch(std::string_view prefix, NacosSnapshots::Ptr base,
                                               std::function<void(const MetaNotice&)> callback) {
  const absl::Duration now = client_.clock().Now();
  auto watched = std::make_shared<Watched>();
  watched->watcher =
      std::make_shared<MvccWatcher>(KeyRange::Prefix(prefix), 0, std::move(callback), now);
  watched->shown.prefix = prefix;
  watched->known = base != nullptr;
  if (base != nullptr) {
    for (const auto& [key, standing] : base->standings) {
      if (!key.starts_with(prefix)) continue;
      NacosStanding& shown = watched->shown.standings[key] = standing;
      if (shown.record.has_value()) shown.record->value.clear();
    }
  }
  MutexLock lock(mu_);
  const uint64_t id = next_id_++;
  watched_.emplace(id, watched);
  look_at_ = now;
  changed_.NotifyAll();
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  return std::make_unique<FollowerHandle>(watched->watcher, client_.clock(),
                                          [this, id] { Remove(id); });
}

void NacosWatches::Remove(uint64_t id) {
  MutexLock lock(mu_);
  watched_.erase(id);
}

void NacosWatches::Run() {
  for (;;) {
    const std::vector<WatchedPtr> all = AwaitLook();
    if (all.empty()) return;
    bool again = false;
    for (const WatchedPtr& watched : all) again = Look(*watched) || again;
    if (again) {
      MutexLock lock(mu_);
      look_at_ = client_.clock().Now();
    } else {
      Listen(all);
    }
  }
}

std::vector<NacosWatches::WatchedPtr> NacosWatches::AwaitLook() {
  Clock& clock = client_.clock();
  MutexLock lock(mu_);
  while (!stopping_ && (watched_.empty() || clock.Now() < look_at_)) {
    if (watched_.empty()) {
      changed_.Wait(mu_);
    } else {
      changed_.WaitFor(mu_, clock.Until(look_at_));
    }
  }
  std::vector<WatchedPtr> all;
  if (stopping_) return all;
  look_at_ = clock.Now() + client_.options().look_interval;
  for (const auto& [id, watched] : watched_) all.push_back(watched);
  return all;
}

bool NacosWatches::Look(Watched& watched) {
  if (watched.watcher->ended()) return false;
  if (!watched.known) {
    watched.watcher->Call({.kind = MetaNotice::Kind::kResync,
                           .events = {},
                           .revision = 0,
                           .reason = WrongState(Detail::kNone,
                                                "nacos keeps no past: a watch starts behind a list "
                                                "of its own process")});
    return false;
  }
  const absl::Duration began = client_.clock().Now();
  const StatusOr<NacosSnapshot> now =
      reader_.ReadAll(watched.shown.prefix, &watched.shown, began + kLookTimeout);
  if (!now.ok()) return false;
  const bool again = Show(watched, *now);
  watched.watcher->CaughtUp(began);
  return again;
}

void NacosWatches::Listen(const std::vector<WatchedPtr>& all) {
  if (client_.options().place.api != NacosApi::kV1) return;
  for (;;) {
    absl::Duration until;
    {
      MutexLock lock(mu_);
      if (stopping_) return;
      until = look_at_;
    }
    const absl::Duration hold = until - client_.clock().Now();
    const std::vector<NacosListened> configs = ListenedTo(all);
    if (configs.empty() || hold <= absl::ZeroDuration()) return;
    const StatusOr<HttpResponse> response =
        client_.Wait(NacosListen(client_.options().place, configs, hold), until);
    if (!response.ok()) return;
    const StatusOr<std::vector<std::string>> names = ReadNacosListened(*response);
    if (!names.ok()) return;
    bool newer = false;
    for (const WatchedPtr& watched : all) newer = LookAt(*watched, *names) || newer;
    MutexLock lock(mu_);
    if (!newer && !stopping_) changed_.WaitFor(mu_, kPause);
  }
}

std::vector<NacosListened> NacosWatches::ListenedTo(const std::vector<WatchedPtr>& all) {
  std::map<std::string, std::string> md5_of;  // by name
  for (const WatchedPtr& watched : all) {
    for (const auto& [key, standing] : watched->shown.standings) {
      if (md5_of.size() < kListenedMax) md5_of.try_emplace(NacosDataId(key), standing.md5);
    }
  }
  std::vector<NacosListened> configs;
  for (const auto& [name, md5] : md5_of) configs.push_back({.data_id = name, .md5 = md5});
  return configs;
}

bool NacosWatches::LookAt(Watched& watched, const std::vector<std::string>& names) {
  if (watched.watcher->ended() || !watched.known) return false;
  const absl::Duration deadline = client_.clock().Now() + kLookTimeout;
  const auto shown_of = [&watched](const std::string& key) {
    const auto found = watched.shown.standings.find(key);
    return found == watched.shown.standings.end() ? 0 : found->second.revision();
  };
  std::set<std::string> keys;
  for (const std::string& name : names) {
    const std::optional<std::string> key = KeyOfNacosDataId(name);
    if (key.has_value() && key->starts_with(watched.shown.prefix)) keys.insert(*key);
  }
  if (keys.empty()) return false;
  NacosSnapshot now{.prefix = watched.shown.prefix};
  const StatusOr<uint64_t> revision = revisions_.Settle(deadline);
  if (!revision.ok()) return false;
  now.revision = *revision;
  // With what this process has written meanwhile, `now` is whole up to its revision.
  for (const auto& [key, seen] : revisions_.SeenUnder(now.prefix)) {
    if (seen > shown_of(key)) keys.insert(key);
  }
  bool newer = false;
  for (const std::string& key : keys) {
    StatusOr<NacosStanding> standing = reader_.Read(key, deadline);
    if (!standing.ok()) return false;
    newer = newer || standing->revision() > shown_of(key);
    now.standings.emplace(key, *std::move(standing));
  }
  now.revision = revisions_.Cover(now.revision);
  Show(watched, now);
  return newer;
}

bool NacosWatches::Show(Watched& watched, const NacosSnapshot& now) {
  bool again = false;
  MetaNotice notice{.revision = now.revision};
  for (const auto& [key, standing] : now.standings) {
    NacosStanding& shown = watched.shown.standings[key];
    if (standing.revision() <= shown.revision()) continue;
    // In order for the writes of this process: what it wrote before this may not be in `now`.
    if (standing.revision() > now.revision) {
      again = true;
      continue;
    }
    if (standing.there()) {
      notice.events.push_back({.kind = MetaEvent::Kind::kPut, .entry = ToMetaEntry(key, standing)});
    } else {
      // Also where it was not shown before: a process knows of its own writes by itself.
      notice.events.push_back({.kind = MetaEvent::Kind::kDelete,
                               .entry = {.key = key, .revision = standing.revision()}});
    }
    shown = standing;
    shown.record->value.clear();
  }
  std::ranges::sort(notice.events, {}, [](const MetaEvent& each) { return each.entry.revision; });
  if (!notice.events.empty()) watched.watcher->Call(notice);
  return again;
}

}  // namespace holdfast
