#include "journal/torn_tail.h"

#include <algorithm>
#include <iterator>

namespace holdfast {
namespace {

struct Row {
  bool (*applies)(const PlaceFacts&);
  Verdict verdict;
};

// In order: the first that applies holds. The last applies always.
// After a clean stop nothing was written from MARK.end on, and MARK is not clean any more before
// the next boot writes: what stands there is of another moment.
bool ContradictsMark(const PlaceFacts& f) {
  return f.mark_clean && f.against_mark != AgainstMark::kBefore;  // at MARK.end is behind it
}

constexpr Row kTable[] = {
    {[](const PlaceFacts& f) { return f.read_error; }, Verdict::kReadError},
    {[](const PlaceFacts& f) { return f.standing != Standing::kLive; }, Verdict::kDead},
    {[](const PlaceFacts& f) { return f.found == Found::kExpected && ContradictsMark(f); },
     Verdict::kMixedCopies},
    {[](const PlaceFacts& f) { return f.found == Found::kExpected; }, Verdict::kTaken},
    {[](const PlaceFacts& f) { return f.found == Found::kOtherLsn; }, Verdict::kDamage},
    {[](const PlaceFacts& f) { return f.proved; }, Verdict::kDamage},
    {[](const PlaceFacts& f) {
       return ContradictsMark(f) && (f.found == Found::kStampedBad || f.valid_behind);
     },
     Verdict::kMixedCopies},
    {[](const PlaceFacts& f) { return f.found == Found::kStampedBad; }, Verdict::kTorn},
    {[](const PlaceFacts& f) { return f.valid_behind; }, Verdict::kTornHole},
    {[](const PlaceFacts& f) { return f.mark_clean && f.against_mark == AgainstMark::kAt; },
     Verdict::kEndClean},
    {[](const PlaceFacts&) { return true; }, Verdict::kEnd},
};

}  // namespace

Verdict Judge(const PlaceFacts& facts) {
  const Row* row = std::begin(kTable);
  while (!row->applies(facts)) ++row;
  return row->verdict;
}

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReadError:
      return "read error";
    case Verdict::kDead:
      return "dead";
    case Verdict::kTaken:
      return "taken";
    case Verdict::kMixedCopies:
      return "mixed copies";
    case Verdict::kDamage:
      return "damage";
    case Verdict::kTorn:
      return "torn";
    case Verdict::kTornHole:
      return "torn (hole)";
    case Verdict::kEnd:
      return "end";
    case Verdict::kEndClean:
      return "clean end";
  }
  return "?";
}

Lsn Proved(const TailEvidence& evidence) {
  return std::max(
      {evidence.group_synced, evidence.mark_synced, evidence.checkpoint, evidence.copied_through});
}

Lsn Horizon(const TailEvidence& evidence) { return std::max(Proved(evidence), evidence.promised); }

Lsn NextAfterUnclean(Lsn highest_seen) {
  const uint64_t stretch = highest_seen.value() / kLsnJump + 2;
  return stretch < kLsnJump ? Lsn(stretch * kLsnJump) : Lsn();
}

}  // namespace holdfast
