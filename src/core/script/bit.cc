// The library `bit`, compatible with Lua BitOp: numbers are rounded to whole ones (ties to even) and taken
// modulo 2^32, and results are signed.
#include <bit>
#include <cstdint>
#include <cstring>
#include <lua.hpp>

#include "core/script/libs.h"

namespace holdfast {

namespace {

// Returns an argument as 32 bits. The sum with 1.5 * 2^52 has the rounded number in the low bits of the
// double.
uint32_t bits_at(lua_State* lua, int index) {
  constexpr double kShift = 6755399441055744.0;
  return static_cast<uint32_t>(std::bit_cast<uint64_t>(luaL_checknumber(lua, index) + kShift));
}

int push_bits(lua_State* lua, uint32_t bits) {
  lua_pushnumber(lua, static_cast<int32_t>(bits));
  return 1;
}

int bit_tobit(lua_State* lua) { return push_bits(lua, bits_at(lua, 1)); }
int bit_bnot(lua_State* lua) { return push_bits(lua, ~bits_at(lua, 1)); }
int bit_bswap(lua_State* lua) { return push_bits(lua, __builtin_bswap32(bits_at(lua, 1))); }

template <class F>
int fold(lua_State* lua, F f) {
  uint32_t bits = bits_at(lua, 1);
  for (int i = 2; i <= lua_gettop(lua); ++i) bits = f(bits, bits_at(lua, i));
  return push_bits(lua, bits);
}
int bit_band(lua_State* lua) {
  return fold(lua, [](uint32_t a, uint32_t b) { return a & b; });
}
int bit_bor(lua_State* lua) {
  return fold(lua, [](uint32_t a, uint32_t b) { return a | b; });
}
int bit_bxor(lua_State* lua) {
  return fold(lua, [](uint32_t a, uint32_t b) { return a ^ b; });
}

template <class F>
int shift(lua_State* lua, F f) {
  const uint32_t bits = bits_at(lua, 1);
  return push_bits(lua, f(bits, bits_at(lua, 2) & 31U));
}
int bit_lshift(lua_State* lua) {
  return shift(lua, [](uint32_t a, uint32_t n) { return a << n; });
}
int bit_rshift(lua_State* lua) {
  return shift(lua, [](uint32_t a, uint32_t n) { return a >> n; });
}
int bit_arshift(lua_State* lua) {
  return shift(lua,
               [](uint32_t a, uint32_t n) { return static_cast<uint32_t>(static_cast<int32_t>(a) >> n); });
}
int bit_rol(lua_State* lua) {
  return shift(lua, [](uint32_t a, uint32_t n) { return std::rotl(a, static_cast<int>(n)); });
}
int bit_ror(lua_State* lua) {
  return shift(lua, [](uint32_t a, uint32_t n) { return std::rotr(a, static_cast<int>(n)); });
}

// Returns hex digits: 8, or as many as the second argument says. A negative number selects capitals.
int bit_tohex(lua_State* lua) {
  uint32_t bits = bits_at(lua, 1);
  auto count = lua_isnone(lua, 2) ? 8 : static_cast<int32_t>(bits_at(lua, 2));
  const char* digits = count < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
  constexpr int kMost = 8;
  if (count < 0) count = count < -kMost ? kMost : -count;
  if (count > kMost) count = kMost;
  char text[kMost];
  for (int i = count; i-- > 0; bits >>= 4U) text[i] = digits[bits & 15U];
  lua_pushlstring(lua, text, static_cast<size_t>(count));
  return 1;
}

}  // namespace

void push_bit(lua_State* lua) {
  static constexpr luaL_Reg kFunctions[] = {
      {"tobit", bit_tobit}, {"bnot", bit_bnot},     {"band", bit_band},     {"bor", bit_bor},
      {"bxor", bit_bxor},   {"lshift", bit_lshift}, {"rshift", bit_rshift}, {"arshift", bit_arshift},
      {"rol", bit_rol},     {"ror", bit_ror},       {"bswap", bit_bswap},   {"tohex", bit_tohex},
      {nullptr, nullptr}};
  lua_createtable(lua, 0, 12);
  luaL_register(lua, nullptr, kFunctions);
}

}  // namespace holdfast
