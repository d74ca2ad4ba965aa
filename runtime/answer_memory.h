// AnswerMemory: what the newest acknowledgements were answered, so that a repeated one gets the
// same again. Of this process only.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "journal/base/string_map.h"

namespace holdfast {

// Threads: one at a time.
class AnswerMemory {
 public:
  explicit AnswerMemory(uint64_t answers_max) : answers_max_(answers_max) {}

  // `id` was acknowledged, durably, by somebody whom `key` names. The oldest one is forgotten if
  // there are too many.
  void Remember(std::string_view id, std::string_view key) {
    if (answers_max_ == 0 || !key_of_.emplace(std::string(id), std::string(key)).second) return;
    order_.emplace_back(id);
    if (order_.size() <= answers_max_) return;
    key_of_.erase(order_.front());
    order_.pop_front();
  }
  // Whether `id` is remembered with that key.
  bool Knows(std::string_view id, std::string_view key) const {
    const auto found = key_of_.find(id);
    return found != key_of_.end() && found->second == key;
  }
  size_t size() const { return order_.size(); }

 private:
  const uint64_t answers_max_;
  StringMap<std::string> key_of_;
  std::deque<std::string> order_;  // oldest first
};

}  // namespace holdfast
