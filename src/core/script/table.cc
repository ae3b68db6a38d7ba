// unpack(), table.insert() and table.sort(). In Lua 5.1 they overflow, or run for hours, with some
// arguments.
#include <cstdint>
#include <lua.hpp>

#include "core/script/api.h"
#include "core/script/script.h"

namespace holdfast {

namespace {

// unpack(list, first, last)
int table_unpack(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int64_t first = luaL_optint(lua, 2, 1);
  const int64_t last =
      lua_isnoneornil(lua, 3) ? static_cast<int64_t>(lua_objlen(lua, 1)) : luaL_checkint(lua, 3);
  if (first > last) return 0;
  const int64_t count = last - first + 1;
  if (count > LUAI_MAXCSTACK || lua_checkstack(lua, static_cast<int>(count)) == 0) {
    return luaL_error(lua, "too many results to unpack");
  }
  for (int64_t i = first; i <= last; ++i) lua_rawgeti(lua, 1, static_cast<int>(i));
  return static_cast<int>(count);
}

// table.insert(list, [place,] value): elements from the place on move up by one.
int table_insert(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int end = static_cast<int>(lua_objlen(lua, 1)) + 1;
  int place = end;
  const int argc = lua_gettop(lua);
  if (argc == 3) {
    ScriptHost& host = host_of(lua);
    place = luaL_checkint(lua, 2);
    for (int i = end; i > place; --i) {
      host.spend(lua);
      lua_rawgeti(lua, 1, i - 1);
      lua_rawseti(lua, 1, i);
    }
  } else if (argc != 2) {
    return luaL_error(lua, "wrong number of arguments to 'insert'");
  }
  lua_rawseti(lua, 1, place);
  return 0;
}

constexpr int64_t kTableBytesInStep = 64;

// Whether a < b, for table.sort(). Compares with the function in the upvalue, or as Lua does if that is
// nil.
int is_less(lua_State* lua) {
  ScriptHost& host = host_of(lua);
  if (lua_isnil(lua, lua_upvalueindex(1))) {
    const size_t bytes = lua_type(lua, 1) == LUA_TSTRING ? lua_objlen(lua, 1) : 0;
    host.spend(lua, 1 + static_cast<int64_t>(bytes) / kTableBytesInStep);
    lua_pushboolean(lua, lua_lessthan(lua, 1, 2));
    return 1;
  }
  constexpr int64_t kStepsOfCall = 10;
  host.spend(lua, kStepsOfCall);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, 2, 1);
  return 1;
}

// Whether a list is so short, in elements and in bytes, that its sorting takes negligible time.
bool sorts_at_once(lua_State* lua) {
  constexpr size_t kElements = 1000;
  constexpr size_t kBytes = size_t{64} << 10U;
  const size_t size = lua_objlen(lua, 1);
  if (size > kElements) return false;
  size_t bytes = 0;
  for (size_t i = 1; i <= size; ++i) {
    lua_rawgeti(lua, 1, static_cast<int>(i));
    if (lua_type(lua, -1) == LUA_TSTRING) bytes += lua_objlen(lua, -1);
    lua_pop(lua, 1);
  }
  return bytes <= kBytes;
}

// table.sort(). Lua's own is the upvalue. If the comparison needs no Lua function, it runs in C: then
// is_less() counts the comparisons.
int table_sort(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const bool compares_in_c = lua_isnoneornil(lua, 2) || lua_iscfunction(lua, 2) != 0;
  if (compares_in_c && !(lua_isnoneornil(lua, 2) && sorts_at_once(lua))) {
    lua_settop(lua, 2);
    lua_pushcclosure(lua, is_less, 1);
  }
  return call_original(lua);
}

}  // namespace

void put_table_functions(lua_State* lua) {
  lua_pushcfunction(lua, table_unpack);
  lua_setglobal(lua, "unpack");
  lua_getglobal(lua, LUA_TABLIBNAME);
  lua_pushcfunction(lua, table_insert);
  lua_setfield(lua, -2, "insert");
  lua_getfield(lua, -1, "sort");
  lua_pushcclosure(lua, table_sort, 1);
  lua_setfield(lua, -2, "sort");
  lua_pop(lua, 1);
}

}  // namespace holdfast
