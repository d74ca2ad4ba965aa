// The conformance suite of MetaStore: what every backend owes, each with the same expectations.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "holdfast/meta_store.h"

namespace holdfast {

// What a backend may be unable to do. Its documentation says so, and what is asked of it all the
// same it refuses as kUnimplemented; the cases that need it are skipped, with the reason.
enum class MetaAbility {
  kLeases,
  kSeveralKeys,  // a transaction over more than one
  kEveryChange,  // a watch shows each one, from any revision that is not compacted
};

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
  virtual bool Can(MetaAbility) const { return true; }
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
  bool Can(MetaAbility ability) const { return fixture_->Can(ability); }

  std::unique_ptr<MetaFixture> fixture_;
};

inline std::string BackendName(const testing::TestParamInfo<MetaBackend>& info) {
  return info.param.name;
}

}  // namespace holdfast
