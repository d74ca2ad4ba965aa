#include "runtime/delivery_book.h"

#include <algorithm>
#include <utility>

#include "journal/base/check.h"

namespace holdfast {

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
  flight = Flight{.id_hash = IdHash::Short(id),
                  .generation = flight.generation + 1,
                  .track = track,
                  .offset = offset.value_or(event),
                  .numbered = offset.has_value(),
                  .live = true};
  flight.id.Set(id);
  CHECK(by_id_.insert(slot).second);
  if (PendingWindow* const window = WindowOf(flight)) window->Add(flight.offset, slot);
  ++ClientOfFlight(flight).in_flight;
  return slot;
}

Slot DeliveryBook::Find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? kNone : *found;
}

Slot DeliveryBook::FindAt(uint32_t track, uint64_t offset) const {
  return tracks_[track].numbered.Find(offset);
}

PendingWindow* DeliveryBook::WindowOf(const Flight& flight) {
  Track& track = tracks_[flight.track];
  if (flight.numbered) return &track.numbered;
  return flight.offset != 0 ? &track.unnumbered : nullptr;
}

void DeliveryBook::BeginEnd(Slot slot) {
  const Flight& flight = flights_[slot];
  if (PendingWindow* const window = WindowOf(flight)) window->BeginEnd(flight.offset);
}

void DeliveryBook::AbandonEnd(Slot slot) {
  const Flight& flight = flights_[slot];
  if (PendingWindow* const window = WindowOf(flight)) window->AbandonEnd(flight.offset);
}

void DeliveryBook::Remove(Slot slot) {
  Flight& flight = flights_[slot];
  CHECK(flight.live);
  Detach(slot);
  by_id_.erase(slot);
  if (PendingWindow* const window = WindowOf(flight)) window->Remove(flight.offset);
  if (flight.numbered) sources_[tracks_[flight.track].source].cursor_dirty = true;
  --ClientOfFlight(flight).in_flight;
  flight.live = false;
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
      if (lowest) oldest = std::min(oldest, flights_[window->Find(*lowest)].born);
    }
  }
  return oldest;
}

uint32_t DeliveryBook::OpenFor(uint32_t client, std::shared_ptr<Channel> channel) {
  uint32_t index;
  if (free_channels_.empty()) {
    index = static_cast<uint32_t>(channels_.size());
    channels_.emplace_back();
  } else {
    index = free_channels_.back();
    free_channels_.pop_back();
  }
  channels_[index] = {.channel = std::move(channel), .client = client, .first = kNone};
  clients_[client].channels.push_back(index);
  return index;
}

std::vector<Slot> DeliveryBook::Close(uint32_t client, const Channel* channel) {
  std::vector<Slot> slots;
  std::vector<uint32_t>& open = clients_[client].channels;
  const auto found = std::find_if(open.begin(), open.end(), [&](uint32_t index) {
    return channels_[index].channel.get() == channel;
  });
  if (found == open.end()) return slots;
  const uint32_t index = *found;
  open.erase(found);
  while (channels_[index].first != kNone) {
    slots.push_back(channels_[index].first);
    Detach(slots.back());
  }
  channels_[index] = OpenChannel();
  free_channels_.push_back(index);
  std::reverse(slots.begin(), slots.end());  // the newest is linked first
  return slots;
}

uint32_t DeliveryBook::NextChannel(uint32_t client) {
  Client& of = clients_[client];
  if (of.channels.empty()) return kNone;
  return of.channels[of.turn++ % of.channels.size()];
}

void DeliveryBook::Attach(Slot slot, uint32_t channel) {
  Detach(slot);
  Flight& flight = flights_[slot];
  Slot& first = channels_[channel].first;
  flight.channel = channel;
  flight.channel_next = first;
  if (first != kNone) flights_[first].channel_previous = slot;
  first = slot;
}

void DeliveryBook::Detach(Slot slot) {
  Flight& flight = flights_[slot];
  if (flight.channel == kNone) return;
  const Slot previous = flight.channel_previous, next = flight.channel_next;
  (previous == kNone ? channels_[flight.channel].first : flights_[previous].channel_next) = next;
  if (next != kNone) flights_[next].channel_previous = previous;
  flight.channel = flight.channel_previous = flight.channel_next = kNone;
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
