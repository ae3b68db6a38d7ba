// Opens the libraries. cjson is Debian's lua-cjson.
#include "core/script_libs.h"

#include <lua.hpp>

#include "core/script.h"
#include "core/script_api.h"

extern "C" int luaopen_cjson(lua_State* lua);

namespace holdfast {

namespace {

// What Redis's cjson has; Debian's has more.
constexpr const char* kCjsonNames[] = {"_NAME",
                                       "_VERSION",
                                       "decode",
                                       "decode_invalid_numbers",
                                       "decode_max_depth",
                                       "encode",
                                       "encode_invalid_numbers",
                                       "encode_keep_buffer",
                                       "encode_max_depth",
                                       "encode_number_precision",
                                       "encode_sparse_array",
                                       "new",
                                       "null"};

// About how large the value on top of the stack becomes as JSON, where that is at most `most`: a byte may
// take six. lua-cjson writes to memory that no limit counts, and ends the process where there is none.
uint64_t json_bytes(lua_State* lua, uint64_t most, int depth) {
  constexpr int kMaxDepth = 1001;  // beyond which lua-cjson refuses by itself
  if (lua_type(lua, -1) == LUA_TSTRING) return 6 * lua_objlen(lua, -1) + 2;
  if (!lua_istable(lua, -1) || depth > kMaxDepth || lua_checkstack(lua, 4) == 0) return 32;
  uint64_t bytes = 2;
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    bytes += json_bytes(lua, most, depth + 1) + 2;
    lua_pop(lua, 1);
    if (lua_type(lua, -1) == LUA_TSTRING) bytes += 6 * lua_objlen(lua, -1);
    if (bytes <= most) continue;
    lua_pop(lua, 1);
    break;
  }
  return bytes;
}

// cjson.encode(), which is the upvalue. Its own errors are told as of the script's line.
int encode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  const uint64_t most = host_of(lua).run_limit();
  if (json_bytes(lua, most, 0) > most) return luaL_error(lua, "not enough memory");
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  if (lua_pcall(lua, 1, 1, 0) == 0) return 1;
  luaL_where(lua, 1);
  lua_insert(lua, -2);
  lua_concat(lua, 2);
  return lua_error(lua);
}

// Leaves, in the place of lua-cjson's table on top of the stack, the one that scripts see.
void guard(lua_State* lua);

int make_another(lua_State* lua) {
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_call(lua, 0, 1);
  guard(lua);
  return 1;
}

void put_before(lua_State* lua, const char* name, lua_CFunction function) {
  lua_getfield(lua, -1, name);
  lua_pushcclosure(lua, function, 1);
  lua_setfield(lua, -2, name);
}

void guard(lua_State* lua) {
  lua_createtable(lua, 0, 16);
  for (const char* name : kCjsonNames) {
    lua_getfield(lua, -2, name);
    lua_setfield(lua, -2, name);
  }
  put_before(lua, "encode", encode);
  put_before(lua, "new", make_another);
  lua_remove(lua, -2);
}

void open_cjson(lua_State* lua) {
  lua_pushcfunction(lua, luaopen_cjson);
  lua_call(lua, 0, 1);
  guard(lua);
  lua_setglobal(lua, "cjson");
}

}  // namespace

void open_script_libraries(lua_State* lua) {
  open_cjson(lua);
  push_bit(lua);
  lua_setglobal(lua, "bit");
  push_struct(lua);
  lua_setglobal(lua, "struct");
  push_cmsgpack(lua);
  lua_setglobal(lua, "cmsgpack");
}

}  // namespace holdfast
