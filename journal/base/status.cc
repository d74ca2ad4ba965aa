#include "journal/base/status.h"

#include "absl/strings/cord.h"

namespace holdfast {
namespace {
constexpr char kDetailUrl[] = "holdfast/detail";
}  // namespace

Status MakeStatus(StatusCode code, Detail detail, const std::string& message) {
  Status status(code, message);
  if (detail != Detail::kNone) {
    // As a string_view: the constructor from std::string is a template, which Clang and GCC mangle
    // apart.
    const std::string number = std::to_string(static_cast<int>(detail));
    status.SetPayload(kDetailUrl, absl::Cord(absl::string_view(number)));
  }
  return status;
}

Status Annotate(const Status& status, const std::string& context) {
  if (status.ok()) return status;
  return MakeStatus(status.code(), DetailOf(status),
                    fmt::format("{}: {}", context, Message(status)));
}

Detail DetailOf(const Status& status) {
  const auto payload = status.GetPayload(kDetailUrl);
  if (!payload.has_value()) return Detail::kNone;
  return static_cast<Detail>(std::stoi(std::string(*payload)));
}

}  // namespace holdfast
