// Samples of one measurement over the rounds of a run, and what is reported of them.
#pragma once

#include <algorithm>
#include <vector>

#include "bench/workload.h"

namespace holdfast::bench {

// The middle of `values` (the lower one of two); 0 if there is none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What one run of a workload says, per cycle.
struct Sample {
  double cycles_per_second = 0;
  double p50_micros = 0, p99_micros = 0, p999_micros = 0;
  double cpu_micros = 0;
  double bytes = 0;
  double flushes = 0;
};

inline Sample Summarize(const WorkloadResult& result) {
  const double cycles = std::max<double>(1, static_cast<double>(result.cycles));
  return {.cycles_per_second = result.cycles_per_second(),
          .p50_micros = result.latency.Micros(0.5),
          .p99_micros = result.latency.Micros(0.99),
          .p999_micros = result.latency.Micros(0.999),
          .cpu_micros = result.cpu_seconds * 1e6 / cycles,
          .bytes = static_cast<double>(result.counters.written_bytes) / cycles,
          .flushes = static_cast<double>(result.counters.flushes) / cycles};
}

// One sample of each round.
class Samples {
 public:
  void Add(const Sample& sample) { samples_.push_back(sample); }
  // The median of each figure by itself.
  Sample Middle() const {
    return {.cycles_per_second = MedianOf(&Sample::cycles_per_second),
            .p50_micros = MedianOf(&Sample::p50_micros),
            .p99_micros = MedianOf(&Sample::p99_micros),
            .p999_micros = MedianOf(&Sample::p999_micros),
            .cpu_micros = MedianOf(&Sample::cpu_micros),
            .bytes = MedianOf(&Sample::bytes),
            .flushes = MedianOf(&Sample::flushes)};
  }
  // The median over the rounds of this rate against another's in the same round; 0 without one.
  double RateAgainst(const Samples& other) const {
    std::vector<double> ratios;
    for (size_t round = 0; round < std::min(samples_.size(), other.samples_.size()); ++round) {
      ratios.push_back(samples_[round].cycles_per_second / other.samples_[round].cycles_per_second);
    }
    return Median(ratios);
  }
  const std::vector<Sample>& all() const { return samples_; }

 private:
  double MedianOf(double Sample::* figure) const {
    std::vector<double> values;
    for (const Sample& sample : samples_) values.push_back(sample.*figure);
    return Median(values);
  }
  std::vector<Sample> samples_;
};

}  // namespace holdfast::bench
