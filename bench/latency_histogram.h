// LatencyHistogram: counts durations in buckets that grow with the value, 32 to an octave (3 %
// wide).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace holdfast::bench {

// Threads: one at a time.
class LatencyHistogram {
 public:
  void Add(int64_t nanos) {
    ++buckets_[IndexOf(static_cast<uint64_t>(std::max<int64_t>(nanos, 0)))];
    ++count_;
  }
  void Merge(const LatencyHistogram& other) {
    for (size_t index = 0; index < buckets_.size(); ++index) {
      buckets_[index] += other.buckets_[index];
    }
    count_ += other.count_;
  }
  uint64_t count() const { return count_; }

  // The value that a share of `fraction` of all does not exceed, in microseconds; 0 if empty.
  double Micros(double fraction) const {
    const auto rank = static_cast<uint64_t>(fraction * static_cast<double>(count_));
    uint64_t seen = 0;
    for (size_t index = 0; index < buckets_.size(); ++index) {
      seen += buckets_[index];
      if (seen > rank || (seen == count_ && seen > 0)) return MidOf(index) * 1e-3;
    }
    return 0;
  }

 private:
  static constexpr uint64_t kSteps = 32;  // buckets in an octave
  static constexpr int kStepBits = 5;

  // Values below kSteps have a bucket each; above, the five bits behind the leading one count.
  static size_t IndexOf(uint64_t value) {
    if (value < kSteps) return value;
    const int shift = static_cast<int>(std::bit_width(value)) - 1 - kStepBits;
    return (static_cast<size_t>(shift) + 1) * kSteps + (value >> shift) - kSteps;
  }
  static double MidOf(size_t index) {
    if (index < kSteps) return static_cast<double>(index);
    const size_t shift = index / kSteps - 1;
    const auto low = static_cast<double>((index % kSteps + kSteps) << shift);
    return low + static_cast<double>(uint64_t{1} << shift) / 2;
  }

  std::array<uint64_t, kSteps * 60> buckets_{};
  uint64_t count_ = 0;
};

}  // namespace holdfast::bench
