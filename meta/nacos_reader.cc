#include "meta/nacos_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "meta/http/outcome.h"
#include "meta/md5.h"

namespace holdfast {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(20);

StatusOr<NacosStanding> StandingOfContent(std::string_view content) {
  NacosStanding standing;
  ASSIGN_OR_RETURN(standing.md5, Md5Hex(content));
  ASSIGN_OR_RETURN(standing.record, DecodeNacosRecord(content));
  return standing;
}

}  // namespace

MetaEntry ToMetaEntry(std::string_view key, const NacosStanding& standing) {
  const NacosRecord& record = *standing.record;
  return {.key = std::string(key),
          .value = record.value,
          .create_revision = record.create_revision,
          .revision = record.revision,
          .version = record.version,
          .request_id = record.request_id};
}

StatusOr<NacosStanding> NacosReader::Read(std::string_view key, absl::Duration deadline) {
  for (;;) {
    ASSIGN_OR_RETURN(NacosStanding standing, ReadOnce(key, deadline));
    if (standing.revision() >= revisions_.SeenOf(key)) {
      if (standing.record.has_value()) revisions_.Saw(key, standing.revision());
      return standing;
    }
    if (!Pause(deadline)) {
      return Unavailable(Detail::kNone,
                         "nacos: a config stands at revision {}, and was seen at {}: its server is "
                         "behind, or it was removed",
                         standing.revision(), revisions_.SeenOf(key));
    }
  }
}

StatusOr<NacosStanding> NacosReader::ReadOnce(std::string_view key, absl::Duration deadline) {
  const NacosPlace& place = client_.options().place;
  ASSIGN_OR_RETURN(const HttpResponse response, client_.Call(NacosGet(place, NacosDataId(key)),
                                                             NacosClient::Kind::kRead, deadline));
  const StatusOr<std::optional<NacosConfig>> config = ReadNacosConfig(place.api, response);
  if (!config.ok()) return AsRead(config.status());
  if (!config->has_value()) return NacosStanding();
  return StandingOfContent(*(*config)->content);
}

StatusOr<NacosSnapshot> NacosReader::ReadAll(std::string_view prefix, const NacosSnapshot* known,
                                             absl::Duration deadline) {
  for (;;) {
    NacosSnapshot snapshot{.prefix = std::string(prefix)};
    ASSIGN_OR_RETURN(snapshot.revision, revisions_.Settle(deadline));
    ASSIGN_OR_RETURN(std::optional<Standings> standings, ReadPages(prefix, known, deadline));
    if (standings.has_value()) {
      snapshot.standings = *std::move(standings);
      if (IsAsNew(snapshot)) {
        for (const auto& [key, standing] : snapshot.standings) {
          revisions_.Saw(key, standing.revision());
        }
        snapshot.revision = revisions_.Cover(snapshot.revision);
        return snapshot;
      }
    }
    if (!Pause(deadline)) {
      return Unavailable(Detail::kNone,
                         "nacos: its list is not whole, or older than what was seen");
    }
  }
}

StatusOr<std::optional<NacosReader::Standings>> NacosReader::ReadPages(std::string_view prefix,
                                                                       const NacosSnapshot* known,
                                                                       absl::Duration deadline) {
  const NacosPlace& place = client_.options().place;
  Standings standings;
  std::set<std::string> names;
  std::optional<size_t> total;
  for (NacosPageNumber number{.page = 1, .entries = client_.options().page_entries};;
       ++number.page) {
    ASSIGN_OR_RETURN(const HttpResponse response,
                     client_.Call(NacosSearch(place, NacosDataId(prefix), number),
                                  NacosClient::Kind::kRead, deadline));
    const StatusOr<NacosPage> page = ReadNacosPage(place.api, response);
    if (!page.ok()) return AsRead(page.status());
    // The pages are asked for one after another, and nothing holds them together but this.
    if (page->total != total.value_or(page->total)) return std::nullopt;
    total = page->total;
    for (const NacosConfig& config : page->configs) {
      names.insert(config.data_id);
      const std::optional<std::string> key = KeyOfNacosDataId(config.data_id);
      // A search may find more than was meant.
      if (!key.has_value() || !key->starts_with(prefix)) continue;
      ASSIGN_OR_RETURN(standings[*key], StandingOf(config, *key, known, deadline));
    }
    if (names.size() == *total) return standings;
    if (names.size() > *total || page->configs.empty()) return std::nullopt;
  }
}

StatusOr<NacosStanding> NacosReader::StandingOf(const NacosConfig& config, const std::string& key,
                                                const NacosSnapshot* known,
                                                absl::Duration deadline) {
  if (config.content.has_value()) return StandingOfContent(*config.content);
  if (known != nullptr) {
    const auto found = known->standings.find(key);
    if (found != known->standings.end() && found->second.md5 == config.md5) return found->second;
  }
  return ReadOnce(key, deadline);
}

bool NacosReader::IsAsNew(const NacosSnapshot& snapshot) {
  const std::map<std::string, uint64_t> seen = revisions_.SeenUnder(snapshot.prefix);
  return std::ranges::all_of(seen, [&snapshot](const auto& each) {
    // What was given out or seen since is not expected in it.
    if (each.second > snapshot.revision) return true;
    const auto found = snapshot.standings.find(each.first);
    return found != snapshot.standings.end() && found->second.revision() >= each.second;
  });
}

bool NacosReader::Pause(absl::Duration deadline) {
  const absl::Duration until = client_.clock().Now() + kPause;
  if (until >= deadline) return false;
  MutexLock lock(mu_);
  while (client_.clock().Now() < until) never_.WaitFor(mu_, client_.clock().Until(until));
  return true;
}

}  // namespace holdfast
