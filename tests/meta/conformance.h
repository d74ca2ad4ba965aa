// The conformance suite of MetaStore: what every backend owes, each with the same expectations.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "holdfast/meta_store.h"

namespace holdfast {

// One Meta, empty at first, and what the suite does to its surroundings.
class MetaFixture {
 public:
  virtual ~MetaFixture() = default;
  virtual MetaStore& store() = 0;
  // Lets time go on for the store (simulated), or waits until it has (real). Returns when leases
  // that ended by then are seen as ended.
  virtual void PassTime(absl::Duration by) = 0;
  // The shortest lease that the backend grants.
  virtual absl::Duration lease_min() const = 0;
  // Makes the store forget its history up to now. False: this backend cannot be asked to.
  virtual bool ForgetHistory() = 0;
  // Goes down and comes back with what it keeps; `store()` is another one then. False: this backend
  // keeps nothing.
  virtual bool Restart() = 0;
};

struct MetaBackend {
  std::string name;
  std::function<std::unique_ptr<MetaFixture>()> make;
};
// How a failing test names its backend.
inline void PrintTo(const MetaBackend& backend, std::ostream* out) { *out << backend.name; }

// A program instantiates it with the backends that it knows:
//   INSTANTIATE_TEST_SUITE_P(Memory, MetaConformanceTest, testing::Values(…), BackendName);
class MetaConformanceTest : public testing::TestWithParam<MetaBackend> {
 protected:
  MetaConformanceTest() : fixture_(GetParam().make()) {}
  MetaStore& store() { return fixture_->store(); }

  std::unique_ptr<MetaFixture> fixture_;
};

inline std::string BackendName(const testing::TestParamInfo<MetaBackend>& info) {
  return info.param.name;
}

}  // namespace holdfast
