#include "stores/store_writer.h"

#include <algorithm>

namespace holdfast {
namespace {

// How often a thread that waits looks whether its batch was written, in about a microsecond, and
// how many of those looks lie between two at the sequencer, which disturb whoever holds it.
constexpr int kLooksMax = 48;
constexpr int kLooksATry = 8;

Claim ClaimOf(const StoreBatch& batch) { return batch.grows() ? Claim::kGrow : Claim::kShrink; }

}  // namespace

void StoreWriter::Route(RecordType type, RecordJudge& judge) {
  judges_[static_cast<size_t>(type)] = &judge;
  if (std::find(each_judge_.begin(), each_judge_.end(), &judge) == each_judge_.end()) {
    each_judge_.push_back(&judge);
  }
}

Commit StoreWriter::Write(StoreBatch& batch) {
  if (!batch.refused().ok()) return Commit(batch.refused());
  if (Status owner = fork_guard_.Check(); !owner.ok()) return Commit(std::move(owner));
  if (batch.draft().empty()) return Commit();
  // The misses of all its records at once, and before anybody waits for them.
  for (const RecordJudge* judge : each_judge_) judge->Expect(batch.draft());
  WaitingWrite mine(batch);
  if (!sink_.sequencer().TryLock()) {
    waiting_.Offer(mine);
    for (int looks = 1;; ++looks) {
      if (mine.written()) return Finish(mine);
      Mutex::Pause();
      if (looks == kLooksMax) {
        sink_.sequencer().Lock();
        break;
      }
      if (looks % kLooksATry == 0 && sink_.sequencer().TryLock()) break;
    }
    if (!mine.written()) waiting_.TakeBack(mine);
  }
  if (!mine.written()) mine.SetWritten(JudgeAndAppend(batch));
  WriteWaiting();
  sink_.sequencer().Unlock();
  return Finish(mine);
}

Commit StoreWriter::Finish(WaitingWrite& write) {
  Commit commit = write.TakeCommit();
  if (commit.changed()) sink_.Kick();
  return commit;
}

// One round: whoever comes meanwhile is not far from the sequencer itself.
void StoreWriter::WriteWaiting() {
  waiting_.TakeEach(
      [&](WaitingWrite& write) {
        sink_.sequencer().AssertHeld();
        StoreBatch& batch = write.batch();
        return sink_.HasRoom(batch.draft().batch_bytes(), ClaimOf(batch));
      },
      [&](WaitingWrite& write) {
        sink_.sequencer().AssertHeld();
        write.SetWritten(JudgeAndAppend(write.batch()));
      });
}

Commit StoreWriter::JudgeAndAppend(StoreBatch& batch) {
  BatchDraft& draft = batch.draft();
  Status room = sink_.Reserve(draft.batch_bytes(), ClaimOf(batch));
  if (!room.ok()) return Commit(std::move(room));

  const size_t count = draft.count();
  const JudgeContext context{
      .overlay = overlay_, .alone = count == 1, .put_must_be_new = batch.put_must_be_new()};
  overlay_.Clear();
  dropped_.clear();
  Lsn depends;
  for (size_t i = 0; i < count; ++i) {
    const RawRecord record = draft.raw(i);
    Judgement verdict = judges_[record.header.type]->Judge(record, context);
    switch (verdict.kind) {
      case Judgement::Kind::kAdmit:
        break;
      case Judgement::Kind::kDrop:
        dropped_.push_back(i);
        depends = std::max(depends, verdict.depends);
        break;
      case Judgement::Kind::kRefuse:
        return Resting(verdict.depends, std::move(verdict.refused));
    }
  }
  if (dropped_.size() == count) return Resting(depends, absl::OkStatus());
  if (!dropped_.empty()) draft.Drop(dropped_);

  const Lsn first = sink_.Append(draft);
  // Everything that a dropped record rests on is older than the batch.
  CHECK(depends < first);
  return sink_.CommitAt(first + (draft.count() - 1), true);
}

Commit StoreWriter::Resting(Lsn lsn, Status refused) {
  if (!lsn) return Commit(std::move(refused));
  if (refused.ok()) return sink_.CommitAt(lsn, false);
  return Commit(&sink_, lsn.value(), std::move(refused));
}

}  // namespace holdfast
