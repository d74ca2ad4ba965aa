// What an audit found wrong: all of it counted, the first ones in words.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {

class Findings {
 public:
  static constexpr size_t kShownMax = 50;

  void Add(std::string what) {
    ++total_;
    if (shown_.size() < kShownMax) shown_.push_back(std::move(what));
  }
  uint64_t total() const { return total_; }
  const std::vector<std::string>& shown() const { return shown_; }

 private:
  uint64_t total_ = 0;
  std::vector<std::string> shown_;
};

}  // namespace holdfast
