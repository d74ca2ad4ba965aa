// SegmentWriter: fills a prepared segment that is not published yet: its Link, then batches that
// already have their LSNs. Opening states the window in doubt again with it, repair what is
// healthy.
#pragma once

#include <cstdint>

#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/frame.h"
#include "journal/format/record_ref.h"
#include "journal/format/segment_header.h"
#include "journal/io/aligned_buffer.h"
#include "journal/segment.h"

namespace holdfast {

class SegmentWriter {
 public:
  // Groups are closed when the next batch would take them over this.
  static constexpr uint64_t kGroupBytes = uint64_t{1} << 20;

  // `proof` gives every group its `synced`, `promised` and engine time. The segment is borrowed.
  SegmentWriter(Segment& segment, const GroupHeader& proof) : segment_(segment), proof_(proof) {}

  Status WriteLink(const Link& link);
  // Appends a batch: `header` as it was read (its length is made anew), and its records. Returns
  // where it will stand.
  // Needs:  LSNs that go up.
  // Errors: kResourceExhausted  kLimit: the segment is full
  StatusOr<RecordRef> Append(const BatchHeader& header, ByteView records);
  // Writes what is left and syncs the file.
  Status Finish();

  // Where the next group goes.
  uint64_t end() const { return group_begin_ + AlignUp(filled_, kBlockBytes); }

  // What `batches` batches of `bytes` bytes together take at most, Link and header included.
  static uint64_t BytesNeeded(uint64_t batch_bytes);

 private:
  Status CloseGroup();

  Segment& segment_;
  const GroupHeader proof_;
  AlignedBuffer buffer_;
  uint64_t group_begin_ = kFirstGroupOffset;
  uint64_t filled_ = 0;  // of the open group; 0: none is open
  Lsn first_lsn_;        // of the open group
  uint64_t batches_ = 0, records_ = 0;
};

}  // namespace holdfast
