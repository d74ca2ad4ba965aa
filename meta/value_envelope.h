// How the request id of a write travels inside the value of the entry that it put. PURE. Every
// backend that stores plain values uses it, so that two instances read each other's entries
// whichever way they reach the Meta.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// A value as it stands in the backend:
//   "\0HM1"  length of the request id (1 byte)  request id  value
// or, without a request id, the value alone, unless it starts with the four bytes itself.
struct EnvelopeParts {
  std::string_view request_id;
  std::string_view value;

  bool operator==(const EnvelopeParts&) const = default;
};

inline constexpr size_t kRequestIdBytesMax = 255;

// Needs: parts.request_id has at most kRequestIdBytesMax bytes.
std::string SealEnvelope(const EnvelopeParts& parts);

// Takes every value: one that somebody else wrote, without an envelope, is itself. The parts point
// into `stored`.
EnvelopeParts OpenEnvelope(std::string_view stored);

}  // namespace holdfast
