// NacosApi: which of Nacos's HTTP interfaces is spoken.
#pragma once

namespace holdfast {

enum class NacosApi {
  kV1,  // /v1/cs/configs, of Nacos 2: changes are told by long poll
  kV3,  // /v3/admin/cs/config, of Nacos 3: changes are found by listing again
};

}  // namespace holdfast
