#include "meta/http/routes.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

class RoutesTest : public testing::Test {
 protected:
  std::string Found(std::string_view method, std::string_view target) {
    bool other_method = false;
    const HttpRoute* const route = routes_.Find(method, target, other_method);
    if (route != nullptr) return route->method + " " + route->path;
    return other_method ? "other method" : "none";
  }
  const Routes routes_{{{"GET", "/", nullptr},
                        {"POST", "/v3/", nullptr},
                        {"POST", "/v3/kv/put", nullptr},
                        {"GET", "/health", nullptr}}};
};

TEST_F(RoutesTest, TheLongestPathThatFitsIsTaken) {
  EXPECT_EQ(Found("POST", "/v3/kv/put"), "POST /v3/kv/put");
  EXPECT_EQ(Found("POST", "/v3/kv/putx"), "POST /v3/");
  EXPECT_EQ(Found("GET", "/health?verbose=1"), "GET /health");
  EXPECT_EQ(Found("GET", "/other"), "GET /");
}

TEST_F(RoutesTest, AnotherMethodIsToldFromNoPath) {
  EXPECT_EQ(Found("PUT", "/health"), "other method");
  EXPECT_EQ(Found("PUT", "nowhere"), "none");
}

}  // namespace
}  // namespace holdfast
