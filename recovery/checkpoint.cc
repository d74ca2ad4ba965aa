#include "recovery/checkpoint.h"

namespace holdfast {

StatusOr<std::unique_ptr<CheckpointCapture>> CheckpointCapture::Begin(
    const CaptureParts& parts, const CheckpointIdentity& identity) {
  std::vector<Source> sources;
  parts.machines.ForEach(
      [&](uint32_t section, StateMachine& machine) { sources.push_back({section, &machine}); });
  Lsn from;
  {
    MutexLock lock(parts.sequencer);
    from = parts.appended();
  }
  if (!from) {
    return WrongState(Detail::kNotReady, "{}: nothing was ever appended, so there is no state",
                      parts.storage.display_path());
  }
  const CheckpointHeader header{.store_id = identity.store_id,
                                .from = from,
                                .epoch = identity.epoch,
                                .engine_ns = absl::ToInt64Nanoseconds(identity.engine_time),
                                .created_ns = absl::ToUnixNanos(identity.created),
                                .pinned = identity.pinned};
  ASSIGN_OR_RETURN(std::unique_ptr<CheckpointWriter> writer,
                   CheckpointWriter::Create(parts.storage, header, identity.salt));
  std::unique_ptr<CheckpointCapture> capture(
      new CheckpointCapture(parts, std::move(sources), std::move(writer)));
  if (!capture->sources_.empty()) {
    capture->writer_->BeginSection(capture->sources_.front().section);
  }
  return capture;
}

StatusOr<bool> CheckpointCapture::Step() {
  if (source_ < sources_.size()) {
    RETURN_IF_ERROR(CaptureChunk());
    return true;
  }
  if (!through_) {
    RETURN_IF_ERROR(Finish());
    return true;
  }
  const Status synced = parts_.wait_synced(through_);
  if (synced.code() == StatusCode::kDeadlineExceeded) return true;
  if (!synced.ok()) {
    writer_->Leave();
    return synced;
  }
  ASSIGN_OR_RETURN(result_, writer_->Publish());
  return false;
}

Status CheckpointCapture::CaptureChunk() {
  const Source& source = sources_[source_];
  chunk_.clear();
  bool more;
  uint64_t entries;
  {
    MutexLock lock(parts_.sequencer);
    more = source.machine->WriteSnapshot(cursor_, kChunkBytes, chunk_);
    entries = source.machine->SnapshotEntries();
  }
  RETURN_IF_ERROR(writer_->Add(chunk_));
  if (more) return absl::OkStatus();
  RETURN_IF_ERROR(writer_->EndSection(entries));
  cursor_ = 0;
  if (++source_ < sources_.size()) writer_->BeginSection(sources_[source_].section);
  return absl::OkStatus();
}

// `through` is taken when nothing more is captured, so every entry rests on a record up to it.
Status CheckpointCapture::Finish() {
  Lsn through;
  {
    MutexLock lock(parts_.sequencer);
    through = parts_.appended();
  }
  RETURN_IF_ERROR(writer_->Finish(through));
  through_ = through;
  return absl::OkStatus();
}

StatusOr<KeptCheckpoint> CaptureCheckpoint(const CaptureParts& parts,
                                           const CheckpointIdentity& identity,
                                           const std::function<bool(uint64_t)>& between) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointCapture> capture,
                   CheckpointCapture::Begin(parts, identity));
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, capture->Step());
    if (!more) return capture->result();
    if (!between(capture->written_bytes())) {
      return WrongState(Detail::kClosed,
                        "{}: the checkpoint was given up, because the store closes",
                        parts.storage.display_path());
    }
  }
}

}  // namespace holdfast
