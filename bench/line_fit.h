// LineFit: the straight line through points that come one by one (least squares). What comes in
// bursts has the slope of its long run, wherever in a burst the first and the last point lie.
#pragma once

#include <cstdint>

namespace holdfast::bench {

// Threads: one at a time.
class LineFit {
 public:
  void Add(double x, double y) {
    ++count_;
    const double from_mean = x - mean_x_;
    mean_x_ += from_mean / static_cast<double>(count_);
    mean_y_ += (y - mean_y_) / static_cast<double>(count_);
    spread_x_ += from_mean * (x - mean_x_);
    spread_xy_ += from_mean * (y - mean_y_);
  }
  // 0 for less than two different x.
  double slope() const { return spread_x_ > 0 ? spread_xy_ / spread_x_ : 0; }

 private:
  uint64_t count_ = 0;
  double mean_x_ = 0, mean_y_ = 0;
  double spread_x_ = 0, spread_xy_ = 0;  // sums of the products of the distances from the means
};

}  // namespace holdfast::bench
