// The library `struct`: binary data by format strings, with the options that Redis's scripts know.
//   > < !n    big end first, little end first, alignment n (8 if n is missing)
//   b B h H l L T in In   integers of 1, 2, 8, 8 and n (4) bytes; small letters are signed
//   f d       float, double        x   a byte of padding
//   s         a string and a 0     cn  n (1) bytes
//   c0        the whole string; when reading, the number before it gives its length
#include <bit>
#include <cctype>
#include <climits>
#include <cstdint>
#include <cstring>
#include <lua.hpp>
#include <string_view>

#include "core/script/api.h"
#include "core/script/libs.h"
#include "core/script/memory.h"
#include "core/script/script.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr size_t kMaxInteger = 32;  // bytes
constexpr size_t kMaxAlign = 8;

// Reads a format option by option.
class Format {
 public:
  Format(lua_State* lua, const char* text) : lua_(lua), at_(text) {}

  bool done() const { return *at_ == '\0'; }
  bool big_end() const { return big_end_; }

  // Returns the next option, and its size. An option that only changes a setting has size 0 and is applied
  // here.
  char next(size_t& size) {
    const char option = *at_++;
    size = size_of(option);
    if (size == 0) obey(option);
    return option;
  }

  // Returns the padding that an option of this size needs at this position.
  size_t padding(char option, size_t size, size_t at) const {
    if (size == 0 || option == 'c') return 0;
    const size_t align = size < align_ ? size : align_;
    return (align - (at & (align - 1))) & (align - 1);
  }

 private:
  size_t number(size_t otherwise) {
    if (std::isdigit(static_cast<unsigned char>(*at_)) == 0) return otherwise;
    size_t n = 0;
    for (; std::isdigit(static_cast<unsigned char>(*at_)) != 0; ++at_) {
      const auto digit = static_cast<size_t>(*at_ - '0');
      if (n > (INT_MAX - digit) / 10) luaL_error(lua_, "integral size overflow");
      n = n * 10 + digit;
    }
    return n;
  }

  size_t size_of(char option) {
    switch (option) {
      case 'b':
      case 'B':
      case 'x':
        return 1;
      case 'h':
      case 'H':
        return 2;
      case 'f':
        return sizeof(float);
      case 'l':
      case 'L':
      case 'T':
      case 'd':
        return 8;
      case 'c':
        return number(1);
      case 'i':
      case 'I': {
        const size_t size = number(sizeof(int));
        if (size > kMaxInteger) {
          luaL_error(lua_, "integral size %d is larger than limit of %d", static_cast<int>(size),
                     static_cast<int>(kMaxInteger));
        }
        return size;
      }
      default:
        return 0;
    }
  }

  void obey(char option) {
    switch (option) {
      case ' ':
      case 's':
      case 'c':
      case 'i':
      case 'I':
        return;
      case '>':
        big_end_ = true;
        return;
      case '<':
        big_end_ = false;
        return;
      case '!': {
        const size_t align = number(kMaxAlign);
        if (!std::has_single_bit(align)) {
          luaL_error(lua_, "alignment %d is not a power of 2", static_cast<int>(align));
        }
        align_ = align;
        return;
      }
      default:
        luaL_argerror(lua_, 1, lua_pushfstring(lua_, "invalid format option '%c'", option));
    }
  }

  lua_State* lua_;
  const char* at_;
  bool big_end_ = false;
  size_t align_ = 1;
};

void append_integer(ScriptString& out, uint64_t value, size_t size, bool big_end) {
  char bytes[kMaxInteger];
  for (size_t i = 0; i < size; ++i) {
    bytes[big_end ? size - 1 - i : i] = static_cast<char>(value & 0xFFU);
    value >>= 8U;
  }
  out.append(bytes, size);
}

uint64_t read_integer(const char* bytes, size_t size, bool big_end) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value = value << 8U | static_cast<unsigned char>(bytes[big_end ? i : size - 1 - i]);
  }
  return value;
}

// Converts a double to an integer as C does, if it is in range.
uint64_t to_bits(lua_Number n) {
  constexpr lua_Number kTwo63 = 9223372036854775808.0;
  if (n >= kTwo63 && n < 2 * kTwo63) return static_cast<uint64_t>(n);
  if (n >= -kTwo63 && n < kTwo63) return static_cast<uint64_t>(static_cast<int64_t>(n));
  return uint64_t{1} << 63U;
}

void append_float(ScriptString& out, lua_Number n, size_t size, bool big_end) {
  const uint64_t bits =
      size == sizeof(float) ? std::bit_cast<uint32_t>(static_cast<float>(n)) : std::bit_cast<uint64_t>(n);
  append_integer(out, bits, size, big_end);
}

lua_Number read_float(const char* bytes, size_t size, bool big_end) {
  const uint64_t bits = read_integer(bytes, size, big_end);
  return size == sizeof(float) ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                               : std::bit_cast<double>(bits);
}

lua_Number read_number(const char* bytes, size_t size, char option, bool big_end) {
  const uint64_t value = read_integer(bytes, size, big_end);
  if (std::islower(static_cast<unsigned char>(option)) == 0) return static_cast<lua_Number>(value);
  // "i0" reads no bytes, and its value is 0.
  if (size == 0 || size >= sizeof value) return static_cast<lua_Number>(static_cast<int64_t>(value));
  const uint64_t sign = uint64_t{1} << (size * 8 - 1);
  return static_cast<lua_Number>(static_cast<int64_t>((value ^ sign) - sign));
}

void pack_string(lua_State* lua, ScriptString& out, char option, size_t size, int arg) {
  size_t length = 0;
  const char* bytes = luaL_checklstring(lua, arg, &length);
  if (size == 0) size = length;
  luaL_argcheck(lua, length >= size, arg + 1, "string too short");  // Redis increments the number first
  out.append(bytes, size);
  if (option == 's') out += '\0';
}

// Lua's errors are exceptions here, so the string is freed.
int struct_pack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  lua_pushnil(lua);  // an error about a missing argument names nil
  ScriptString out{ScriptAllocator<char>(lua)};
  ScriptHost& host = host_of(lua);
  for (int arg = 2; !format.done();) {
    host.spend(lua);
    size_t size = 0;
    const char option = format.next(size);
    out.append(format.padding(option, size, out.size()), '\0');
    if (std::strchr("bBhHlLTiI", option) != nullptr) {
      append_integer(out, to_bits(luaL_checknumber(lua, arg++)), size, format.big_end());
    } else if (option == 'x') {
      out += '\0';
    } else if (option == 's' || option == 'c') {
      pack_string(lua, out, option, size, arg++);
    } else if (option == 'f' || option == 'd') {
      append_float(out, luaL_checknumber(lua, arg++), size, format.big_end());
    }
  }
  lua_pushlstring(lua, out.data(), out.size());
  return 1;
}

void check_room(lua_State* lua, size_t size, size_t at, std::string_view data) {
  luaL_argcheck(lua, size <= data.size() && at <= data.size() - size, 2, "data string too short");
}

// For "c0": returns the previous number, which gives the count of bytes, and removes it from the results.
size_t size_before(lua_State* lua, int& results) {
  if (results == 0 || lua_isnumber(lua, -1) == 0) luaL_error(lua, "format 'c0' needs a previous size");
  const lua_Number size = lua_tonumber(lua, -1);
  lua_pop(lua, 1);
  --results;
  return size >= 0 && size < 1e15 ? static_cast<size_t>(size) : SIZE_MAX;
}

// Pushes the value that an option reads at a position. Returns the number of bytes that it used.
size_t unpack_one(lua_State* lua, const Format& format, char option, size_t size, std::string_view data,
                  size_t at, int& results) {
  const char* bytes = data.data() + at;
  if (std::strchr("bBhHlLTiI", option) != nullptr) {
    lua_pushnumber(lua, read_number(bytes, size, option, format.big_end()));
  } else if (option == 'f' || option == 'd') {
    lua_pushnumber(lua, read_float(bytes, size, format.big_end()));
  } else if (option == 'c') {
    if (size == 0) size = size_before(lua, results);
    check_room(lua, size, at, data);
    lua_pushlstring(lua, bytes, size);
  } else if (option == 's') {
    const size_t end = data.find('\0', at);
    if (end == std::string_view::npos) luaL_error(lua, "unfinished string in data");
    lua_pushlstring(lua, bytes, end - at);
    size = end - at + 1;
  } else {
    return size;  // padding, or an option that changes a setting
  }
  ++results;
  return size;
}

int struct_unpack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t length = 0;
  const char* bytes = luaL_checklstring(lua, 2, &length);
  const std::string_view data(bytes, length);
  const lua_Integer first = luaL_optinteger(lua, 3, 1);
  luaL_argcheck(lua, first != 0, 3, "offset must be 1 or greater");
  size_t at = static_cast<size_t>(first) - 1;  // a negative offset becomes larger than any data
  int results = 0;
  ScriptHost& host = host_of(lua);
  while (!format.done()) {
    size_t size = 0;
    const char option = format.next(size);
    check_room(lua, 0, at, data);
    at += format.padding(option, size, at);
    check_room(lua, size, at, data);
    host.spend(lua);
    luaL_checkstack(lua, 2, "too many results");
    at += unpack_one(lua, format, option, size, data, at, results);
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at + 1));
  return results + 1;
}

int struct_size(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t at = 0;
  ScriptHost& host = host_of(lua);
  while (!format.done()) {
    host.spend(lua);
    size_t size = 0;
    const char option = format.next(size);
    at += format.padding(option, size, at);
    if (option == 's') return luaL_argerror(lua, 1, "option 's' has no fixed size");
    if (option == 'c' && size == 0) return luaL_argerror(lua, 1, "option 'c0' has no fixed size");
    at += size;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at));
  return 1;
}

}  // namespace

void push_struct(lua_State* lua) {
  static constexpr luaL_Reg kFunctions[] = {
      {"pack", struct_pack}, {"unpack", struct_unpack}, {"size", struct_size}, {nullptr, nullptr}};
  lua_createtable(lua, 0, 3);
  luaL_register(lua, nullptr, kFunctions);
}

}  // namespace holdfast
