// Nacos's HTTP interfaces for configs: operations to requests, answers to results. PURE. v1 is that
// of Nacos 2, v3 the admin interface of Nacos 3.
//
// Reads go where Nacos asks its database, not where it serves clients from a copy: show=all in v1,
// the admin interface in v3, and the searches of both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "holdfast/nacos_api.h"
#include "journal/base/status.h"
#include "meta/http/message.h"

namespace holdfast {

// Which configs are meant.
struct NacosPlace {
  NacosApi api = NacosApi::kV3;
  std::string context = "/nacos";  // path that the server is deployed at
  std::string space;               // id of the namespace; empty: public
  std::string group = "holdfast";

  bool operator==(const NacosPlace&) const = default;
};
// Errors: kInvalidArgument  one of them cannot be what it is, which the message begins with
Status CheckNacosPlace(const NacosPlace& place);

// As casMd5: only where there is no config of that name. It is the MD5 of no content, which no
// config can have, so it never equals that of one that is there.
inline constexpr std::string_view kNacosAbsentMd5 = "d41d8cd98f00b204e9800998ecf8427e";

HttpRequest NacosGet(const NacosPlace& place, std::string_view data_id);
// `cas_md5`: of the content that the config must have now. Where there is no such config Nacos
// publishes whatever is asked, and of two that do so at once its database takes one.
HttpRequest NacosPublish(const NacosPlace& place, std::string_view data_id,
                         std::string_view content, std::string_view cas_md5);
// Configs whose name starts with `prefix`. Pages count from 1.
struct NacosPageNumber {
  size_t page = 1;
  size_t entries = 100;
};
HttpRequest NacosSearch(const NacosPlace& place, std::string_view prefix, NacosPageNumber number);
struct NacosListened {
  std::string data_id;
  std::string md5;
};
// v1 only: answered as soon as one of them has another content, or after about `hold` (the server
// takes 10 s at least).
HttpRequest NacosListen(const NacosPlace& place, const std::vector<NacosListened>& configs,
                        absl::Duration hold);
struct NacosUser {
  std::string_view name, password;
};
HttpRequest NacosLogin(const NacosPlace& place, NacosUser user);
void AddNacosToken(NacosApi api, std::string_view token, HttpRequest& request);

struct NacosConfig {
  std::string data_id;
  std::string md5;                     // empty: not told
  std::optional<std::string> content;  // none: not told, as in v3's searches
};
struct NacosPage {
  size_t total = 0;  // configs on all pages, as of this one
  std::vector<NacosConfig> configs;
};

// Errors of all of them:
//   kUnauthenticated      wants a user, or does not know the token (any more)
//   kPermissionDenied     the user may not
//   kResourceExhausted    kNotWritten: too many requests, or a quota is used up
//   kInvalidArgument      it does not take the request
//   kFailedPrecondition   no such interface here
//   kUnavailable          kUnknownOutcome: it may have happened, or is not understood

// None: there is no such config.
StatusOr<std::optional<NacosConfig>> ReadNacosConfig(NacosApi api, const HttpResponse& response);
// Errors: kAborted, kConflict  the content was another
Status ReadNacosPublished(NacosApi api, const HttpResponse& response);
StatusOr<NacosPage> ReadNacosPage(NacosApi api, const HttpResponse& response);
// Names of those that have another content.
StatusOr<std::vector<std::string>> ReadNacosListened(const HttpResponse& response);
StatusOr<std::string> ReadNacosToken(const HttpResponse& response);

}  // namespace holdfast
