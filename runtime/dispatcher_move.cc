// Sources that move between instances: what becomes of their deliveries, and what a source that
// comes back begins with.
//
// A source is handed in in order, so what was seen and is not pending is finished. That holds no
// more once deliveries end because another instance has the source. Until the source was handed in
// again beyond where it was then, what the journal has of `seen` does not count; a note in the
// engine's own Meta says up to where:
//
//   /em/rewound/<topic>/<incarnation>/<partition> = <seen>
#include <algorithm>
#include <utility>

#include "meta/meta_key.h"
#include "meta/meta_pages.h"
#include "meta/meta_text.h"
#include "runtime/dispatcher.h"

namespace holdfast {
namespace {

constexpr std::string_view kRewound = "rewound";
constexpr size_t kNotesAtOnce = 1'000;

}  // namespace

Status DispatcherCore::ReadRewound() {
  rewound_.clear();
  const auto take = [this](const MetaEntry& entry) -> Status {
    mu_.AssertHeld();
    ASSIGN_OR_RETURN(const SourceKey source, ParseSourceKey(kRewound, entry.key));
    ASSIGN_OR_RETURN(const MetaText text, DecodeMetaText(entry, 1));
    rewound_[source] = text.numbers[0];
    return absl::OkStatus();
  };
  return ForEachEntry(engine_.meta(), MetaPrefix(kRewound, {}), kNotesAtOnce, take).status();
}

// Comes before the first end, so that after a crash nothing counts as finished that only ended.
Status DispatcherCore::NoteRewound(const SourceKey& source) {
  const StatusOr<SourceProgress> progress = engine_.offsets().ReadSource(source);
  if (progress.status().code() == StatusCode::kNotFound) return absl::OkStatus();
  RETURN_IF_ERROR(progress.status());
  if (!progress->has_seen) return absl::OkStatus();
  {
    MutexLock lock(mu_);
    const auto noted = rewound_.find(source);
    if (noted != rewound_.end() && noted->second == progress->seen) return absl::OkStatus();
  }
  RETURN_IF_ERROR(
      engine_.meta()
          .Put(MetaSourceKey(kRewound, source), EncodeMetaText({progress->seen}), MetaWrite())
          .status());
  MutexLock lock(mu_);
  rewound_[source] = progress->seen;
  return absl::OkStatus();
}

Status DispatcherCore::LetGo(const SourceKey& source) {
  uint32_t index = kNone;
  Slot end = 0;
  {
    MutexLock lock(mu_);
    if (!ready_) return NotReady();
    index = book_.SourceOf(source);
    book_.source(index).let_go = true;  // nothing is handed in any more, so `seen` stays
  }
  RETURN_IF_ERROR(NoteRewound(source));
  {
    MutexLock lock(mu_);
    WriteCursors();  // the last thing that is known of it
    Source& of = book_.source(index);
    of.seen.reset();
    of.handed_in_before.reset();
    std::erase_if(withheld_, [&of](const Told& told) { return told.source == &of.key; });
    end = static_cast<Slot>(book_.slots());
  }
  Status ended;
  for (Slot from = 0; from < end && ended.ok(); from += kSlotsTogether) {
    ended = EndMoved(index, from, std::min(end, from + kSlotsTogether));
  }
  const Status durable = engine_.Flush();
  MutexLock lock(mu_);
  while (book_.source(index).leaving > 0) all_back_.Wait(mu_);
  return ended.ok() ? durable : ended;
}

// What is with the dead letters ends by itself, or when it comes back from there.
Status DispatcherCore::EndMoved(uint32_t source, Slot from, Slot end) {
  Effects effects;
  bool refused = false;
  {
    MutexLock lock(mu_);
    for (Slot slot = from; slot < end && !refused; ++slot) {
      const Flight& flight = book_.flight(slot);
      if (!flight.live() || !flight.numbered || book_.track(flight.track).source != source)
        continue;
      if (flight.phase == Phase::kEnding || flight.phase == Phase::kDeadLettering) continue;
      EndIt(slot, {.reason = Reason::kWithdrawn, .moved = true}, nullptr, effects);
      refused = book_.flight(slot).phase != Phase::kEnding;
    }
  }
  Run(effects);
  if (!refused) return absl::OkStatus();
  return Exhausted(Detail::kNotWritten, "deliveries of a source that moves could not be ended yet");
}

// Somebody else has worked for the source since: what it finished is not to be made again.
Status DispatcherCore::Adopt(const SourceKey& source, std::optional<uint64_t> handed_in_before) {
  Effects effects;
  {
    MutexLock lock(mu_);
    if (!ready_) return NotReady();
    ASSIGN_OR_RETURN(const std::vector<Begun> begun,
                     ReadBegun(engine_.offsets().ReadTopic(source.topic)));
    for (const Begun& each : begun) {
      if (each.source == source) Begin(each);
    }
    const uint32_t index = book_.SourceOf(source);
    Source& of = book_.source(index);
    ReadProgress(of);
    of.let_go = false;
    of.handed_in_before = handed_in_before;
    for (const uint32_t number : of.tracks) {
      const Track& track = book_.track(number);
      std::optional<uint64_t> lowest = track.numbered.lowest_pending();
      while (lowest.has_value() && *lowest < track.finished_below) {
        const Slot slot = track.numbered.Find(*lowest);
        if (book_.flight(slot).phase == Phase::kDeadLettering) break;  // it ends by itself
        EndIt(slot, {.reason = Reason::kWithdrawn}, nullptr, effects);
        const std::optional<uint64_t> next = track.numbered.lowest_pending();
        if (next == lowest) break;  // refused: it stays in flight, and is pushed again at worst
        lowest = next;
      }
    }
  }
  Run(effects);
  return absl::OkStatus();
}

}  // namespace holdfast
