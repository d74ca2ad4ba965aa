#include "recovery/checkpoint_choice.h"

#include <algorithm>

#include "recovery/replayer.h"

namespace holdfast {
namespace {

void ResetAll(const StateMachines& machines) {
  machines.ForEach([](uint32_t, StateMachine& machine) { machine.Reset(); });
}

uint64_t EntriesOf(const StateMachines& machines) {
  uint64_t entries = 0;
  machines.ForEach([&](uint32_t, StateMachine& machine) { entries += machine.SnapshotEntries(); });
  return entries;
}

// Boots leave gaps in the LSNs that no record ever had. A file that knows of one is a copy from
// another course of events, in which the journal went on there.
bool OfAnotherCourse(const Evidence& evidence, Lsn through) {
  return std::any_of(
      evidence.chain.begin(), evidence.chain.end(), [&](const ChainSegment& segment) {
        const Link& link = segment.link;
        return through > std::max(link.through, link.previous_last_lsn) && through < link.next;
      });
}

Status CheckUsable(const Evidence& evidence, const CheckpointFile& file) {
  RETURN_IF_ERROR(file.status);
  if (OfAnotherCourse(evidence, file.footer.through)) {
    return DataLoss("it holds LSN {}, which this journal never had: a copy of another moment",
                    file.footer.through);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<CheckpointChoice> LoadNewestCheckpoint(Storage& storage, const StoreLayout& layout,
                                                const Evidence& evidence,
                                                const StateMachines& machines,
                                                const CheckpointUse& use) {
  const auto warn = [&](const CheckpointFile& file, std::string_view why) {
    if (use.log == nullptr) return;
    use.log->Log(LogLevel::kWarning, fmt::format("{}: not used: {}", file.name(), why));
  };
  CheckpointChoice choice;
  ResetAll(machines);
  for (auto file = layout.checkpoints.rbegin(); file != layout.checkpoints.rend(); ++file) {
    const bool wanted = !use.ignore && choice.used == nullptr;
    Status usable = CheckUsable(evidence, *file);
    if (usable.ok() && !CanReplayFrom(evidence, file->from)) {
      choice.outdated.push_back(&*file);
      warn(*file, "the records behind it are not all there any more");
      continue;
    }
    if (usable.ok() && wanted) {
      usable = LoadCheckpoint(storage, *file, layout.salt, &machines);
      if (usable.ok()) {
        choice.used = &*file;
        choice.entries = EntriesOf(machines);
        continue;
      }
      ResetAll(machines);
    }
    if (usable.ok() || usable.code() == StatusCode::kNotFound) continue;  // gone beside a writer
    if (usable.code() == StatusCode::kFailedPrecondition && DetailOf(usable) == Detail::kNone) {
      choice.outdated.push_back(&*file);
      warn(*file, Message(usable));
      continue;
    }
    if (usable.code() == StatusCode::kUnavailable) return Annotate(usable, file->name());
    choice.bad.push_back(&*file);
    warn(*file, Message(usable));
  }
  return choice;
}

}  // namespace holdfast
