// The two checksums of files on disk.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

// Redis's CRC64 (Jones), of bytes that follow those with `crc`; 0 to begin. That of "123456789" is
// e9c6d914c4b8d9ca.
uint64_t crc64(uint64_t crc, std::string_view bytes);

// CRC32C (Castagnoli). That of "123456789" is e3069283.
uint32_t crc32c(std::string_view bytes);

}  // namespace holdfast
