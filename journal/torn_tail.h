// TornTail: the table that tells a torn tail from damage. Pure: facts in, verdict out; who gathers
// the facts is in journal_reader and recovery (FORMAT.md §7).
//
// A reader walks the chain and always knows n, the LSN that must come next. At each place where n
// should stand it asks Judge(). Nothing else in Holdfast decides what is lost, what is torn and
// what is refused.
#pragma once

#include <cstdint>

#include "journal/base/strong.h"

namespace holdfast {

// Where the place of n lies.
enum class Standing : uint8_t {
  kLive,  // in a segment of the chain, before the end that its successor's Link recorded (if any)
  kBeyondEnd,  // behind that end
  kUnchained,  // in a segment that is not in the chain
};

// What was found at the place of n. A batch counts as stamped if its group's header is; a batch is
// valid by itself, also if its group's header fails.
enum class Found : uint8_t {
  kExpected,    // a valid batch with first LSN n
  kOtherLsn,    // a valid batch with another LSN
  kStampedBad,  // bears this life's stamp, but fails: a group header or a batch of a stamped group
  kNoStamp,     // zeros, or an older life
};

// The place of n against MARK.end. The place behind the last batch of a group is the next group's,
// and between two places that only padding, a Link or a segment's header separate there is no
// difference: a clean stop right after a rotation is kAt. What stands at kAt is behind MARK.end,
// not before it.
enum class AgainstMark : uint8_t { kBefore, kAt, kBeyond };

struct PlaceFacts {
  bool read_error = false;
  Standing standing = Standing::kLive;
  Found found = Found::kNoStamp;
  bool proved = false;        // n <= H: OK may have been given for n, and it must still be there
  bool valid_behind = false;  // a valid group of this life stands behind this place
  bool mark_clean = false;    // MARK says that nothing was written from MARK.end on
  AgainstMark against_mark = AgainstMark::kBefore;
};

enum class Verdict : uint8_t {
  kReadError,    // the open fails, nothing is changed
  kDead,         // ignored for ever
  kTaken,        // n is read; go on behind it
  kMixedCopies,  // refused: MARK and the segment are not of one moment
  kDamage,       // refused: bytes that must be valid are not
  kTorn,         // cut here; whole batches before it are kept
  kTornHole,     // cut here; what stands behind is counted and reported, never replayed
  kEnd,          // nothing more; the stop was not clean
  kEndClean,     // nothing more, and MARK says the same
};

// The first row of the table that applies.
Verdict Judge(const PlaceFacts& facts);

// "torn (hole)": for reports.
const char* VerdictName(Verdict verdict);

// What the disk says about which LSNs must be there. All are the highest found; none if there is
// none.
struct TailEvidence {
  Lsn group_synced;    // `synced` of valid groups of the chain, also behind holes
  Lsn mark_synced;     // MARK.S
  Lsn checkpoint;      // `through` of the checkpoints that are whole, in use or not
  Lsn copied_through;  // `through` of an open's Link
  Lsn promised;        // newest `promised` in groups whose segment's Link names this host boot
};
// P: a power cut cannot have taken what is up to here.
Lsn Proved(const TailEvidence& evidence);
// H: P, or what a kill alone cannot have taken, if the host has not been rebooted since.
Lsn Horizon(const TailEvidence& evidence);

// The LSN that a boot gives out first after a stop that was not clean, above whatever the killed
// boot may have given out: (highest / 2^32 + 2) * 2^32. None: the numbers are used up.
inline constexpr uint64_t kLsnJump = uint64_t{1} << 32;
inline constexpr uint64_t kUnsyncedLsnsMax = uint64_t{1} << 31;
Lsn NextAfterUnclean(Lsn highest_seen);

}  // namespace holdfast
