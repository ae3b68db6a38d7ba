// See hash_slot.h.
#include "core/base/hash_slot.h"

#include <cstdint>

namespace holdfast {

std::string_view hash_tag(std::string_view key) {
  const size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

int hash_slot(std::string_view key) {
  uint32_t crc = 0;
  for (const char byte : hash_tag(key)) {
    crc ^= static_cast<uint32_t>(static_cast<unsigned char>(byte)) << 8U;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1U) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0);
    crc &= 0xFFFFU;
  }
  return static_cast<int>(crc) % kHashSlots;
}

}  // namespace holdfast
