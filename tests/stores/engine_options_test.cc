#include "stores/engine_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

EngineOptions Good() {
  EngineOptions options;
  options.directory = "somewhere";
  return options;
}

// Proves: W2
TEST(EngineOptionsTest, AnOptionOutOfRangeIsNamed) {
  EXPECT_OK(CheckEngineOptions(Good()));
  const struct {
    std::string option;
    std::function<void(EngineOptions&)> spoil;
  } kCases[] = {
      {"directory", [](auto& o) { o.directory = ""; }},
      {"commit_interval", [](auto& o) { o.commit_interval = -absl::Nanoseconds(1); }},
      {"commit_interval", [](auto& o) { o.commit_interval = absl::Seconds(10.1); }},
      {"lock_wait", [](auto& o) { o.lock_wait = -absl::Seconds(1); }},
      {"lock_wait", [](auto& o) { o.lock_wait = absl::InfiniteDuration(); }},
      {"segment_bytes", [](auto& o) { o.segment_bytes = 0; }},
      {"segment_bytes", [](auto& o) { o.segment_bytes = 60 << 10; }},
      {"segment_bytes", [](auto& o) { o.segment_bytes = (64 << 10) + 512; }},
      {"segment_bytes", [](auto& o) { o.segment_bytes = (uint64_t{1} << 30) + 4096; }},
      {"event_bytes_max", [](auto& o) { o.event_bytes_max = (uint64_t{1} << 30) + 1; }},
      {"compress_event_bytes_min", [](auto& o) { o.compress_event_bytes_min = 1; }},
      {"remembered_answers", [](auto& o) { o.remembered_answers = 10'000'001; }},
      {"read_only",
       [](auto& o) {
         o.backend = Backend::kMemory;
         o.read_only = true;
       }},
  };
  for (const auto& wrong : kCases) {
    EngineOptions options = Good();
    wrong.spoil(options);
    const Status status = CheckEngineOptions(options);
    EXPECT_FAILS(status, kInvalidArgument, kNone) << wrong.option;
    EXPECT_TRUE(Message(status).starts_with(wrong.option)) << status.ToString();
  }
}

TEST(EngineOptionsTest, TheEdgesOfARangeAreInside) {
  EngineOptions options = Good();
  options.commit_interval = absl::Seconds(10);
  options.segment_bytes = uint64_t{64} << 10;
  options.event_bytes_max = 0;
  options.compress_event_bytes_min = 0;
  options.value_cache_entries = 0;
  options.remembered_answers = 0;
  EXPECT_OK(CheckEngineOptions(options));
  options.segment_bytes = uint64_t{1} << 30;
  options.compress_event_bytes_min = 4'096;
  options.remembered_answers = 10'000'000;
  EXPECT_OK(CheckEngineOptions(options));
}

TEST(EngineOptionsTest, ABatchIsBoundedBySegmentAndBy16MiB) {
  EngineOptions options = Good();
  options.segment_bytes = uint64_t{1} << 20;
  EXPECT_EQ(LimitsOf(options).batch_bytes_max, (uint64_t{256} << 10) - 64);
  options.segment_bytes = uint64_t{1} << 30;
  EXPECT_EQ(LimitsOf(options).batch_bytes_max, (uint64_t{16} << 20) - 64);
}

}  // namespace
}  // namespace holdfast
