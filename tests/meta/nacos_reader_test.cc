// NacosReader on a double of Nacos whose answers are taken for those of a server that is behind, or
// that lost something.
#include "meta/nacos_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "meta/nacos_meta.h"
#include "tests/support/faulty_transport.h"
#include "tests/support/nacos_double.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Result = FaultyTransport::Result;

bool IsSearch(const HttpRequest& request) {
  return request.target.find("search=blur") != std::string::npos;
}
bool IsGet(const HttpRequest& request) { return request.method == "GET" && !IsSearch(request); }

class NacosReaderTest : public testing::TestWithParam<NacosApi> {
 protected:
  NacosReaderTest() : transport_(NewHttpTransport({}).value()), network_(transport_.get()) {
    options_.endpoints = {nacos_.endpoint()};
    options_.place.api = GetParam();
    options_.page_entries = 3;
    meta_ = *NacosMeta::Create(network_, RealClock(), options_, 1);
  }
  // An answer to such a request, to be given again later.
  Result Recorded(bool (*is)(const HttpRequest&), const std::function<void()>& ask) {
    std::optional<Result> recorded;
    network_.after = [&](const HttpRequest& request, Result result) {
      if (is(request)) recorded = result;
      return result;
    };
    ask();
    network_.after = nullptr;
    return *recorded;
  }
  // The next `times` such requests are answered so.
  void AnswerWith(bool (*is)(const HttpRequest&), Result result, int times) {
    network_.after = [is, result, times](const HttpRequest& request, Result real) mutable {
      if (!is(request) || times == 0) return real;
      --times;
      return result;
    };
  }

  NacosDouble nacos_;
  std::unique_ptr<HttpTransport> transport_;
  FaultyTransport network_;
  NacosOptions options_;
  std::unique_ptr<NacosMeta> meta_;
};
INSTANTIATE_TEST_SUITE_P(Nacos, NacosReaderTest, testing::Values(NacosApi::kV1, NacosApi::kV3),
                         [](const auto& info) {
                           return std::string(info.param == NacosApi::kV1 ? "V1" : "V3");
                         });

constexpr MetaCall kShort{.timeout = absl::Milliseconds(200)};

// Proves: S4
TEST_P(NacosReaderTest, AKeyIsNeverShownOlderThanItWasSeen) {
  ASSERT_OK(meta_->Put("k", "old", {}));
  const Result old = Recorded(IsGet, [&] { ASSERT_OK(meta_->Get("k", {})); });
  ASSERT_OK_AND_ASSIGN(const uint64_t revision, meta_->Put("k", "new", {}));
  AnswerWith(IsGet, old, 3);
  EXPECT_EQ(meta_->Get("k", {})->revision, revision);
  AnswerWith(IsGet, old, -1);
  EXPECT_FAILS(meta_->Get("k", kShort), kUnavailable, kNone);
}

// Proves: S2
TEST_P(NacosReaderTest, AConfigThatIsGoneWithoutATombstoneIsNotTakenForADeletion) {
  const Result absent = Recorded(IsGet, [&] { EXPECT_FALSE(meta_->Get("k", {}).ok()); });
  ASSERT_OK(meta_->Put("k", "1", {}));
  AnswerWith(IsGet, absent, -1);
  EXPECT_FAILS(meta_->Get("k", kShort), kUnavailable, kNone);
  EXPECT_FAILS(meta_->PutIfAbsent("k", "2", {.timeout = kShort.timeout}), kUnavailable, kNone);
  network_.after = nullptr;
  EXPECT_EQ(meta_->Get("k", {})->value, "1");
}

// Proves: S1
TEST_P(NacosReaderTest, AListIsWholeOverManyPages) {
  for (int i = 0; i < 10; ++i) ASSERT_OK(meta_->Put("p/" + std::to_string(i), "", {}));
  ASSERT_OK(meta_->Delete("p/4", {}));
  ASSERT_OK(meta_->Put("q", "", {}));
  EXPECT_EQ(meta_->List("p/", {})->entries.size(), 9u);
  EXPECT_EQ(meta_->List("", {})->entries.size(), 10u);
}

// Proves: S1, S2
TEST_P(NacosReaderTest, AnEmptyOrPartialListIsNotTakenForDeletions) {
  const Result empty = Recorded(IsSearch, [&] { ASSERT_OK(meta_->List("p/", {})); });
  for (int i = 0; i < 3; ++i) ASSERT_OK(meta_->Put("p/" + std::to_string(i), "", {}));
  const Result three = Recorded(IsSearch, [&] { ASSERT_OK(meta_->List("p/", {})); });
  ASSERT_OK(meta_->Put("p/3", "", {}));
  for (const Result& wrong : {empty, three}) {
    AnswerWith(IsSearch, wrong, 2);
    EXPECT_EQ(meta_->List("p/", {})->entries.size(), 4u);
    AnswerWith(IsSearch, wrong, -1);
    EXPECT_FAILS(meta_->List("p/", {.timeout = kShort.timeout}), kUnavailable, kNone);
  }
  // One that knows nothing yet sees by the count that a page is missing.
  network_.after = nullptr;
  ASSERT_OK_AND_ASSIGN(const auto fresh, NacosMeta::Create(network_, RealClock(), options_, 2));
  EXPECT_EQ(fresh->List("p/", {})->entries.size(), 4u);
  const Result first_of_two = Recorded(
      [](const HttpRequest& request) {
        return IsSearch(request) && request.target.find("pageNo=1") != std::string::npos;
      },
      [&] { ASSERT_OK(fresh->List("p/", {})); });
  ASSERT_OK_AND_ASSIGN(const auto other, NacosMeta::Create(network_, RealClock(), options_, 3));
  AnswerWith(IsSearch, first_of_two, -1);
  EXPECT_FAILS(other->List("p/", {.timeout = absl::Milliseconds(100)}), kUnavailable, kNone);
}

TEST_P(NacosReaderTest, AConfigThatSomebodyElseWroteThereIsTold) {
  ASSERT_OK(meta_->Put("p/ours", "", {}));
  const HttpRequest foreign = NacosPublish(options_.place, NacosDataId("p/theirs"), "a: b", "");
  ASSERT_EQ(transport_->Send(nacos_.endpoint(), foreign, absl::Seconds(5))->status, 200);
  EXPECT_FAILS(meta_->Get("p/theirs", {}), kDataLoss, kDamage);
  EXPECT_FAILS(meta_->List("p/", {}), kDataLoss, kDamage);
  EXPECT_FAILS(meta_->Put("p/theirs", "", {}), kDataLoss, kDamage);
  EXPECT_OK(meta_->Get("p/ours", {}));
  // Under no name of a key it is no concern of ours.
  ASSERT_EQ(transport_
                ->Send(nacos_.endpoint(), NacosPublish(options_.place, "their.yaml", "a: b", ""),
                       absl::Seconds(5))
                ->status,
            200);
  EXPECT_TRUE(meta_->List("q", {})->entries.empty());
}

}  // namespace
}  // namespace holdfast
