#include "meta/md5.h"

#include <openssl/evp.h>

#include <array>

namespace holdfast {

StatusOr<std::string> Md5Hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_md5(), nullptr) != 1) {
    return WrongState(Detail::kNone, "MD5: OpenSSL does not offer it here, and Nacos needs it");
  }
  std::string text;
  for (unsigned int at = 0; at < size; ++at) text += fmt::format("{:02x}", digest[at]);
  return text;
}

}  // namespace holdfast
