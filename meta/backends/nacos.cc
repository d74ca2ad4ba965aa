#include "meta/backends/nacos.h"

#include <algorithm>
#include <utility>

#include "journal/base/escape.h"
#include "journal/base/json.h"

namespace holdfast {
namespace {

constexpr Json::Limits kJsonLimits{.bytes_max = size_t{64} << 20, .depth_max = 16};
constexpr char kWordEnd = '\x02', kLineEnd = '\x01';  // of what is listened to

std::optional<std::string> Unescaped(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      plain += text[at];
      continue;
    }
    if (text.size() - at < 3) return std::nullopt;
    const int high = digit(text[at + 1]), low = digit(text[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(high << 4 | low);
    at += 2;
  }
  return plain;
}

// name=value&…, as in a query and in a form.
class Fields {
 public:
  Fields& Add(std::string_view name, std::string_view value) {
    if (!text_.empty()) text_ += '&';
    text_ += name;
    text_ += '=';
    text_ += Escape(value, '%', {"-._"});  // what every decoder of forms takes as it is
    return *this;
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

bool IsV1(const NacosPlace& place) { return place.api == NacosApi::kV1; }

Fields PlaceFields(const NacosPlace& place, std::string_view data_id) {
  Fields fields;
  fields.Add("dataId", data_id).Add(IsV1(place) ? "group" : "groupName", place.group);
  if (!place.space.empty()) fields.Add(IsV1(place) ? "tenant" : "namespaceId", place.space);
  return fields;
}

std::string ConfigPath(const NacosPlace& place) {
  return place.context + (IsV1(place) ? "/v1/cs/configs" : "/v3/admin/cs/config");
}

HttpRequest Form(std::string target, Fields fields) {
  return {.method = "POST",
          .target = std::move(target),
          .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
          .body = fields.Take()};
}

Status NotUnderstood(std::string_view what) {
  return Unavailable(Detail::kUnknownOutcome, "nacos: the answer has no {} of the known shape",
                     what);
}

// The codes of v3 that say more than the status does.
enum NacosCode : int64_t {
  kNacosSuccess = 0,
  kNacosAccessDenied = 10001,
  kNacosNotFound = 20004,
  kNacosConflict = 20005,
  kNacosQuotaFirst = 5031,  // of the cluster, a group, a namespace; and the size of a content
  kNacosQuotaLast = 5034,
};

int64_t CodeOf(const Json& answer) {
  const Json* const code = answer.Find("code");
  return code == nullptr ? kNacosSuccess : code->integer().value_or(kNacosSuccess);
}

std::string Text(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr && member->string() != nullptr ? *member->string() : "";
}

// What a status other than 200 means. The body is free text in v1, and told to nobody.
Status RefusalOfStatus(int status) {
  const std::string told = fmt::format("nacos: HTTP status {}", status);
  switch (status) {
    case 400:
      return MakeStatus(StatusCode::kInvalidArgument, Detail::kNone, told);
    case 401:
      return MakeStatus(StatusCode::kUnauthenticated, Detail::kNone, told);
    case 403:
      return MakeStatus(StatusCode::kPermissionDenied, Detail::kNone, told);
    case 404:
    case 405:
    case 410:
    case 501:
      return WrongState(Detail::kNone, "{}: this interface of Nacos is not here", told);
    case 413:
      return Exhausted(Detail::kLimit, "{}: too large for this server", told);
    case 429:
      return Exhausted(Detail::kNotWritten, "{}: too many requests", told);
    default:
      return Unavailable(Detail::kUnknownOutcome, "{}", told);
  }
}

Status RefusalOfCode(int64_t code, int status, const Json& answer) {
  const std::string told = fmt::format("nacos: {}", Text(answer, "message"));
  if (code == kNacosConflict) return MakeStatus(StatusCode::kAborted, Detail::kConflict, told);
  if (code == kNacosNotFound) return MakeStatus(StatusCode::kNotFound, Detail::kNone, told);
  if (code == kNacosAccessDenied) {
    return MakeStatus(StatusCode::kPermissionDenied, Detail::kNone, told);
  }
  if (code >= kNacosQuotaFirst && code <= kNacosQuotaLast) {
    return Exhausted(Detail::kNotWritten, "{}", told);
  }
  return RefusalOfStatus(status == 200 ? 500 : status);
}

StatusOr<Json> Parsed(const HttpResponse& response) {
  StatusOr<Json> answer = Json::Parse(response.body, kJsonLimits);
  if (!answer.ok() || answer->object() == nullptr) return NotUnderstood("object");
  return answer;
}

// What v3 wraps as {code, message, data}.
StatusOr<Json> DataOf(const HttpResponse& response) {
  const StatusOr<Json> answer = Parsed(response);
  if (answer.ok() && answer->Find("code") != nullptr) {
    const int64_t code = CodeOf(*answer);
    if (response.status == 200 && code == kNacosSuccess) {
      const Json* const data = answer->Find("data");
      return data == nullptr ? Json() : *data;
    }
    return RefusalOfCode(code, response.status, *answer);
  }
  if (response.status != 200) return RefusalOfStatus(response.status);
  return NotUnderstood("code");
}

// The object that the answer is about.
StatusOr<Json> SubjectOf(NacosApi api, const HttpResponse& response) {
  if (api == NacosApi::kV3) return DataOf(response);
  if (response.status != 200) return RefusalOfStatus(response.status);
  return Parsed(response);
}

StatusOr<NacosConfig> ReadConfig(const Json& json) {
  NacosConfig config{.data_id = Text(json, "dataId"), .md5 = Text(json, "md5")};
  const Json* const content = json.Find("content");
  if (content != nullptr && content->string() != nullptr) config.content = *content->string();
  if (config.data_id.empty()) return NotUnderstood("config");
  return config;
}

// As the name of a group or a namespace.
bool IsNacosName(std::string_view name) {
  constexpr size_t kBytesMax = 128;
  return name.size() <= kBytesMax && std::ranges::all_of(name, [](char byte) {
           return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                  (byte >= '0' && byte <= '9') ||
                  std::string_view(".:-_").find(byte) != std::string_view::npos;
         });
}

}  // namespace

Status CheckNacosPlace(const NacosPlace& place) {
  if (place.api != NacosApi::kV1 && place.api != NacosApi::kV3) {
    return Invalid("api: {} is unknown", static_cast<int>(place.api));
  }
  if (!place.context.empty() && !place.context.starts_with('/')) {
    return Invalid("context: a path that does not start with a slash");
  }
  if (place.group.empty() || !IsNacosName(place.group)) {
    return Invalid("group: empty, too long, or with other than letters, digits and .:-_");
  }
  if (!IsNacosName(place.space)) {
    return Invalid("space: too long, or with other than letters, digits and .:-_");
  }
  return absl::OkStatus();
}

HttpRequest NacosGet(const NacosPlace& place, std::string_view data_id) {
  Fields fields = PlaceFields(place, data_id);
  if (IsV1(place)) fields.Add("show", "all");
  return {.method = "GET", .target = ConfigPath(place) + "?" + fields.Take()};
}

HttpRequest NacosPublish(const NacosPlace& place, std::string_view data_id,
                         std::string_view content, std::string_view cas_md5) {
  Fields fields = PlaceFields(place, data_id);
  fields.Add("type", "text").Add("content", content);
  HttpRequest request = Form(ConfigPath(place), std::move(fields));
  // Among the fields it would be ignored, and the write not be conditional.
  request.headers.push_back({"casMd5", std::string(cas_md5)});
  return request;
}

HttpRequest NacosSearch(const NacosPlace& place, std::string_view prefix, NacosPageNumber number) {
  Fields fields = PlaceFields(place, std::string(prefix) + '*');
  fields.Add("search", "blur")
      .Add("pageNo", std::to_string(number.page))
      .Add("pageSize", std::to_string(number.entries));
  return {.method = "GET",
          .target = ConfigPath(place) + (IsV1(place) ? "?" : "/list?") + fields.Take()};
}

HttpRequest NacosListen(const NacosPlace& place, const std::vector<NacosListened>& configs,
                        absl::Duration hold) {
  std::string listened;
  for (const NacosListened& config : configs) {
    listened += config.data_id + kWordEnd + place.group + kWordEnd + config.md5;
    if (!place.space.empty()) listened += kWordEnd + place.space;
    listened += kLineEnd;
  }
  Fields fields;
  if (!place.space.empty()) fields.Add("tenant", place.space);
  // The server unescapes it twice; nothing in it needs that.
  fields.Add("Listening-Configs", listened);
  HttpRequest request = Form(place.context + "/v1/cs/configs/listener", std::move(fields));
  request.headers.push_back(
      {"Long-Pulling-Timeout", std::to_string(absl::ToInt64Milliseconds(hold))});
  return request;
}

HttpRequest NacosLogin(const NacosPlace& place, NacosUser user) {
  Fields fields;
  fields.Add("username", user.name).Add("password", user.password);
  return Form(place.context + (IsV1(place) ? "/v1/auth/login" : "/v3/auth/user/login"),
              std::move(fields));
}

void AddNacosToken(NacosApi api, std::string_view token, HttpRequest& request) {
  if (api == NacosApi::kV3) {
    request.headers.push_back({"accessToken", std::string(token)});
    return;
  }
  request.target += request.target.find('?') == std::string::npos ? '?' : '&';
  request.target += Fields().Add("accessToken", token).Take();
}

StatusOr<std::optional<NacosConfig>> ReadNacosConfig(NacosApi api, const HttpResponse& response) {
  const bool v1 = api == NacosApi::kV1;
  if (v1 && response.status == 200 && response.body.empty()) return std::nullopt;
  const StatusOr<Json> subject = SubjectOf(api, response);
  if (!v1 && absl::IsNotFound(subject.status())) return std::nullopt;
  RETURN_IF_ERROR(subject.status());
  ASSIGN_OR_RETURN(NacosConfig config, ReadConfig(*subject));
  if (!config.content.has_value()) return NotUnderstood("content");
  return config;
}

Status ReadNacosPublished(NacosApi api, const HttpResponse& response) {
  if (api == NacosApi::kV3) {
    ASSIGN_OR_RETURN(const Json data, DataOf(response));
    return data.boolean() != nullptr && *data.boolean() ? absl::OkStatus()
                                                        : NotUnderstood("word of success");
  }
  if (response.status == 200) {
    return response.body == "true" ? absl::OkStatus() : NotUnderstood("word of success");
  }
  // It has no code for this; other failures of its database come with the same status.
  if (response.status == 500 &&
      response.body.find("server md5 may have changed") != std::string::npos) {
    return MakeStatus(StatusCode::kAborted, Detail::kConflict, "nacos: the content was another");
  }
  return RefusalOfStatus(response.status);
}

StatusOr<NacosPage> ReadNacosPage(NacosApi api, const HttpResponse& response) {
  ASSIGN_OR_RETURN(const Json subject, SubjectOf(api, response));
  const Json* const total = subject.Find("totalCount");
  const Json* const items = subject.Find("pageItems");
  if (total == nullptr || !total->unsigned_integer().has_value()) return NotUnderstood("count");
  if (items == nullptr || items->array() == nullptr) return NotUnderstood("page");
  NacosPage page{.total = *total->unsigned_integer()};
  for (const Json& item : *items->array()) {
    ASSIGN_OR_RETURN(NacosConfig config, ReadConfig(item));
    page.configs.push_back(std::move(config));
  }
  return page;
}

StatusOr<std::vector<std::string>> ReadNacosListened(const HttpResponse& response) {
  if (response.status != 200) return RefusalOfStatus(response.status);
  const std::optional<std::string> text = Unescaped(response.body);
  if (!text.has_value()) return NotUnderstood("list of names");
  std::vector<std::string> names;
  std::string_view rest = *text;
  for (size_t end; (end = rest.find(kLineEnd)) != std::string_view::npos;
       rest.remove_prefix(end + 1)) {
    const std::string_view line = rest.substr(0, end);
    const size_t word_end = line.find(kWordEnd);
    if (word_end == std::string_view::npos) return NotUnderstood("list of names");
    names.emplace_back(line.substr(0, word_end));
  }
  return names;
}

StatusOr<std::string> ReadNacosToken(const HttpResponse& response) {
  if (response.status != 200) return RefusalOfStatus(response.status);
  ASSIGN_OR_RETURN(const Json answer, Parsed(response));
  std::string token = Text(answer, "accessToken");
  if (token.empty()) return NotUnderstood("token");
  return token;
}

}  // namespace holdfast
