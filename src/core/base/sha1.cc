// See sha1.h.
#include "core/base/sha1.h"

#include <openssl/sha.h>

#include <array>

#include "core/base/parse.h"

namespace holdfast {

std::string sha1_hex(std::string_view bytes) {
  std::array<uint8_t, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digest.data());
  std::string hex;
  append_hex(hex, digest);
  return hex;
}

}  // namespace holdfast
