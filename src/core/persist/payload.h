// The payload of DUMP and RESTORE, and of FUNCTION DUMP and RESTORE, in the format of Redis 7.0: bytes of
// an RDB file, the RDB version in two bytes (low first), and the CRC64 of all bytes before it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/types.h"
#include "core/codec/rdb_writer.h"
#include "core/keyspace/entry.h"

namespace holdfast {

// Appends version and checksum.
void seal_payload(std::string& payload);
// Returns the payload without version and checksum. Returns nullopt if a newer version or a wrong checksum
// is there.
std::optional<std::string_view> open_payload(std::string_view payload);

// An empty key in an RDB file.
inline constexpr std::string_view kEmptyName("\0", 1);
// What stands before and behind the items of a file that RdbReader reads, without a checksum.
std::string rdb_head();
std::string rdb_tail();

// A hash, with deadlines of its fields if they have some: what stands before its `fields` fields, and all
// fields that are not hidden (field_deadlines.h).
void begin_hash_value(RdbWriter& rdb, std::string_view key, const Entry& e, size_t fields, const Now& now);
void put_fields(RdbWriter& rdb, const Entry& e, const Now& now);

// The value of an entry that is no lock of several holders.
std::string dump_value(const Entry& e, const Now& now);

}  // namespace holdfast
