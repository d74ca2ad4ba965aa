#include "runtime/delivery_book.h"

#include <algorithm>
#include <utility>

#include "journal/base/check.h"

namespace holdfast {
namespace {

constexpr int64_t kBornGrainMillis = 10;

}  // namespace

uint32_t DeliveryBook::SourceOf(const SourceKey& key) {
  const auto [found, inserted] =
      source_of_.try_emplace(key, static_cast<uint32_t>(sources_.size()));
  if (inserted) sources_.push_back({.key = key});
  return found->second;
}

uint32_t DeliveryBook::ClientOf(std::string_view name) {
  if (const uint32_t found = FindClient(name); found != kNone) return found;
  const auto index = static_cast<uint32_t>(clients_.size());
  client_of_.emplace(std::string(name), index);
  clients_.push_back({.name = std::string(name)});
  return index;
}

uint32_t DeliveryBook::FindClient(std::string_view name) const {
  const auto found = client_of_.find(name);
  return found == client_of_.end() ? kNone : found->second;
}

uint32_t DeliveryBook::FindTrack(uint32_t source, uint32_t client) const {
  const auto found = track_of_.find({source, client});
  return found == track_of_.end() ? kNone : found->second;
}

uint32_t DeliveryBook::AddTrack(uint32_t source, uint32_t client, std::optional<uint64_t> start) {
  const auto index = static_cast<uint32_t>(tracks_.size());
  CHECK(track_of_.emplace(std::pair(source, client), index).second);
  tracks_.push_back({.source = source, .client = client, .start = start});
  sources_[source].tracks.push_back(index);
  clients_[client].tracks.push_back(index);
  return index;
}

Slot DeliveryBook::Add(std::string_view id, uint32_t track, std::optional<uint64_t> offset,
                       uint64_t event) {
  const Slot slot = flights_.Take();
  Flight& flight = flights_[slot];
  flight = Flight();
  flight.id = ids_.Add(id);
  flight.track = track;
  flight.phase = Phase::kArmed;
  flight.numbered = offset.has_value();
  flight.offset = flight.numbered ? *offset : event != 0 ? event : next_unnumbered_++;
  CHECK(by_id_.insert(slot).second);
  WindowOf(flight).Add(flight.offset, slot);
  ++ClientOfFlight(flight).in_flight;
  return slot;
}

Slot DeliveryBook::Find(std::string_view id) const {
  const std::optional<FlightKey> key = ids_.Find(id);
  return key.has_value() ? FindKey(*key) : kNone;
}

Slot DeliveryBook::FindKey(FlightKey id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? kNone : *found;
}

Slot DeliveryBook::FindAt(uint32_t track, uint64_t offset) const {
  return tracks_[track].numbered.Find(offset);
}

PendingWindow& DeliveryBook::WindowOf(const Flight& flight) {
  Track& track = tracks_[flight.track];
  return flight.numbered ? track.numbered : track.unnumbered;
}

uint64_t DeliveryBook::EpochOf(const Flight& flight) const {
  return flight.large_ ? large_.find(flight.id)->second.epoch : flight.epoch_;
}

void DeliveryBook::SetEpoch(Flight& flight, uint64_t epoch) {
  if (flight.large_ || epoch > UINT32_MAX) {
    LargeOf(flight).epoch = epoch;
  } else {
    flight.epoch_ = static_cast<uint32_t>(epoch);
  }
}

uint32_t DeliveryBook::AttemptOf(const Flight& flight) const {
  return flight.large_ ? large_.find(flight.id)->second.attempt : flight.attempt_;
}

void DeliveryBook::SetAttempt(Flight& flight, uint32_t attempt) {
  if (flight.large_ || attempt > Flight::kAttemptMax) {
    LargeOf(flight).attempt = attempt;
  } else {
    flight.attempt_ = attempt & Flight::kAttemptMax;
  }
}

uint32_t DeliveryBook::ChannelOf(const Flight& flight) const {
  if (flight.large_) return large_.find(flight.id)->second.channel;
  return flight.channel_ == Flight::kNoChannel ? kNone : flight.channel_;
}

void DeliveryBook::SetChannel(Flight& flight, uint32_t channel) {
  if (flight.large_ || (channel != kNone && channel >= Flight::kNoChannel)) {
    LargeOf(flight).channel = channel;
  } else {
    flight.channel_ = channel & Flight::kNoChannel;  // kNone has all bits
  }
}

absl::Duration DeliveryBook::BornOf(const Flight& flight) const {
  return absl::Milliseconds(kBornGrainMillis) *
         (static_cast<int64_t>(flight.born_) - Flight::kBornBefore);
}

void DeliveryBook::SetBorn(Flight& flight, absl::Duration born) {
  const int64_t grains = std::clamp(absl::ToInt64Milliseconds(born) / kBornGrainMillis,
                                    -Flight::kBornBefore, Flight::kBornBefore);
  flight.born_ = static_cast<uint64_t>(grains + Flight::kBornBefore) & Flight::kBornMax;
}

DeliveryBook::Large& DeliveryBook::LargeOf(Flight& flight) {
  const auto [found, inserted] = large_.try_emplace(flight.id);
  if (inserted) {
    found->second = {
        .epoch = flight.epoch_, .attempt = AttemptOf(flight), .channel = ChannelOf(flight)};
    flight.large_ = true;
  }
  return found->second;
}

void DeliveryBook::BeginEnd(Slot slot) {
  const Flight& flight = flights_[slot];
  WindowOf(flight).BeginEnd(flight.offset);
}

void DeliveryBook::AbandonEnd(Slot slot) {
  const Flight& flight = flights_[slot];
  WindowOf(flight).AbandonEnd(flight.offset);
}

void DeliveryBook::Remove(Slot slot) {
  Flight& flight = flights_[slot];
  CHECK(flight.live());
  by_id_.erase(slot);
  ids_.Remove(flight.id);
  if (flight.large_) large_.erase(flight.id);
  WindowOf(flight).Remove(flight.offset);
  if (flight.numbered) sources_[tracks_[flight.track].source].cursor_dirty = true;
  --ClientOfFlight(flight).in_flight;
  flight.phase = Phase::kFree;
  flights_.GiveBack(slot);
}

std::optional<uint64_t> DeliveryBook::NextOf(uint32_t track) const {
  const std::optional<uint64_t> seen = sources_[tracks_[track].source].seen;
  if (!seen.has_value()) return std::nullopt;
  return tracks_[track].numbered.lowest_pending().value_or(*seen + 1);
}

uint64_t DeliveryBook::CursorOf(uint32_t source) const {
  const Source& of = sources_[source];
  if (!of.seen.has_value()) return 0;
  uint64_t cursor = *of.seen + 1;
  for (const uint32_t index : of.tracks) {
    cursor = std::min(cursor, tracks_[index].numbered.lowest().value_or(cursor));
  }
  return cursor;
}

bool DeliveryBook::Unfinished(uint32_t source, uint64_t offset) const {
  const std::vector<uint32_t>& tracks = sources_[source].tracks;
  return std::any_of(tracks.begin(), tracks.end(),
                     [&](uint32_t track) { return FindAt(track, offset) != kNone; });
}

absl::Duration DeliveryBook::OldestOf(uint32_t client) const {
  absl::Duration oldest = absl::InfiniteDuration();
  for (const uint32_t index : clients_[client].tracks) {
    const Track& track = tracks_[index];
    for (const PendingWindow* window : {&track.numbered, &track.unnumbered}) {
      const auto lowest = window->lowest_pending();
      if (lowest) oldest = std::min(oldest, BornOf(flights_[window->Find(*lowest)]));
    }
  }
  return oldest;
}

uint32_t DeliveryBook::OpenFor(uint32_t client, std::shared_ptr<Channel> channel) {
  CHECK(channel != nullptr);
  Client& of = clients_[client];
  const auto closed = std::find(of.channels.begin(), of.channels.end(), nullptr);
  const auto number = static_cast<uint32_t>(closed - of.channels.begin());
  if (closed == of.channels.end()) of.channels.emplace_back();
  of.channels[number] = std::move(channel);
  ++of.open;
  return number;
}

std::vector<Slot> DeliveryBook::Close(uint32_t client, const Channel* channel) {
  std::vector<Slot> slots;
  Client& of = clients_[client];
  const auto found = std::find_if(of.channels.begin(), of.channels.end(),
                                  [&](const auto& open) { return open.get() == channel; });
  if (channel == nullptr || found == of.channels.end()) return slots;
  const auto number = static_cast<uint32_t>(found - of.channels.begin());
  const auto take = [&](Slot slot) {
    if (ChannelOf(flights_[slot]) != number) return;
    Detach(slot);
    slots.push_back(slot);
  };
  for (const uint32_t index : of.tracks) {
    tracks_[index].numbered.ForEach(take);
    tracks_[index].unnumbered.ForEach(take);
  }
  found->reset();
  --of.open;
  while (!of.channels.empty() && of.channels.back() == nullptr) of.channels.pop_back();
  return slots;
}

uint32_t DeliveryBook::NextChannel(uint32_t client) {
  Client& of = clients_[client];
  if (of.open == 0) return kNone;
  size_t number;
  do {
    number = of.turn++ % of.channels.size();
  } while (of.channels[number] == nullptr);
  return static_cast<uint32_t>(number);
}

uint64_t DeliveryBook::AddUnnumbered(uint32_t source, uint64_t token, uint32_t targets) {
  const uint64_t event = next_unnumbered_++;
  unnumbered_[event] = {.source = source, .token = token, .unfinished = targets};
  return event;
}

std::optional<Unnumbered> DeliveryBook::FinishUnnumbered(uint64_t event) {
  const auto found = unnumbered_.find(event);
  if (found == unnumbered_.end() || --found->second.unfinished > 0) return std::nullopt;
  const Unnumbered finished = found->second;
  unnumbered_.erase(found);
  return finished;
}

}  // namespace holdfast
