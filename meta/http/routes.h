// Routes: which handler takes a request. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "meta/http/server.h"

namespace holdfast {

class Routes {
 public:
  explicit Routes(std::vector<HttpRoute> routes);
  // The route of the longest path that fits; null if none does. `other_method` says then whether
  // one would with another method.
  const HttpRoute* Find(std::string_view method, std::string_view target, bool& other_method) const;

 private:
  std::vector<HttpRoute> routes_;  // longest path first
};

}  // namespace holdfast
