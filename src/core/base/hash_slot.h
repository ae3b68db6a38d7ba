// How Redis Cluster maps keys to slots: by a hash of a part of the key.
#pragma once

#include <string_view>

namespace holdfast {

inline constexpr int kHashSlots = 16384;

// Returns the part of a key that determines its slot: the text in its first {} if it is not empty, or else
// the whole key.
std::string_view hash_tag(std::string_view key);
// Returns the slot: CRC-16/XMODEM of the hash tag, as the specification of Redis Cluster says, modulo
// kHashSlots.
int hash_slot(std::string_view key);

}  // namespace holdfast
