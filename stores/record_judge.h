// RecordJudge: how a store says what one record of a batch would do, before anything is appended.
#pragma once

#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/batch_draft.h"
#include "journal/format/records.h"
#include "stores/batch_overlay.h"

namespace holdfast {

struct Judgement {
  enum class Kind { kAdmit, kDrop, kRefuse };
  Kind kind = Kind::kAdmit;
  // kDrop, kRefuse: the newest record that made it so; none if it follows from no record.
  Lsn depends;
  Status refused;

  static Judgement Admit() { return {}; }
  static Judgement Drop(Lsn depends) { return {.kind = Kind::kDrop, .depends = depends}; }
  static Judgement Refuse(Lsn depends, Status why) {
    return {.kind = Kind::kRefuse, .depends = depends, .refused = std::move(why)};
  }
};

struct JudgeContext {
  BatchOverlay& overlay;
  bool alone = false;            // the only record of its batch: nothing reads the overlay
  bool put_must_be_new = false;  // StoreBatch::put_must_be_new
};

// Threads: the sequencer is held in every call but Expect.
class RecordJudge {
 public:
  virtual ~RecordJudge() = default;
  // The records of `draft` will be judged soon: begins to fetch what that and Apply will look at.
  // Threads: any; the sequencer is not needed, and another thread may hold it.
  virtual void Expect(const BatchDraft& draft) const { (void)draft; }
  // What `record` would do to the state that the earlier ones of its batch leave; tells the
  // overlay. Changes nothing. A record that leaves the state as it is is dropped.
  virtual Judgement Judge(const RawRecord& record, const JudgeContext& context) = 0;
};

}  // namespace holdfast
