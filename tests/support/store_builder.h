// StoreBuilder: writes a store group by group, synchronously, and lets a test choose what is
// synced, what MARK says and where a segment ends. For tests of whoever reads it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "journal/base/check.h"
#include "journal/base/seeded_rng.h"
#include "journal/format/codec.h"
#include "journal/state_machine.h"
#include "recovery/opener.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/group_builder.h"

namespace holdfast {

// Remembers what was applied. The records of a StoreBuilder are offset advances that carry their
// own LSN.
class RecordingMachine final : public StateMachine {
 public:
  RecordingMachine() { machines_.Route(RecordType::kOffsetAdvance, *this); }
  void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) override {
    CHECK(FieldsOf<OffsetAdvance>(record).next == lsn.value());
    const auto [place, inserted] = places_.emplace(lsn.value(), ref);
    // Each once, besides those that a checkpoint brought, and those lie where it said.
    CHECK(inserted || (loaded_.contains(lsn.value()) && place->second == ref));
  }
  uint64_t SnapshotEntries() const override { return places_.size(); }
  bool WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const override {
    const size_t full = out.size() + bytes_max;
    auto next = places_.upper_bound(cursor);
    for (; next != places_.end() && out.size() < full; ++next) {
      const auto& [lsn, ref] = *next;
      Encoder encode(out);
      for (const uint64_t field : {lsn, uint64_t{ref.segment}, uint64_t{ref.offset},
                                   uint64_t{ref.length}}) {
        encode.Fixed(field);
      }
      cursor = lsn;
    }
    return next != places_.end();
  }
  Status LoadSnapshot(ByteView entries, uint64_t) override {
    Decoder in(entries);
    while (in.remaining() > 0) {
      const auto lsn = in.Fixed<uint64_t>();
      RecordRef ref;
      ref.segment = static_cast<uint32_t>(in.Fixed<uint64_t>());
      ref.offset = static_cast<uint32_t>(in.Fixed<uint64_t>());
      ref.length = static_cast<uint32_t>(in.Fixed<uint64_t>());
      if (!in.ok()) return DataLoss("an entry is cut short");
      places_[lsn] = ref;
      loaded_.insert(lsn);
    }
    return absl::OkStatus();
  }
  void Reset() override {
    places_.clear();
    loaded_.clear();
  }
  const StateMachines& machines() const { return machines_; }
  const std::map<uint64_t, RecordRef>& places() const { return places_; }
  const std::set<uint64_t>& loaded() const { return loaded_; }  // from a checkpoint
  std::vector<uint64_t> lsns() const {
    std::vector<uint64_t> lsns;
    for (const auto& [lsn, ref] : places_) lsns.push_back(lsn);
    return lsns;
  }

 private:
  std::map<uint64_t, RecordRef> places_;
  std::set<uint64_t> loaded_;
  StateMachines machines_;
};

class StoreBuilder {
 public:
  static constexpr uint64_t kSegmentBytes = kSegmentBytesMin;

  // Opens the store in `storage` (borrowed), or begins one.
  static StatusOr<StoreBuilder> Open(Storage& storage, RecordingMachine& machine, uint64_t seed = 1,
                                     uint64_t segment_bytes = kSegmentBytes) {
    SimClock clock;
    clock.JumpWhenAsked(absl::Seconds(1));
    SeededRng rng(seed);
    ASSIGN_OR_RETURN(
        OpenedStore opened,
        OpenStore(storage, clock, rng, {.segment_bytes = segment_bytes}, machine.machines()));
    return StoreBuilder(std::move(opened));
  }

  const RecoveryReport& report() const { return report_; }
  const JournalStart& start() const { return start_; }
  Lsn last() const { return last_; }
  Lsn synced() const { return synced_; }
  SegmentId segment() const { return start_.active.header.segment; }
  Life life() const { return start_.active.life(); }
  uint64_t end() const { return end_; }

  // What the next groups promise beyond `synced`, as at level written.
  void PromiseWritten() { promise_written_ = true; }

  // Writes a group of batches with that many records each. Returns its offset. Not synced.
  uint64_t Append(const std::vector<uint16_t>& batches) {
    GroupBuilder group(life(), end_, next_);
    for (const uint16_t records : batches) {
      std::string bytes;
      for (uint16_t i = 0; i < records; ++i) {
        EncodeRecord(
            OffsetAdvance{.topic = "t", .client = "c", .partition = 7, .next = next_.value()},
            bytes);
        next_ = next_ + 1;
      }
      group.Add(bytes, records);
    }
    return AppendGroup(group);
  }
  // Likewise, with one batch of one record that is given as bytes.
  uint64_t AppendRaw(const std::string& record) {
    GroupBuilder group(life(), end_, next_);
    group.Add(record, 1);
    next_ = next_ + 1;
    return AppendGroup(group);
  }
  void Sync() {
    CHECK_OK(start_.active.file->SyncData());
    synced_ = last_;
    mark_end_ = end_;
  }
  uint64_t AppendSynced(const std::vector<uint16_t>& batches) {
    const uint64_t offset = Append(batches);
    Sync();
    return offset;
  }

  // The next segment, with its Link. `synced` stays as it is: call Sync first for a sealed one.
  void Rotate(Storage& storage) {
    Segment next = Prepare(storage);
    CHECK_OK(
        next.file->WriteAt(kSegmentHeaderBytes,
                           EncodeLinkGroup({.previous = segment(),
                                            .previous_life = life().stamp,
                                            .previous_end = end_,
                                            .previous_last_lsn = last_,
                                            .first = next_,
                                            .through = next_ - 1,
                                            .next = next_,
                                            .epoch = start_.identity.epoch,
                                            .host_boot_id = start_.identity.host_boot_id,
                                            .oldest = start_.oldest,
                                            .reason = LinkReason::kRotation},
                                           {.synced = synced_, .promised = synced_}, next.life())));
    start_.active = std::move(next);
    end_ = kFirstGroupOffset;
  }
  // A segment made ahead of need: named, without a Link.
  Segment Prepare(Storage& storage) {
    SegmentHeader header = start_.active.header;
    header.segment = header.segment + 1;
    header.life = MakeLifeStamp(header.salt, header.epoch, ++start_.life_counter,
                                static_cast<uint32_t>(header.segment.value()));
    StatusOr<Segment> segment = PrepareSegment(storage, header);
    CHECK_OK(segment.status());
    CHECK_OK(PublishSegment(storage, *segment));
    return *std::move(segment);
  }

  void WriteMark(bool clean) {
    CHECK_OK(start_.mark->Write({.store_id = start_.identity.store_id,
                                 .salt = start_.identity.salt,
                                 .epoch = start_.identity.epoch,
                                 .synced = synced_,
                                 .end_segment = segment(),
                                 .end_offset = mark_end_,
                                 .newest = segment(),
                                 .oldest = start_.oldest,
                                 .clean = clean}));
  }
  void CloseClean() {
    Sync();
    WriteMark(/*clean=*/true);
  }

 private:
  explicit StoreBuilder(OpenedStore opened)
      : report_(opened.report), start_(std::move(opened.start)) {
    last_ = synced_ = start_.last;
    next_ = start_.next;
    end_ = mark_end_ = start_.end;
  }

  uint64_t AppendGroup(const GroupBuilder& group) {
    const std::vector<std::byte> bytes = group.Build(synced_, promise_written_ ? last_ : synced_);
    CHECK(end_ + bytes.size() <= start_.active.header.segment_bytes);
    CHECK_OK(start_.active.file->WriteAt(end_, bytes));
    const uint64_t offset = end_;
    end_ += bytes.size();
    last_ = next_ - 1;
    return offset;
  }

  RecoveryReport report_;
  JournalStart start_;
  Lsn last_, synced_, next_;
  uint64_t end_ = 0, mark_end_ = 0;
  bool promise_written_ = false;
};

}  // namespace holdfast
