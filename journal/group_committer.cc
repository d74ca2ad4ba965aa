#include "journal/group_committer.h"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

// How often the committer looks whether a group was left to nobody, and how often it finds nothing
// to do before it sleeps until it is wanted.
constexpr absl::Duration kStaleAfter = absl::Milliseconds(2);
constexpr int kQuietTurns = 50;
// With an interval nobody waits for a single write: completions are collected this often.
constexpr absl::Duration kCollectAfter = absl::Milliseconds(1);
// A reaper looks up so often: what it waits for may have failed to be submitted.
constexpr absl::Duration kReapAtMost = absl::Milliseconds(100);

CommitPositions StartPositions(const SegmentSet& segments, Lsn last) {
  return {.appended = last,
          .written = last,
          .synced = last,
          .end_segment = segments.active().header.segment,
          .end_offset = segments.end()};
}

}  // namespace

GroupCommitter::GroupCommitter(const GroupCommitterOptions& options, GroupCommitterParts parts,
                               std::unique_ptr<SegmentSet> segments)
    : options_(options),
      has_interval_(options.queue.commit_interval > absl::ZeroDuration()),
      disk_overlaps_(parts.disk->overlaps()),
      clock_(parts.clock),
      engine_clock_(parts.engine_clock),
      log_(parts.log),
      epoch_(parts.epoch),
      mu_(parts.sequencer),
      queue_(options.queue, StartPositions(*segments, parts.last)),
      segments_(std::move(segments)),
      groups_(*segments_, options.group_bytes_max),
      disk_(std::move(parts.disk)),
      caught_up_at_(clock_.Now()),
      last_group_at_(caught_up_at_),
      callbacks_([this](Lsn lsn) { return OutcomeOf(lsn); }),
      reached_(parts.last.value()),
      kept_from_(groups_.kept_from()) {
  if (!options_.threads) return;
  committer_ = std::thread([this] { CommitterLoop(); });
  callback_thread_ = std::thread([this] { callbacks_.Run(); });
}

GroupCommitter::~GroupCommitter() { CHECK(!committer_.joinable()); }

// --- Confirming ---

std::optional<Status> GroupCommitter::OutcomeOf(Lsn lsn) const {
  if (Reached(lsn)) return absl::OkStatus();
  if (!poisoned()) return std::nullopt;
  // Nothing moves after the poison, but something may have just before it.
  return Reached(lsn) ? absl::OkStatus() : poison_;
}

Status GroupCommitter::WaitFor(Lsn lsn) {
  if (const std::optional<Status> known = OutcomeOf(lsn)) return *known;
  CHECK(!callbacks_.InCallback());  // it would wait for itself
  mu_.Lock();
  bool led = false;
  while (!OutcomeOf(lsn)) {
    CHECK(lsn <= queue_.positions().appended);
    if (MayLead()) {
      ++leaders_;
      const CommitQueue::Step step = StartAll();
      leader_lsn_ = lsn;
      const bool leads = !OutcomeOf(lsn) && Lead(step);
      leader_lsn_.reset();
      --leaders_;
      led = led || leads;
      if (leads || OutcomeOf(lsn)) continue;
    }
    const CommitWaiters::Ticket ticket = waiters_.Enter(queue_.GroupOf(lsn));
    mu_.Unlock();
    waiters_.Sleep(ticket);
    if (const std::optional<Status> known = OutcomeOf(lsn)) return *known;
    mu_.Lock();
    waiters_.Leave(ticket);
  }
  if (led) HandOver();
  mu_.Unlock();
  RunCallbacks();
  return *OutcomeOf(lsn);
}

void GroupCommitter::CallWhenReached(Lsn lsn, std::function<void(Status)> callback) {
  if (!callbacks_.Add(lsn, std::move(callback))) return;
  // Whoever reaps now sees the callback before it leaves (HandOver); if nobody does, somebody must.
  if (options_.threads && !has_interval_ && !driven_.load(std::memory_order_seq_cst)) {
    MutexLock lock(mu_);
    WakeCommitter();
  }
}

Status GroupCommitter::Flush() {
  CHECK(!callbacks_.InCallback());
  mu_.Lock();
  Status flushed = FlushLocked();
  mu_.Unlock();
  RunCallbacks();
  return flushed;
}

Status GroupCommitter::FlushLocked() {
  if (!queue_.all_synced()) queue_.OnSyncWanted();
  const GroupNumber groups = queue_.open_group() + (groups_.has_batches() ? 1 : 0);
  DriveUntil([&] {
    mu_.AssertHeld();
    return queue_.first_unsynced() >= groups;
  });
  return poisoned() ? poison_ : absl::OkStatus();
}

Status GroupCommitter::Stop() {
  mu_.Lock();
  stopping_ = true;
  Status flushed = FlushLocked();
  committer_wanted_ = true;
  committer_wake_.NotifyAll();
  progress_.NotifyAll();
  mu_.Unlock();
  if (committer_.joinable()) committer_.join();
  callbacks_.Stop();
  if (callback_thread_.joinable()) callback_thread_.join();
  RunCallbacks();
  return flushed;
}

void GroupCommitter::Tick() {
  if (options_.threads) return;
  mu_.Lock();
  do {
    StartAll();
  } while (queue_.in_flight() > 0 && !poisoned() && Reap(kReapAtMost));
  mu_.Unlock();
  RunCallbacks();
}

void GroupCommitter::Kick() {
  if (!ripe_.load(std::memory_order_relaxed)) return;
  mu_.Lock();
  // With an interval the committer seals groups beside the appenders, unless it sits in the disk.
  if (MayLead() || committer_reaping_) {
    StartAll();
  } else {
    WakeCommitter();
    NoteRipe();
  }
  mu_.Unlock();
  RunCallbacks();
}

void GroupCommitter::RunCallbacks() {
  if (!options_.threads) callbacks_.RunReady();
}

std::optional<std::string> GroupCommitter::FindInMemory(const RecordRef& ref, Lsn lsn) {
  const uint64_t place = (uint64_t{ref.segment} << 32) | ref.offset;
  if (place < kept_from_.load(std::memory_order_acquire)) return std::nullopt;
  MutexLock lock(mu_);
  return groups_.Find(ref, lsn);
}

void GroupCommitter::Poison(const Status& cause) {
  if (poisoned()) return;
  poison_ = Unavailable(Detail::kPoisoned,
                        "a write or sync failed, what was not confirmed is in doubt; reopen the "
                        "store ({})",
                        Message(cause));
  poisoned_.store(true, std::memory_order_release);
  queue_.Stop();
  if (log_ != nullptr) log_->Log(LogLevel::kError, Message(poison_));
  (void)waiters_.Release(queue_.first_unsynced(),
                         queue_.open_group() + 1);  // nobody is expected back
  committer_wanted_ = true;
  committer_wake_.NotifyAll();
  progress_.NotifyAll();
  callbacks_.Signal();
  WakeOthers();
}

// --- Appending ---

void GroupCommitter::OnAppended(Lsn last, size_t records, uint64_t record_bytes) {
  queue_.OnAppend(last, groups_.open_bytes());
  counts_.records += records;
  ++counts_.batches;
  counts_.record_bytes += record_bytes;
  NoteRipe();
  if (committer_asleep_ && !committer_wanted_) WakeCommitter();
}

void GroupCommitter::NoteRipe() {
  // Once is enough to call the committer.
  const bool called = !MayLead() && committer_wanted_;
  ripe_.store(!called && queue_.Ripe(Demand()), std::memory_order_relaxed);
}

void GroupCommitter::CloseGroup() {
  groups_.Close();
  queue_.OnClose(segments_->active().header.segment, segments_->end());
}

void GroupCommitter::PushLink(const Link& link) {
  groups_.PushLink(link, HeaderNow());
  queue_.OnLink(segments_->active().header.segment, segments_->end(), kLinkBytes);
}

GroupHeader GroupCommitter::HeaderNow() {
  return {.synced = queue_.positions().synced,
          .promised = queue_.reached(),
          .engine_ns = engine_clock_.NowNanos()};
}

// --- Driving ---

CommitDemand GroupCommitter::Demand() const {
  return {.blocked = waiters_.waiting() + leaders_, .callbacks = !callbacks_.empty()};
}

// Submits until the queue wants nothing more at this moment; returns why. If somebody else is
// submitting, it is left to them: they go on until the same.
CommitQueue::Step GroupCommitter::StartAll() {
  while (!submitting_) {
    const CommitQueue::Step step = queue_.Next(clock_.Now(), Demand());
    switch (step.kind) {
      case CommitQueue::Step::Kind::kClose:
        CloseGroup();
        break;
      case CommitQueue::Step::Kind::kWrite:
      case CommitQueue::Step::Kind::kFlush:
        Submit(step);
        break;
      case CommitQueue::Step::Kind::kHold:
      case CommitQueue::Step::Kind::kNone:
        return step;
    }
  }
  return {};
}

void GroupCommitter::Submit(const CommitQueue::Step& step) {
  submitting_ = true;
  if (queue_.in_flight() == 0) silence_ = absl::ZeroDuration();
  // In flight from here on: whoever reaps may wait for it already.
  const uint64_t id = queue_.OnSubmitted(step);
  ripe_.store(false, std::memory_order_relaxed);
  GroupBuffer* group = nullptr;
  WriteOp op;
  WriteKind kind = WriteKind::kFlush;
  if (step.kind == CommitQueue::Step::Kind::kWrite) {
    group = &groups_.Outgoing(step.group);
    op = {.file = &segments_->FileOf(SegmentId(group->life().segment)), .offset = group->offset()};
    kind = step.durable ? WriteKind::kDurable : WriteKind::kPlain;
  } else {
    op.file = &segments_->FileOf(step.segment);
  }
  const GroupHeader header = HeaderNow();
  mu_.Unlock();
  if (group != nullptr) {
    if (!group->empty()) group->Seal(header, epoch_);  // a Link is sealed already
    op.bytes = group->sealed();
  }
  Status submitted =
      poisoned() ? poison_ : disk_->Submit({.id = id, .kind = kind, .writes = {&op, 1}});
  starts_.fetch_add(1, std::memory_order_relaxed);
  mu_.Lock();
  submitting_ = false;
  if (!submitted.ok()) Poison(submitted);
  NoteRipe();
}

// Waits for one completion and deals with it. False: none came in time.
bool GroupCommitter::Reap(absl::Duration timeout) {
  SetReaping(true);
  const absl::Duration began = clock_.Now();
  mu_.Unlock();
  const StatusOr<Completion> completion = disk_->WaitOne(std::min(timeout, kReapAtMost));
  mu_.Lock();
  SetReaping(false);
  if (completion.status().code() == StatusCode::kDeadlineExceeded) {
    // While the process was stopped, the disk may have answered: that time does not count.
    silence_ += std::min(clock_.Now() - began, 2 * kReapAtMost);
    if (queue_.in_flight() == 0 || silence_ < options_.silence_max) return false;
    Poison(Unavailable(Detail::kIo, "the disk has answered nothing for {}",
                       absl::FormatDuration(options_.silence_max)));
  } else if (!completion.ok()) {
    Poison(completion.status());
  } else if (!completion->status.ok()) {
    Poison(completion->status);
  } else if (!poisoned()) {
    OnCompleted(completion->id);
  }
  WakeOthers();
  return true;
}

void GroupCommitter::OnCompleted(uint64_t id) {
  const absl::Duration now = clock_.Now();
  silence_ = absl::ZeroDuration();
  const CommitQueue::Done done = queue_.OnCompleted(id);
  if (done.was_write) {
    const uint64_t bytes = groups_.Outgoing(done.group).length();
    ++counts_.groups;
    counts_.written_bytes += bytes;
    if (!has_interval_ && options_.queue.durability == Durability::kSynced)
      ++counts_.durable_writes;
    last_group_at_ = now;
    groups_.OnWritten(done.group);
    kept_from_.store(groups_.kept_from(), std::memory_order_release);
  } else {
    ++counts_.flushes;
  }
  segments_->ReleaseBelow(queue_.positions().end_segment);
  if (queue_.all_synced()) caught_up_at_ = now;

  reached_.store(queue_.reached().value(), std::memory_order_release);
  size_t released = waiters_.Release(done.satisfied_from, done.satisfied_to);
  if (leader_lsn_ && Reached(*leader_lsn_)) ++released;
  queue_.OnReleased(released, now + options_.queue.rejoin_wait);
  NoteRipe();
  if (progress_waiters_ > 0) progress_.NotifyAll();
  callbacks_.Signal();
}

// One turn of whoever may reap. False: somebody else does.
bool GroupCommitter::Lead(const CommitQueue::Step& step) {
  if (reaping_) return false;
  if (queue_.in_flight() > 0) {
    Reap(kReapAtMost);
  } else if (step.kind == CommitQueue::Step::Kind::kHold) {
    Hold(step.until);
  } else if (submitting_) {
    mu_.Unlock();  // the submitter needs it to go on
    std::this_thread::yield();
    mu_.Lock();
  } else {
    // Without threads nobody else will be there when the interval is over.
    queue_.OnSyncWanted();
  }
  return true;
}

// Lets released callers come back, without the lock and without sleeping: they need both.
void GroupCommitter::Hold(absl::Duration until) {
  SetReaping(true);
  const uint64_t starts = starts_.load(std::memory_order_relaxed);
  mu_.Unlock();
  while (!ripe_.load(std::memory_order_relaxed) &&
         starts_.load(std::memory_order_relaxed) == starts && clock_.Now() < until) {
    std::this_thread::yield();
  }
  mu_.Lock();
  SetReaping(false);
}

// The caller stops driving; if there is something to drive and nobody who does, somebody else is
// woken.
void GroupCommitter::HandOver() {
  if (reaping_ || poisoned()) return;
  if (progress_waiters_ > 0) progress_.NotifyAll();
  if (!MayLead()) {
    if (queue_.in_flight() > 0) WakeCommitter();
  } else if (waiters_.Offer(queue_.first_unsynced(), queue_.open_group() + 1)) {
    WakeOthers();
  } else if (!callbacks_.empty()) {
    WakeCommitter();
  }
}

void GroupCommitter::WakeOthers() {
  const CommitWaiters::Wakes wakes = waiters_.TakeWakes();
  if (!wakes.any()) return;
  mu_.Unlock();
  waiters_.Wake(wakes);
  mu_.Lock();
}

void GroupCommitter::SetReaping(bool reaping) {
  CHECK(reaping_ != reaping);
  reaping_ = reaping;
  driven_.store(reaping, std::memory_order_seq_cst);
}

void GroupCommitter::DriveUntil(const std::function<bool()>& done) {
  while (!done() && !poisoned()) {
    const CommitQueue::Step step = StartAll();
    if (done() || poisoned()) break;
    if (!reaping_ && HasSomething(step)) {
      Lead(step);
    } else if (options_.threads) {
      ++progress_waiters_;
      progress_.Wait(mu_);
      --progress_waiters_;
    } else {
      break;
    }
  }
  HandOver();
}

// --- The committer thread ---

void GroupCommitter::CommitterLoop() {
  MutexLock lock(mu_);
  while (!stopping_) {
    if (poisoned()) {
      SleepUntil(absl::InfiniteDuration());
    } else if (has_interval_) {
      IntervalTurn();
    } else {
      WriteThroughTurn();
    }
  }
}

void GroupCommitter::IntervalTurn() {
  StartAll();
  const bool needed_now = queue_.syncing() || progress_waiters_ > 0 || !disk_overlaps_ ||
                          options_.queue.durability == Durability::kWritten;
  if (!reaping_ && queue_.in_flight() > 0) {
    if (needed_now) {
      committer_reaping_ = true;
      Reap(kReapAtMost);
      committer_reaping_ = false;
      return;
    }
    while (!reaping_ && queue_.in_flight() > 0 && Reap(absl::ZeroDuration())) {
    }
  }
  const absl::Duration soon = clock_.Now() + kCollectAfter;
  const absl::Duration due = queue_.DueAt();
  // While the open group's interval runs, appends need not wake it. Where it should run and does
  // not yet (somebody else submits, or appended while this thread collected), the next turn sees to
  // it.
  committer_asleep_ = !groups_.has_batches();
  const bool unknown = submitting_ || (!committer_asleep_ && due == absl::InfiniteDuration());
  SleepUntil(unknown || queue_.in_flight() > 0 ? soon : std::max(soon, due));
}

// Waiters drive by themselves: this thread is for callbacks, for the regular sync of level written,
// and for what was left to nobody.
void GroupCommitter::WriteThroughTurn() {
  const uint64_t activity = queue_.positions().appended.value() + counts_.groups + counts_.flushes +
                            starts_.load(std::memory_order_relaxed);
  const bool quiet = activity == seen_activity_;
  quiet_turns_ = quiet ? quiet_turns_ + 1 : 0;
  seen_activity_ = activity;
  const bool due = queue_.syncing() || clock_.Now() >= queue_.DueAt();
  if (quiet || due || !callbacks_.empty()) {
    const CommitQueue::Step step = StartAll();
    if (!reaping_ && !poisoned() && HasSomething(step)) {
      committer_led_ = Lead(step);
      return;
    }
  }
  if (committer_led_) {
    committer_led_ = false;
    HandOver();
    committer_wanted_ = false;  // by itself
  }
  const absl::Duration soon = clock_.Now() + kStaleAfter;
  committer_asleep_ = quiet_turns_ > kQuietTurns;
  SleepUntil(committer_asleep_ ? std::max(soon, queue_.DueAt()) : soon);
}

bool GroupCommitter::HasSomething(const CommitQueue::Step& step) const {
  return queue_.in_flight() > 0 || submitting_ || step.kind == CommitQueue::Step::Kind::kHold;
}

void GroupCommitter::SleepUntil(absl::Duration deadline) {
  if (!committer_wanted_ && !stopping_) {
    if (deadline == absl::InfiniteDuration()) {
      committer_wake_.Wait(mu_);
    } else {
      committer_wake_.WaitFor(mu_, clock_.Until(deadline));
    }
  }
  committer_asleep_ = false;
  committer_wanted_ = false;
}

void GroupCommitter::WakeCommitter() {
  committer_wanted_ = true;
  committer_wake_.NotifyOne();
}

}  // namespace holdfast
