#include "runtime/meta_ledger.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "meta/meta_key.h"

namespace holdfast {
namespace {

constexpr std::string_view kKind = "dlq";

constexpr size_t kPageEntries = 1'000;

// Behind every key below `key`: no byte of one is 0xff.
std::string JustBefore(std::string key) {
  --key.back();
  key.push_back('\xff');
  return key;
}

std::string EncodePlace(const DeadLetterPlace& place) {
  return fmt::format("{}:{}", place.topic, place.offset);
}

// A topic may hold colons; the offset does not.
StatusOr<DeadLetterPlace> PlaceIn(const MetaEntry& entry) {
  const std::string_view value = entry.value;
  const size_t colon = value.rfind(':');
  DeadLetterPlace place;
  if (colon != std::string_view::npos) {
    const char* const end = value.data() + value.size();
    const auto [behind, error] = std::from_chars(value.data() + colon + 1, end, place.offset);
    if (error == std::errc() && behind == end) {
      place.topic = value.substr(0, colon);
      return place;
    }
  }
  return DataLoss("the value of {} does not decode", entry.key);
}

}  // namespace

MetaLedger::MetaLedger(MetaStore& meta, uint64_t nonce, Membership* membership)
    : meta_(meta), writer_(meta, nonce), membership_(membership), thread_([this] { Run(); }) {}

MetaLedger::~MetaLedger() {
  std::deque<Waiting> left;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    left.swap(waiting_);
    wake_.NotifyAll();
  }
  thread_.join();
  for (Waiting& entry : left) {
    entry.done(Unavailable(Detail::kClosed, "the ledger was closed before this was recorded"));
  }
}

void MetaLedger::Record(const Delivery& delivery, const DeadLetterPlace& place,
                        std::function<void(absl::Status)> done) {
  {
    MutexLock lock(mu_);
    if (!stopping_ && waiting_.size() < kWaitingMax) {
      waiting_.push_back({.id = delivery.id,
                          .source = {delivery.topic, delivery.incarnation, delivery.partition},
                          .place = place,
                          .done = std::move(done)});
      wake_.NotifyAll();
      return;
    }
  }
  done(Exhausted(Detail::kLimit, "{} entries wait for the ledger already", kWaitingMax));
}

void MetaLedger::Run() {
  for (;;) {
    Waiting entry;
    {
      MutexLock lock(mu_);
      while (waiting_.empty() && !stopping_) wake_.Wait(mu_);
      if (stopping_) return;
      entry = std::move(waiting_.front());
      waiting_.pop_front();
    }
    entry.done(Write(entry));
  }
}

Status MetaLedger::Write(const Waiting& entry) {
  const std::string key = MetaKey(kKind, {entry.id});
  MetaTransaction record{
      .conditions = {{.key = key, .must = MetaCondition::Must::kBeAbsent}},
      .changes = {{.kind = MetaChange::Kind::kPut, .key = key, .value = EncodePlace(entry.place)}}};
  if (membership_ != nullptr) {
    ASSIGN_OR_RETURN(MetaCondition fence, membership_->Fence(entry.source));
    record.conditions.push_back(std::move(fence));
  }
  const Status written = writer_.Transact(record).status();
  if (MetaResultOf(written) != MetaResult::kConflict) return written;
  // Recorded before, by whomever: that is what was wanted. Otherwise the fence has fallen.
  const StatusOr<bool> there = Has(entry.id);
  RETURN_IF_ERROR(there.status());
  if (*there) return absl::OkStatus();
  return MakeStatus(StatusCode::kPermissionDenied, Detail::kStaleOwner,
                    "another instance owns the partition of the delivery");
}

absl::StatusOr<bool> MetaLedger::Has(std::string_view id) {
  const StatusOr<MetaEntry> entry = meta_.Get(MetaKey(kKind, {id}), {});
  if (MetaResultOf(entry.status()) == MetaResult::kNotFound) return false;
  RETURN_IF_ERROR(entry.status());
  return true;
}

absl::StatusOr<std::vector<bool>> MetaLedger::HasAll(const std::vector<std::string>& ids) {
  std::vector<std::pair<std::string, size_t>> keys;  // and their places
  for (size_t i = 0; i < ids.size(); ++i) keys.emplace_back(MetaKey(kKind, {ids[i]}), i);
  std::sort(keys.begin(), keys.end());
  std::vector<bool> has(ids.size());
  for (auto next = keys.begin(); next != keys.end();) {
    const std::string after = JustBefore(next->first);
    ASSIGN_OR_RETURN(
        const MetaList page,
        meta_.List(MetaPrefix(kKind, {}),
                   {.limit = std::min(kPageEntries, static_cast<size_t>(keys.end() - next)),
                    .after = after}));
    for (const MetaEntry& entry : page.entries) {
      while (next != keys.end() && next->first < entry.key) ++next;
      for (; next != keys.end() && next->first == entry.key; ++next) has[next->second] = true;
    }
    if (!page.more) break;
  }
  return has;
}

StatusOr<DeadLetterPlace> MetaLedger::Find(std::string_view id) {
  ASSIGN_OR_RETURN(const MetaEntry entry, meta_.Get(MetaKey(kKind, {id}), {}));
  return PlaceIn(entry);
}

}  // namespace holdfast
