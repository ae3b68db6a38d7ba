// The library `cmsgpack`: MessagePack (msgpack.org), each value in its shortest form.
#include <bit>
#include <cmath>
#include <cstdint>
#include <lua.hpp>
#include <string_view>

#include "core/script/api.h"
#include "core/script/libs.h"
#include "core/script/memory.h"
#include "core/script/script.h"

namespace holdfast {

namespace {

constexpr int kMaxPackDepth = 16;      // deeper tables are packed as nil
constexpr int kMaxUnpackDepth = 1000;  // each level uses the C stack

class Packer {
 public:
  explicit Packer(lua_State* lua) : lua_(lua), host_(host_of(lua)), out_(ScriptAllocator<char>(lua)) {}
  const ScriptString& bytes() const { return out_; }

  // Packs the value on top of the stack and keeps it there.
  void pack(int depth) {
    host_.spend(lua_);
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        return pack_string();
      case LUA_TBOOLEAN:
        return byte(lua_toboolean(lua_, -1) != 0 ? 0xC3 : 0xC2);
      case LUA_TNUMBER:
        return pack_number(lua_tonumber(lua_, -1));
      case LUA_TTABLE:
        if (depth < kMaxPackDepth) return pack_table(depth);
        return byte(0xC0);
      default:
        return byte(0xC0);
    }
  }

 private:
  void byte(uint8_t b) { out_ += static_cast<char>(b); }
  void tagged(uint8_t tag, uint64_t value, unsigned bytes) {
    byte(tag);
    for (unsigned i = bytes; i-- > 0;) byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  // Packs a size in the shortest of three forms: within the tag, in 16 bits, in 32 bits.
  void size_of_container(uint64_t size, uint8_t tag, uint8_t tag16) {
    if (size <= 15) return byte(static_cast<uint8_t>(tag | size));
    size <= 0xFFFF ? tagged(tag16, size, 2) : tagged(static_cast<uint8_t>(tag16 + 1), size, 4);
  }

  void pack_string() {
    size_t size = 0;
    const char* text = lua_tolstring(lua_, -1, &size);
    if (size < 32) {
      byte(static_cast<uint8_t>(0xA0 | size));
    } else if (size <= 0xFF) {
      tagged(0xD9, size, 1);
    } else {
      size <= 0xFFFF ? tagged(0xDA, size, 2) : tagged(0xDB, size, 4);
    }
    out_.append(text, size);
  }

  void pack_number(lua_Number n) {
    constexpr lua_Number kEdge = 9223372036854775808.0;
    if (n >= -kEdge && n < kEdge && n == std::floor(n)) return pack_integer(static_cast<int64_t>(n));
    const auto narrow = static_cast<float>(n);
    if (static_cast<double>(narrow) == n) return tagged(0xCA, std::bit_cast<uint32_t>(narrow), 4);
    tagged(0xCB, std::bit_cast<uint64_t>(n), 8);
  }

  void pack_integer(int64_t n) {
    const auto bits = static_cast<uint64_t>(n);
    if (n >= 0) {
      if (n <= 0x7F) return byte(static_cast<uint8_t>(n));
      if (n <= 0xFF) return tagged(0xCC, bits, 1);
      if (n <= 0xFFFF) return tagged(0xCD, bits, 2);
      if (n <= 0xFFFFFFFFLL) return tagged(0xCE, bits, 4);
      return tagged(0xCF, bits, 8);
    }
    if (n >= -32) return byte(static_cast<uint8_t>(n));
    if (n >= INT8_MIN) return tagged(0xD0, bits, 1);
    if (n >= INT16_MIN) return tagged(0xD1, bits, 2);
    if (n >= INT32_MIN) return tagged(0xD2, bits, 4);
    tagged(0xD3, bits, 8);
  }

  // Returns the number of elements if the keys are 1 to n, otherwise -1.
  int64_t array_size() {
    int64_t count = 0;
    lua_Number highest = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      host_.spend(lua_);
      if (lua_type(lua_, -2) != LUA_TNUMBER) return lua_pop(lua_, 2), -1;
      const lua_Number key = lua_tonumber(lua_, -2);
      if (key < 1 || key != std::floor(key)) return lua_pop(lua_, 2), -1;
      if (key > highest) highest = key;
      ++count;
    }
    return highest == static_cast<lua_Number>(count) ? count : -1;
  }

  void pack_table(int depth) {
    luaL_checkstack(lua_, 4, "a table is nested too deeply");
    const int64_t size = array_size();
    if (size < 0) return pack_map(depth);
    size_of_container(static_cast<uint64_t>(size), 0x90, 0xDC);
    for (int i = 1; i <= size; ++i) {
      lua_rawgeti(lua_, -1, i);
      pack(depth + 1);
      lua_pop(lua_, 1);
    }
  }

  void pack_map(int depth) {
    uint64_t size = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      host_.spend(lua_);
      ++size;
    }
    size_of_container(size, 0x80, 0xDE);
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      lua_pushvalue(lua_, -2);
      pack(depth + 1);
      lua_pop(lua_, 1);
      pack(depth + 1);
    }
  }

  lua_State* lua_;
  ScriptHost& host_;
  ScriptString out_;
};

class Unpacker {
 public:
  Unpacker(lua_State* lua, std::string_view bytes) : lua_(lua), host_(host_of(lua)), rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  size_t left() const { return rest_.size(); }

  // Pushes the next value.
  void push_next(int depth) {
    luaL_checkstack(lua_, 4, "too many values at once");
    host_.spend(lua_);
    if (depth > kMaxUnpackDepth) bad();
    const auto tag = static_cast<uint8_t>(integer(1));
    if (tag <= 0x7F) return lua_pushnumber(lua_, tag);
    if (tag >= 0xE0) return lua_pushnumber(lua_, static_cast<int8_t>(tag));
    if (tag <= 0x8F) return push_map(tag & 15U, depth);
    if (tag <= 0x9F) return push_array(tag & 15U, depth);
    if (tag <= 0xBF) return push_string(tag & 31U);
    push_tagged(tag, depth);
  }

 private:
  [[noreturn]] void bad() { raise("Bad data format in input."); }
  [[noreturn]] void raise(const char* why) {
    luaL_error(lua_, "%s", why);
    __builtin_unreachable();
  }

  uint64_t integer(unsigned bytes) {
    if (rest_.size() < bytes) raise("Missing bytes in input.");
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value = value << 8U | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(bytes);
    return value;
  }

  void push_tagged(uint8_t tag, int depth) {
    switch (tag) {
      case 0xC0:
        return lua_pushnil(lua_);
      case 0xC2:
      case 0xC3:
        return lua_pushboolean(lua_, tag & 1);
      case 0xCA:
        return lua_pushnumber(lua_, std::bit_cast<float>(static_cast<uint32_t>(integer(4))));
      case 0xCB:
        return lua_pushnumber(lua_, std::bit_cast<double>(integer(8)));
      case 0xCC:
      case 0xCD:
      case 0xCE:
      case 0xCF:  // as in Redis: numbers from 2^63 on become negative
        return lua_pushnumber(lua_,
                              static_cast<lua_Number>(static_cast<int64_t>(integer(1U << (tag - 0xCCU)))));
      case 0xD0:
        return lua_pushnumber(lua_, static_cast<int8_t>(integer(1)));
      case 0xD1:
        return lua_pushnumber(lua_, static_cast<int16_t>(integer(2)));
      case 0xD2:
        return lua_pushnumber(lua_, static_cast<int32_t>(integer(4)));
      case 0xD3:
        return lua_pushnumber(lua_, static_cast<lua_Number>(static_cast<int64_t>(integer(8))));
      case 0xD9:
      case 0xDA:
      case 0xDB:
        return push_string(integer(1U << (tag - 0xD9U)));
      case 0xDC:
      case 0xDD:
        return push_array(integer(2U << (tag - 0xDCU)), depth);
      case 0xDE:
      case 0xDF:
        return push_map(integer(2U << (tag - 0xDEU)), depth);
      default:
        bad();
    }
  }

  void push_string(uint64_t size) {
    if (rest_.size() < size) raise("Missing bytes in input.");
    lua_pushlstring(lua_, rest_.data(), size);
    rest_.remove_prefix(size);
  }

  // The size in the data may be wrong, so nothing is allocated ahead of the received elements.
  void push_array(uint64_t size, int depth) {
    lua_newtable(lua_);
    for (uint64_t i = 1; i <= size; ++i) {
      lua_pushnumber(lua_, static_cast<lua_Number>(i));
      push_next(depth + 1);
      lua_rawset(lua_, -3);
    }
  }

  void push_map(uint64_t size, int depth) {
    lua_newtable(lua_);
    for (uint64_t i = 0; i < size; ++i) {
      push_next(depth + 1);
      push_next(depth + 1);
      lua_settable(lua_, -3);  // rejects nil and NaN as keys
    }
  }

  lua_State* lua_;
  ScriptHost& host_;
  std::string_view rest_;
};

int cmsgpack_pack(lua_State* lua) {
  const int argc = lua_gettop(lua);
  if (argc == 0) return luaL_argerror(lua, 0, "MessagePack pack needs input.");
  Packer packer(lua);
  for (int i = 1; i <= argc; ++i) {
    luaL_checkstack(lua, 1, "in function mp_check");
    lua_pushvalue(lua, i);
    packer.pack(0);
    lua_pop(lua, 1);
  }
  lua_pushlstring(lua, packer.bytes().data(), packer.bytes().size());
  return 1;
}

// Unpacks up to `limit` values (0: all) from an offset on. With a limit it first pushes the offset of the
// next value, or -1 at the end.
int unpack_from(lua_State* lua, lua_Integer limit, lua_Integer offset) {
  size_t size = 0;
  const char* bytes = luaL_checklstring(lua, 1, &size);
  const bool all = limit == 0 && offset == 0;
  if (offset < 0 || limit < 0) {
    return luaL_error(lua, "Invalid request to unpack with offset of %d and limit of %d.",
                      static_cast<int>(offset),
                      static_cast<int>(size));  // Redis's text says "limit" but shows the size
  }
  if (static_cast<size_t>(offset) > size) {
    return luaL_error(lua, "Start offset %d greater than input length %d.", static_cast<int>(offset),
                      static_cast<int>(size));
  }
  if (all) limit = INT32_MAX;
  Unpacker unpacker(lua, std::string_view(bytes, size).substr(static_cast<size_t>(offset)));
  int count = 0;
  for (; count < limit && !unpacker.done(); ++count) unpacker.push_next(0);
  if (all) return count;
  luaL_checkstack(lua, 1, "too many values at once");
  lua_pushinteger(lua, unpacker.done() ? -1 : static_cast<lua_Integer>(size - unpacker.left()));
  lua_insert(lua, -count - 1);
  return count + 1;
}

int cmsgpack_unpack(lua_State* lua) { return unpack_from(lua, 0, 0); }
int cmsgpack_unpack_one(lua_State* lua) { return unpack_from(lua, 1, luaL_optinteger(lua, 2, 0)); }
int cmsgpack_unpack_limit(lua_State* lua) {
  return unpack_from(lua, luaL_checkinteger(lua, 2), luaL_optinteger(lua, 3, 0));
}

}  // namespace

void push_cmsgpack(lua_State* lua) {
  static constexpr luaL_Reg kFunctions[] = {{"pack", cmsgpack_pack},
                                            {"unpack", cmsgpack_unpack},
                                            {"unpack_one", cmsgpack_unpack_one},
                                            {"unpack_limit", cmsgpack_unpack_limit},
                                            {nullptr, nullptr}};
  lua_createtable(lua, 0, 8);
  luaL_register(lua, nullptr, kFunctions);
  lua_pushliteral(lua, "cmsgpack");
  lua_setfield(lua, -2, "_NAME");
  lua_pushliteral(lua, "lua-cmsgpack 0.4.0");  // the version that scripts expect
  lua_setfield(lua, -2, "_VERSION");
}

}  // namespace holdfast
