// The payload of DUMP and RESTORE, and of FUNCTION DUMP and RESTORE, in the format of Redis 7.0: bytes of an
// RDB file, the RDB version in two bytes (low first), and the CRC64 of all bytes before it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codec/rdb_reader.h"
#include "core/keyspace/entry.h"

namespace holdfast {

// Appends version and checksum.
void seal_payload(std::string& payload);
// Returns the payload without version and checksum. Returns nullopt if a newer version or a wrong checksum
// is there.
std::optional<std::string_view> open_payload(std::string_view payload);

// The value of an entry that is a string or a hash.
std::string dump_value(const Entry& e);

// A value that was read. Memory grows with the payload only.
struct DumpedValue {
  EntryType type = EntryType::kNone;  // kString or kHash
  std::string string;
  std::vector<std::pair<std::string, std::string>> fields;  // no name is there twice
};
// Reads what open_payload() returned. Returns nullopt if it is not one value of a known type.
std::optional<DumpedValue> read_dumped_value(std::string_view bytes);

}  // namespace holdfast
