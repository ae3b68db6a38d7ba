// How Redis Cluster spreads keys: by a hash of a part of them.
#pragma once

#include <string_view>

namespace holdfast {

inline constexpr int kHashSlots = 16384;

// What of a key decides about its slot: the text in its first {} if there is some, or else all of it.
std::string_view hash_tag(std::string_view key);
// CRC-16/XMODEM of that, as in the specification of Redis Cluster: 0 to kHashSlots - 1.
int hash_slot(std::string_view key);

}  // namespace holdfast
