#include "meta/value_envelope.h"

#include "journal/base/check.h"

namespace holdfast {
namespace {

// A NUL first: no text and no JSON starts with it.
constexpr std::string_view kMagic("\0HM1", 4);

}  // namespace

std::string SealEnvelope(const EnvelopeParts& parts) {
  CHECK(parts.request_id.size() <= kRequestIdBytesMax);
  if (parts.request_id.empty() && !parts.value.starts_with(kMagic)) return std::string(parts.value);
  std::string stored;
  stored.reserve(kMagic.size() + 1 + parts.request_id.size() + parts.value.size());
  stored.append(kMagic);
  stored.push_back(static_cast<char>(static_cast<unsigned char>(parts.request_id.size())));
  stored.append(parts.request_id);
  stored.append(parts.value);
  return stored;
}

EnvelopeParts OpenEnvelope(std::string_view stored) {
  const EnvelopeParts plain{.request_id = {}, .value = stored};
  if (!stored.starts_with(kMagic) || stored.size() == kMagic.size()) return plain;
  const size_t id_bytes = static_cast<unsigned char>(stored[kMagic.size()]);
  const std::string_view rest = stored.substr(kMagic.size() + 1);
  if (rest.size() < id_bytes) return plain;
  return {.request_id = rest.substr(0, id_bytes), .value = rest.substr(id_bytes)};
}

}  // namespace holdfast
