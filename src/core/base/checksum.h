// The two checksums of the files on disk.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

// Redis's CRC64 (Jones). `crc` is the checksum of the bytes before these, or 0 at the start. Test value:
// "123456789" gives e9c6d914c4b8d9ca.
uint64_t crc64(uint64_t crc, std::string_view bytes);

// CRC32C (Castagnoli). Test value: "123456789" gives e3069283.
uint32_t crc32c(std::string_view bytes);

}  // namespace holdfast
