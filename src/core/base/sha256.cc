// See sha256.h.
#include "core/base/sha256.h"

#include <openssl/sha.h>

#include <array>

#include "core/base/parse.h"

namespace holdfast {

std::string sha256_hex(std::string_view bytes) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digest.data());
  std::string hex;
  append_hex(hex, digest);
  return hex;
}

}  // namespace holdfast
