#include "stores/memory_stores.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "stores/nanos.h"

namespace holdfast {
namespace {

Status NoDelivery() { return NotFound("no live delivery of this id"); }
Commit Closed() { return Commit(WrongState(Detail::kClosed, "the engine was closed")); }
Status NoDeadLetter() { return NotFound("no dead letter of this id"); }

// Visits copies of the values that a map of `state` holds now and still holds when their turn
// comes, without the lock.
template <typename Map, typename Visit>
void VisitEach(MemoryState& state, Map MemoryState::* map, const Visit& visit) {
  std::vector<std::string> ids;
  {
    MutexLock lock(state.mu);
    ids.reserve((state.*map).size());
    for (const auto& [id, value] : state.*map) ids.push_back(id);
  }
  for (const std::string& id : ids) {
    typename Map::mapped_type value;
    {
      MutexLock lock(state.mu);
      const auto found = (state.*map).find(std::string_view(id));
      if (found == (state.*map).end()) continue;
      value = found->second;
    }
    if (!visit(value)) return;
  }
}

std::optional<uint64_t> AnswerOf(const Removal& removal) {
  if (removal.reason != Reason::kAcked || !removal.idempotency_key) return std::nullopt;
  return AnswerHash(removal.id, removal.epoch, removal.client, *removal.idempotency_key);
}

}  // namespace

bool MemoryState::Put(Delivery delivery) {
  auto found = deliveries.find(std::string_view(delivery.id));
  if (found == deliveries.end()) found = deliveries.emplace(delivery.id, StoredDelivery()).first;
  // What a record keeps of a time.
  delivery.due = DurationFromNanos(ToNanos(delivery.due));
  delivery.created = TimeFromNanos(ToNanos(delivery.created));
  found->second = {.delivery = std::move(delivery), .lsn = ++lsn, .durable = true};
  return true;
}

bool MemoryState::Update(const Reschedule& reschedule) {
  const auto found = deliveries.find(reschedule.id);
  if (found == deliveries.end()) return false;
  Delivery& delivery = found->second.delivery;
  delivery.epoch = reschedule.epoch;
  delivery.attempt = reschedule.attempt;
  delivery.due = DurationFromNanos(ToNanos(reschedule.due));
  found->second.lsn = ++lsn;
  return true;
}

bool MemoryState::Remove(std::string_view id, std::optional<uint64_t> answer) {
  const auto found = deliveries.find(id);
  if (found == deliveries.end()) return false;
  deliveries.erase(found);
  ++lsn;
  if (answer) {
    // Which one is forgotten for it does not matter: nothing rests on that.
    (void)answers.Add({.lsn = Lsn(lsn), .hash = *answer, .basis = Lsn(lsn)});  // forgotten
  }
  return true;
}

bool MemoryState::Advance(const OffsetKey& key, OffsetPosition position) {
  const auto found = offsets.find(ViewOf(key));
  if (found == offsets.end()) {
    offsets.emplace(PositionKey(ViewOf(key)),
                    StoredOffset{.key = key, .position = position, .lsn = ++lsn, .durable = true});
    return true;
  }
  if (position <= found->second.position) return false;
  found->second.position = position;
  found->second.lsn = ++lsn;
  return true;
}

bool MemoryState::Start(const OffsetKey& key, OffsetPosition start) {
  const auto [found, inserted] = starts.try_emplace(PositionKey(ViewOf(key)), start);
  if (!inserted && start.incarnation <= found->second.incarnation) return false;
  found->second = start;
  ++lsn;
  return true;
}

bool MemoryState::Forget(const OffsetKey& key) {
  const size_t forgotten = offsets.erase(ViewOf(key)) + starts.erase(ViewOf(key));
  if (forgotten == 0) return false;
  ++lsn;
  return true;
}

bool MemoryState::Seen(const SourceKey& key, uint64_t through) {
  SourceProgress& progress = sources[PositionKey(ViewOf(key))];
  if (progress.has_seen && through <= progress.seen) return false;
  progress.has_seen = true;
  progress.seen = through;
  progress.lsn = ++lsn;
  progress.durable = true;
  return true;
}

bool MemoryState::Cursor(const SourceKey& key, uint64_t cursor) {
  SourceProgress& progress = sources[PositionKey(ViewOf(key))];
  if (progress.has_cursor && cursor <= progress.cursor) return false;
  progress.has_cursor = true;
  progress.cursor = cursor;
  progress.lsn = ++lsn;
  progress.durable = true;
  return true;
}

bool MemoryState::Record(DeadLetter dead_letter) {
  if (dead_letters.contains(std::string_view(dead_letter.delivery_id))) return false;
  dead_letter.died = TimeFromNanos(ToNanos(dead_letter.died));
  std::string id = dead_letter.delivery_id;
  dead_letters.emplace(
      std::move(id),
      StoredDeadLetter{
          .dead_letter = std::move(dead_letter), .replays = 0, .lsn = ++lsn, .durable = true});
  return true;
}

bool MemoryState::Purge(std::string_view id) {
  const auto found = dead_letters.find(id);
  if (found == dead_letters.end()) return false;
  dead_letters.erase(found);
  ++lsn;
  return true;
}

void MemoryTransaction::Begin(MemoryState& state) {
  state_ = &state;
  refused_ = absl::OkStatus();
  has_updates_ = false;
  changes_.clear();
}

Commit MemoryTransaction::Apply() {
  if (!refused_.ok()) return Commit(refused_);
  MutexLock lock(state_->mu);
  if (state_->closed) return Closed();
  if (has_updates_) {
    if (Status judged = JudgeUpdates(); !judged.ok()) return Commit(std::move(judged));
  }
  bool changed = false;
  for (Change& change : changes_) changed |= Make(change);
  return state_->Done(changed);
}

Status MemoryTransaction::JudgeUpdates() const {
  std::unordered_map<std::string_view, bool> live;  // what earlier changes leave of an id
  for (const Change& change : changes_) {
    if (const auto* put = std::get_if<Delivery>(&change)) {
      live[put->id] = true;
    } else if (const auto* remove = std::get_if<Remove>(&change)) {
      live[remove->id] = false;
    } else if (const auto* update = std::get_if<Update>(&change)) {
      const auto found = live.find(update->id);
      if (found != live.end() ? !found->second
                              : !state_->deliveries.contains(std::string_view(update->id))) {
        return NoDelivery();
      }
    }
  }
  return absl::OkStatus();
}

bool MemoryTransaction::Make(Change& change) {
  if (auto* put = std::get_if<Delivery>(&change)) return state_->Put(std::move(*put));
  if (auto* update = std::get_if<Update>(&change)) return state_->Update(update->view());
  if (auto* remove = std::get_if<Remove>(&change)) {
    return state_->Remove(remove->id, remove->answer);
  }
  if (auto* advance = std::get_if<Advance>(&change)) {
    return state_->Advance(advance->key, advance->position);
  }
  if (auto* start = std::get_if<Start>(&change)) return state_->Start(start->key, start->start);
  if (auto* forget = std::get_if<Forget>(&change)) return state_->Forget(forget->key);
  if (auto* seen = std::get_if<Seen>(&change)) return state_->Seen(seen->key, seen->through);
  if (auto* cursor = std::get_if<Cursor>(&change)) {
    return state_->Cursor(cursor->key, cursor->cursor);
  }
  if (auto* dead = std::get_if<DeadLetter>(&change)) return state_->Record(std::move(*dead));
  return state_->Purge(std::get<Purge>(change).id);
}

void MemoryTransaction::Add(const Status& checked, Change change) {
  if (!refused_.ok()) return;
  refused_ = checked;
  if (refused_.ok() && changes_.size() == kChangesMax) {
    refused_ = Invalid("a transaction holds at most {} changes", kChangesMax);
  }
  if (refused_.ok()) changes_.push_back(std::move(change));
}

void MemoryTransaction::PutDelivery(const Delivery& delivery) {
  Add(CheckDelivery(delivery, state_->limits), delivery);
}
void MemoryTransaction::UpdateDelivery(const Reschedule& reschedule) {
  has_updates_ = true;
  Add(CheckReschedule(reschedule),
      Update{std::string(reschedule.id), reschedule.epoch, reschedule.attempt, reschedule.due});
}
void MemoryTransaction::RemoveDelivery(const Removal& removal) {
  Add(CheckRemoval(removal), Remove{std::string(removal.id), AnswerOf(removal)});
}
void MemoryTransaction::WriteOffset(const OffsetKey& key, OffsetPosition position) {
  Status checked = CheckOffsetKey(key);
  if (checked.ok()) checked = CheckOffset("next", position.next);
  Add(checked, Advance{key, position});
}
void MemoryTransaction::WriteStart(const OffsetKey& key, OffsetPosition start) {
  Status checked = CheckOffsetKey(key);
  if (checked.ok()) checked = CheckOffset("start", start.next);
  Add(checked, Start{key, start});
}
void MemoryTransaction::ForgetOffset(const OffsetKey& key) {
  Add(CheckOffsetKey(key), Forget{key});
}
void MemoryTransaction::SourceSeen(const SourceKey& key, uint64_t through) {
  Status checked = CheckSource(key);
  if (checked.ok()) checked = CheckOffset("through", through);
  Add(checked, Seen{key, through});
}
void MemoryTransaction::SourceCursor(const SourceKey& key, uint64_t cursor) {
  Status checked = CheckSource(key);
  if (checked.ok()) checked = CheckOffset("cursor", cursor);
  Add(checked, Cursor{key, cursor});
}
void MemoryTransaction::RecordDeadLetter(const DeadLetter& dead_letter) {
  Add(CheckDeadLetter(dead_letter, state_->limits), dead_letter);
}
void MemoryTransaction::PurgeDeadLetter(std::string_view delivery_id) {
  Add(CheckDeliveryId(delivery_id), Purge{std::string(delivery_id)});
}

StatusOr<StoredOffset> MemoryOffsetStore::Read(const OffsetKey& key) {
  MutexLock lock(state_.mu);
  const auto found = state_.offsets.find(ViewOf(key));
  if (found != state_.offsets.end()) return found->second;
  return NotFound("no offset was ever written for this topic, client and partition");
}

StatusOr<OffsetPosition> MemoryOffsetStore::ReadStart(const OffsetKey& key) {
  MutexLock lock(state_.mu);
  const auto found = state_.starts.find(ViewOf(key));
  if (found != state_.starts.end()) return found->second;
  return NotFound("no start was written for this topic, client and partition");
}

Commit MemoryOffsetStore::Write(const OffsetKey& key, OffsetPosition position) {
  Status checked = CheckOffsetKey(key);
  if (checked.ok()) checked = CheckOffset("next", position.next);
  if (!checked.ok()) return Commit(std::move(checked));
  MutexLock lock(state_.mu);
  if (state_.closed) return Closed();
  return state_.Done(state_.Advance(key, position));
}

Commit MemoryOffsetStore::Forget(const OffsetKey& key) {
  if (Status checked = CheckOffsetKey(key); !checked.ok()) return Commit(std::move(checked));
  MutexLock lock(state_.mu);
  if (state_.closed) return Closed();
  return state_.Done(state_.Forget(key));
}

template <typename Wanted>
std::vector<StoredOffset> MemoryOffsetStore::Select(Wanted wanted) {
  std::vector<StoredOffset> selected;
  {
    MutexLock lock(state_.mu);
    for (const auto& [key, offset] : state_.offsets) {
      if (wanted(offset)) selected.push_back(offset);
    }
  }
  std::sort(selected.begin(), selected.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return selected;
}

std::vector<StoredOffset> MemoryOffsetStore::ReadTopic(std::string_view topic) {
  return Select([&](const StoredOffset& offset) { return offset.key.topic == topic; });
}

std::vector<StoredOffset> MemoryOffsetStore::ReadAll() {
  return Select([](const StoredOffset&) { return true; });
}

std::vector<std::string> MemoryOffsetStore::Topics() {
  std::vector<std::string> topics;
  {
    MutexLock lock(state_.mu);
    for (const auto& [key, offset] : state_.offsets) topics.push_back(key.topic);
  }
  std::sort(topics.begin(), topics.end());
  topics.erase(std::unique(topics.begin(), topics.end()), topics.end());
  return topics;
}

StatusOr<SourceProgress> MemoryOffsetStore::ReadSource(const SourceKey& key) {
  MutexLock lock(state_.mu);
  const auto found = state_.sources.find(ViewOf(key));
  if (found != state_.sources.end()) return found->second;
  return NotFound("nothing is recorded of this source");
}

Commit MemoryDeliveryStateStore::Put(const Delivery& delivery) {
  if (Status checked = CheckDelivery(delivery, state_.limits); !checked.ok()) {
    return Commit(std::move(checked));
  }
  MutexLock lock(state_.mu);
  if (state_.closed) return Closed();
  return state_.Done(state_.Put(delivery));
}

Commit MemoryDeliveryStateStore::Update(const Reschedule& reschedule) {
  if (Status checked = CheckReschedule(reschedule); !checked.ok()) {
    return Commit(std::move(checked));
  }
  MutexLock lock(state_.mu);
  if (state_.closed) return Closed();
  if (!state_.Update(reschedule)) return Commit(NoDelivery());
  return state_.Done(true);
}

Commit MemoryDeliveryStateStore::Remove(const Removal& removal) {
  if (Status checked = CheckRemoval(removal); !checked.ok()) return Commit(std::move(checked));
  MutexLock lock(state_.mu);
  if (state_.closed) return Closed();
  return state_.Done(state_.Remove(removal.id, AnswerOf(removal)));
}

StatusOr<StoredDelivery> MemoryDeliveryStateStore::Get(std::string_view id) {
  MutexLock lock(state_.mu);
  const auto found = state_.deliveries.find(id);
  if (found == state_.deliveries.end()) return NoDelivery();
  return found->second;
}

StatusOr<StoredSchedule> MemoryDeliveryStateStore::GetSchedule(std::string_view id) {
  MutexLock lock(state_.mu);
  const auto found = state_.deliveries.find(id);
  if (found == state_.deliveries.end()) return NoDelivery();
  const Delivery& delivery = found->second.delivery;
  return StoredSchedule{.epoch = delivery.epoch,
                        .attempt = delivery.attempt,
                        .due = delivery.due,
                        .lsn = found->second.lsn,
                        .durable = true};
}

Commit MemoryDeliveryStateStore::Answered(const Removal& acknowledgement) {
  const std::optional<uint64_t> answer = AnswerOf(acknowledgement);
  MutexLock lock(state_.mu);
  if (answer && state_.answers.FindHash(*answer)) return state_.Done(false);
  return Commit(NotFound("no such acknowledgement is remembered"));
}

Status MemoryDeliveryStateStore::Iterate(const std::function<bool(const StoredDelivery&)>& visit) {
  VisitEach(state_, &MemoryState::deliveries, visit);
  return absl::OkStatus();
}

uint64_t MemoryDeliveryStateStore::Count() {
  MutexLock lock(state_.mu);
  return state_.deliveries.size();
}

Commit MemoryDeadLetterStore::Record(const DeadLetter& dead_letter) {
  if (Status checked = CheckDeadLetter(dead_letter, state_.limits); !checked.ok()) {
    return Commit(std::move(checked));
  }
  MutexLock lock(state_.mu);
  if (state_.closed) return Closed();
  return state_.Done(state_.Record(dead_letter));
}

StatusOr<DeadLetterStore::Presence> MemoryDeadLetterStore::IsDeadLettered(
    std::string_view delivery_id) {
  MutexLock lock(state_.mu);
  return Presence{.recorded = state_.dead_letters.contains(delivery_id), .durable = true};
}

StatusOr<StoredDeadLetter> MemoryDeadLetterStore::Get(std::string_view delivery_id) {
  MutexLock lock(state_.mu);
  const auto found = state_.dead_letters.find(delivery_id);
  if (found == state_.dead_letters.end()) return NoDeadLetter();
  return found->second;
}

Status MemoryDeadLetterStore::Iterate(const std::function<bool(const StoredDeadLetter&)>& visit) {
  VisitEach(state_, &MemoryState::dead_letters, visit);
  return absl::OkStatus();
}

uint64_t MemoryDeadLetterStore::Count() {
  MutexLock lock(state_.mu);
  return state_.dead_letters.size();
}

Commit MemoryDeadLetterStore::Redrive(std::string_view delivery_id, const RedriveAs& as) {
  if (Status checked = CheckRedrive(delivery_id, as); !checked.ok()) {
    return Commit(std::move(checked));
  }
  MutexLock lock(state_.mu);
  if (state_.closed) return Closed();
  const auto found = state_.dead_letters.find(delivery_id);
  if (found == state_.dead_letters.end()) return Commit(NoDeadLetter());
  if (state_.deliveries.contains(as.new_id)) {
    return Commit(AlreadyExists("a delivery of this id is in flight"));
  }
  StoredDeadLetter& stored = found->second;
  const DeadLetter& dead = stored.dead_letter;
  state_.Put({.id = std::string(as.new_id),
              .epoch = dead.epoch,
              .topic = dead.topic,
              .incarnation = dead.incarnation,
              .partition = dead.partition,
              .offset = std::nullopt,
              .client = dead.client,
              .attempt = 0,
              .due = as.due,
              .created = as.created,
              .redriven_from = dead.delivery_id,
              .event = dead.event});
  ++stored.replays;
  stored.lsn = ++state_.lsn;
  return state_.Done(true);
}

Commit MemoryDeadLetterStore::Purge(std::string_view delivery_id) {
  if (Status checked = CheckDeliveryId(delivery_id); !checked.ok()) {
    return Commit(std::move(checked));
  }
  MutexLock lock(state_.mu);
  if (state_.closed) return Closed();
  return state_.Done(state_.Purge(delivery_id));
}

}  // namespace holdfast
