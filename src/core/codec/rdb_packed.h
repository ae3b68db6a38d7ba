// Lists of texts that Redis packs into one string: listpack, intset, and the older ziplist and zipmap. Also
// LZF, with which Redis compresses strings. Input is not trusted: damaged bytes give an error, never a read
// beyond them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast {

using EachText = std::function<bool(std::string_view)>;  // returns false to stop

// These call `each` for every element, numbers as decimal text. They return false if the bytes are not such
// a list, or if `each` stopped.
[[nodiscard]] bool read_listpack(std::string_view bytes, const EachText& each);
[[nodiscard]] bool read_ziplist(std::string_view bytes, const EachText& each);
[[nodiscard]] bool read_intset(std::string_view bytes, const EachText& each);
[[nodiscard]] bool read_zipmap(std::string_view bytes, const EachText& each);

// Unpacks to exactly `size` bytes. Returns false if the result has another size.
[[nodiscard]] bool unpack_lzf(std::string_view packed, uint64_t size, std::string& out);

}  // namespace holdfast
