#include "meta/http/routes.h"

#include <algorithm>

namespace holdfast {

Routes::Routes(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {
  std::ranges::sort(routes_, std::ranges::greater(),
                    [](const HttpRoute& route) { return route.path.size(); });
}

const HttpRoute* Routes::Find(std::string_view method, std::string_view target,
                              bool& other_method) const {
  const std::string_view path = target.substr(0, target.find('?'));
  other_method = false;
  for (const HttpRoute& route : routes_) {
    const bool fits = route.path.ends_with('/') ? path.starts_with(route.path) : path == route.path;
    if (!fits) continue;
    if (route.method == method) return &route;
    other_method = true;
  }
  return nullptr;
}

}  // namespace holdfast
