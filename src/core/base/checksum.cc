// Uses ISA-L, which has processor instructions for both checksums.
#include "core/base/checksum.h"

#include <isa-l/crc.h>
#include <isa-l/crc64.h>

#include <algorithm>

namespace holdfast {

uint64_t crc64(uint64_t crc, std::string_view bytes) {
  return ~crc64_jones_refl(~crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

// ISA-L takes the number of bytes as an int, so large inputs go in pieces.
uint32_t crc32c(std::string_view bytes) {
  constexpr size_t kPiece = size_t{1} << 30U;
  unsigned int crc = ~0U;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPiece))) {
    const size_t size = std::min(bytes.size(), kPiece);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(size), crc);
  }
  return ~crc;
}

}  // namespace holdfast
