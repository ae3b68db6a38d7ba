// Lists of texts that Redis packs into one string: listpack, and the older ziplist and zipmap. And LZF, by
// which it packs strings. Nothing is believed: damaged bytes give an error, never a read beyond them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast {

using EachText = std::function<void(std::string_view)>;

// Call `each` for the elements, numbers as decimal text. False: the bytes are not such a list.
[[nodiscard]] bool read_listpack(std::string_view bytes, const EachText& each);
[[nodiscard]] bool read_ziplist(std::string_view bytes, const EachText& each);
[[nodiscard]] bool read_zipmap(std::string_view bytes, const EachText& each);

// Unpacks to exactly `size` bytes. False: it does not.
[[nodiscard]] bool unpack_lzf(std::string_view packed, uint64_t size, std::string& out);

}  // namespace holdfast
