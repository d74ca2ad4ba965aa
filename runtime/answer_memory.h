// AnswerMemory: what the newest acknowledgements were answered, so that a repeated one gets the
// same again. Of this process only.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "journal/base/checksum.h"

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
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return Checksum(AsBytes(text), 0); }
  };

  const uint64_t answers_max_;
  absl::flat_hash_map<std::string, std::string, TextHash, std::equal_to<>> key_of_;
  std::deque<std::string> order_;  // oldest first
};

}  // namespace holdfast
