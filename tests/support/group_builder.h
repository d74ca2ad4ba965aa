// One group of batches, built the way the writer builds it; for tests of whoever reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/format/frame.h"
#include "journal/format/records.h"

namespace holdfast {

class GroupBuilder {
 public:
  GroupBuilder(const Life& life, uint64_t offset, Lsn first_lsn)
      : life_(life), offset_(offset), first_lsn_(first_lsn), next_lsn_(first_lsn) {}

  // Appends a batch of `records` encoded records.
  GroupBuilder& Add(std::string_view bytes, uint16_t records) {
    batch_places_.push_back(bytes_.size());
    const size_t place = bytes_.size();
    bytes_.resize(place + kBatchHeaderBytes);
    const ByteView payload = AsBytes(bytes);
    bytes_.insert(bytes_.end(), payload.begin(), payload.end());
    const BatchHeader header{.length = static_cast<uint32_t>(bytes_.size() - place),
                             .first_lsn = next_lsn_,
                             .records = records,
                             .epoch = 1};
    SealBatch(ByteSpan(bytes_).subspan(place), header, life_, offset_ + place);
    batch_ends_.push_back(bytes_.size());
    bytes_.resize(AlignUp(bytes_.size(), kBatchAlignment));
    next_lsn_ = header.last_lsn() + 1;
    return *this;
  }
  // Appends a batch of one record.
  template <typename Record>
  GroupBuilder& AddRecord(const Record& record) {
    std::string bytes;
    EncodeRecord(record, bytes);
    return Add(bytes, 1);
  }

  // The group, sealed.
  std::vector<std::byte> Build(Lsn synced = Lsn(), Lsn promised = Lsn()) const {
    std::vector<std::byte> group = bytes_;
    group.resize(AlignUp(group.size(), kBlockBytes));
    SealGroup(group,
              {.length = static_cast<uint32_t>(group.size()),
               .batches = static_cast<uint16_t>(batch_places_.size()),
               .records = static_cast<uint32_t>(next_lsn_ - first_lsn_),
               .first_lsn = first_lsn_,
               .synced = synced,
               .promised = promised,
               .engine_ns = 12'345},
              life_, offset_);
    return group;
  }
  // Where the batches begin and end in the group.
  const std::vector<size_t>& batch_places() const { return batch_places_; }
  const std::vector<size_t>& batch_ends() const { return batch_ends_; }
  Lsn next_lsn() const { return next_lsn_; }

 private:
  const Life life_;
  const uint64_t offset_;
  const Lsn first_lsn_;
  Lsn next_lsn_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kGroupHeaderBytes);
  std::vector<size_t> batch_places_, batch_ends_;
};

}  // namespace holdfast
