// The environment of scripts: the parts of Lua that they may use. One script cannot change anything in it
// for the next. A proxy hides every table: a userdata that passes reads on and rejects writes. A script
// never gets the table of globals itself.
#include <algorithm>
#include <climits>
#include <lua.hpp>
#include <string>

#include "core/script/api.h"
#include "core/script/libs.h"
#include "core/script/script.h"
#include "core/script/value.h"

namespace holdfast {

namespace {

// The key, in a proxy's metatable, of the hidden table. Only its address counts.
const char kBehind = 0;

constexpr const char* kReadOnlyText = "Attempt to modify a readonly table";

int refuse_write(lua_State* lua) { return luaL_error(lua, kReadOnlyText); }

int refuse_missing(lua_State* lua) {
  const char* name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "?";
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", name);
}

// Replaces the table on top of the stack by its proxy.
void wrap(lua_State* lua) {
  lua_newuserdata(lua, 0);
  lua_createtable(lua, 0, 4);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pushlightuserdata(lua, const_cast<char*>(&kBehind));
  lua_pushvalue(lua, -4);
  lua_rawset(lua, -3);
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

// Pushes the table behind a proxy. Returns false, and pushes nothing, if the value is no proxy.
bool push_behind(lua_State* lua, int index) {
  if (lua_type(lua, index) != LUA_TUSERDATA || lua_getmetatable(lua, index) == 0) return false;
  lua_pushlightuserdata(lua, const_cast<char*>(&kBehind));
  lua_rawget(lua, -2);
  lua_remove(lua, -2);
  if (lua_istable(lua, -1)) return true;
  lua_pop(lua, 1);
  return false;
}

bool is_proxy(lua_State* lua, int index) {
  if (!push_behind(lua, index)) return false;
  lua_pop(lua, 1);
  return true;
}

int refuse_raw_write(lua_State* lua) {
  lua_pushstring(lua, kReadOnlyText);
  return lua_error(lua);
}

int sandbox_type(lua_State* lua) {
  luaL_checkany(lua, 1);
  lua_pushstring(lua, is_proxy(lua, 1) ? "table" : luaL_typename(lua, 1));
  return 1;
}

int sandbox_setmetatable(lua_State* lua) {
  return is_proxy(lua, 1) ? refuse_raw_write(lua) : call_original(lua);
}

int sandbox_rawset(lua_State* lua) { return is_proxy(lua, 1) ? refuse_raw_write(lua) : call_original(lua); }

// For rawget() and next(): replaces a proxy by the table behind it.
int read_behind(lua_State* lua) {
  if (push_behind(lua, 1)) lua_replace(lua, 1);
  return call_original(lua);
}

int next_behind(lua_State* lua) {
  lua_settop(lua, 2);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_replace(lua, 1);
  if (lua_next(lua, 1) != 0) return 2;
  lua_pushnil(lua);
  return 1;
}

int plain_next(lua_State* lua) {
  lua_settop(lua, 2);
  if (lua_next(lua, 1) != 0) return 2;
  lua_pushnil(lua);
  return 1;
}

int sandbox_pairs(lua_State* lua) {
  if (push_behind(lua, 1)) {
    lua_pushcclosure(lua, next_behind, 1);  // so that the script cannot get the table itself
  } else {
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_pushcfunction(lua, plain_next);
  }
  lua_pushvalue(lua, 1);
  lua_pushnil(lua);
  return 3;
}

// pcall() as in Redis: returns the text of an error that has one. Lua's own would return the table.
int sandbox_pcall(lua_State* lua) {
  luaL_checkany(lua, 1);
  const int status = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
  if (status != 0 && lua_istable(lua, -1)) {
    lua_pushliteral(lua, "err");
    lua_rawget(lua, -2);
    lua_isstring(lua, -1) != 0 ? lua_replace(lua, -2) : lua_pop(lua, 1);
  }
  lua_pushboolean(lua, status == 0);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

// xpcall() that calls the handler after the stack has unwound. Lua would call it where the error was
// raised. If that is the hook that ends a script, the handler would run without any hook. A script cannot
// detect the difference, as there is no `debug` to inspect the stack.
int sandbox_xpcall(lua_State* lua) {
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  lua_insert(lua, 1);
  if (lua_pcall(lua, 0, LUA_MULTRET, 0) == 0) {
    lua_pushboolean(lua, 1);
    lua_replace(lua, 1);
    return lua_gettop(lua);
  }
  if (lua_pcall(lua, 1, 1, 0) != 0) {
    lua_settop(lua, 0);
    lua_pushliteral(lua, "error in error handling");
  }
  lua_pushboolean(lua, 0);
  lua_insert(lua, -2);
  return 2;
}

// Compiles a text. Rejects compiled code: Lua does not verify it, so it could do anything.
int load_text(lua_State* lua, std::string_view text, const char* name) {
  if (text.starts_with(LUA_SIGNATURE[0])) {
    lua_pushnil(lua);
    lua_pushliteral(lua, "compiled code is not allowed");
    return 2;
  }
  if (compile_text(lua, text, name) == 0) return 1;
  lua_pushnil(lua);
  lua_insert(lua, -2);
  return 2;
}

int sandbox_loadstring(lua_State* lua) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  return load_text(lua, {text, size}, luaL_optstring(lua, 2, text));
}

// load(): concatenates the pieces that a function returns, until it returns none.
int sandbox_load(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  const char* name = luaL_optstring(lua, 2, "=(load)");
  lua_pushliteral(lua, "");
  while (true) {
    lua_pushvalue(lua, 1);
    if (lua_pcall(lua, 0, 1, 0) != 0) {
      lua_pushnil(lua);
      lua_insert(lua, -2);
      return 2;
    }
    if (lua_isnil(lua, -1)) break;
    size_t size = 0;
    if (lua_isstring(lua, -1) == 0) return luaL_error(lua, "reader function must return a string");
    lua_tolstring(lua, -1, &size);
    if (size == 0) break;
    lua_concat(lua, 2);
    host_of(lua).spend(lua);
  }
  lua_pop(lua, 1);
  size_t size = 0;
  const char* text = lua_tolstring(lua, -1, &size);
  return load_text(lua, {text, size}, name);
}

// Collects garbage, at most the work for `kib` KiB. Returns true if a cycle ended.
bool collect(lua_State* lua, int kib) {
  ScriptHost& host = host_of(lua);
  for (int i = 0; i <= kib; ++i) {
    const bool ended = lua_gc(lua, LUA_GCSTEP, 0) != 0;
    host.look_at_clock(lua);
    if (ended) return true;
  }
  return false;
}

// A script may run a collection, in steps; the clock is checked between them. A script must not stop the
// collection for later scripts.
int sandbox_collectgarbage(lua_State* lua) {
  static constexpr const char* kNames[] = {"collect", "count",    "step",       "stop",
                                           "restart", "setpause", "setstepmul", nullptr};
  const std::string_view what = kNames[luaL_checkoption(lua, 1, "collect", kNames)];
  if (what == "count") return call_original(lua);
  if (what == "step") {
    lua_pushboolean(lua, collect(lua, std::max(luaL_optint(lua, 2, 0), 0)));
    return 1;
  }
  if (what == "collect") {
    collect(lua, INT_MAX - 1);  // a cycle that had begun may miss recent garbage: run another
    collect(lua, INT_MAX - 1);
  }
  lua_pushinteger(lua, 0);
  return 1;
}

struct Wrapper {
  const char* name;
  lua_CFunction function;
};

// Replaces functions in the table on top by wrappers of the same name.
void put_before(lua_State* lua, std::initializer_list<Wrapper> wrappers) {
  for (const Wrapper& w : wrappers) {
    lua_getfield(lua, -1, w.name);
    lua_pushcclosure(lua, w.function, 1);
    lua_setfield(lua, -2, w.name);
  }
}

void open_library(lua_State* lua, const char* name, lua_CFunction open) {
  lua_pushcfunction(lua, open);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

// Opens Lua's libraries and Redis's in the state's own table of globals.
void open_libraries(lua_State* lua) {
  open_library(lua, "", luaopen_base);
  open_library(lua, LUA_TABLIBNAME, luaopen_table);
  open_library(lua, LUA_STRLIBNAME, luaopen_string);
  open_library(lua, LUA_MATHLIBNAME, luaopen_math);
  push_cjson(lua, host_of(lua).json_settings());
  lua_setglobal(lua, "cjson");
  push_bit(lua);
  lua_setglobal(lua, "bit");
  push_struct(lua);
  lua_setglobal(lua, "struct");
  push_cmsgpack(lua);
  lua_setglobal(lua, "cmsgpack");
}

void guard_base(lua_State* lua) {
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  put_before(lua, {{"type", sandbox_type},
                   {"setmetatable", sandbox_setmetatable},
                   {"rawset", sandbox_rawset},
                   {"rawget", read_behind},
                   {"next", read_behind},
                   {"pairs", sandbox_pairs},
                   {"pcall", sandbox_pcall},
                   {"xpcall", sandbox_xpcall},
                   {"loadstring", sandbox_loadstring},
                   {"load", sandbox_load},
                   {"collectgarbage", sandbox_collectgarbage}});
  lua_pop(lua, 1);
  put_host_functions(lua);
  put_table_functions(lua);
  put_pattern_functions(lua);
  put_coroutine_functions(lua);
}

// Copies a name from the state's globals into the table on top. A table is copied as its proxy.
void expose(lua_State* lua, const char* name) {
  lua_getglobal(lua, name);
  if (lua_istable(lua, -1)) wrap(lua);
  lua_setfield(lua, -2, name);
}

// Protects the metatable that all strings share against changes.
void guard_strings(lua_State* lua) {
  lua_pushliteral(lua, "");
  lua_getmetatable(lua, -1);
  lua_createtable(lua, 0, 1);
  lua_getglobal(lua, LUA_STRLIBNAME);
  wrap(lua);
  lua_setfield(lua, -2, "__index");
  wrap(lua);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 2);
}

constexpr const char* kNames[] = {
    "_VERSION", "assert",     "collectgarbage", "error",    "gcinfo",   "getmetatable", "ipairs",
    "load",     "loadstring", "next",           "pairs",    "pcall",    "rawequal",     "rawget",
    "rawset",   "select",     "setmetatable",   "tonumber", "tostring", "type",         "unpack",
    "xpcall",   "coroutine",  "math",           "string",   "table",    "bit",          "cjson",
    "cmsgpack", "struct",
};

// Pushes the table of globals that scripts read. The access to a missing name is an error.
void push_globals(lua_State* lua) {
  lua_createtable(lua, 0, 64);
  for (const char* name : kNames) expose(lua, name);
  push_redis_table(lua);
  wrap(lua);
  lua_setfield(lua, -2, "redis");
  forbid_missing(lua);
}

// Adds the position where it was raised to an error. Makes a table {err, source, line}.
int complete_error(lua_State* lua) {
  lua_settop(lua, 1);
  if (!lua_istable(lua, 1)) {
    std::string text = "ERR ";
    if (lua_isstring(lua, 1) != 0) {
      text += lua_tostring(lua, 1);
    } else {
      text +=
          lua_isboolean(lua, 1) ? (lua_toboolean(lua, 1) != 0 ? "true" : "false") : luaL_typename(lua, 1);
    }
    push_error(lua, text);
  }
  lua_Debug at;
  if (lua_getstack(lua, 1, &at) == 0) return 1;
  lua_getinfo(lua, "Sl", &at);
  if (at.what[0] == 'C' && lua_getstack(lua, 2, &at) != 0) lua_getinfo(lua, "Sl", &at);
  lua_pushliteral(lua, "source");
  lua_pushstring(lua, at.source);
  lua_rawset(lua, -3);
  lua_pushliteral(lua, "line");
  lua_pushinteger(lua, at.currentline);
  lua_rawset(lua, -3);
  return 1;
}

}  // namespace

void wrap_table(lua_State* lua) { wrap(lua); }

void forbid_missing(lua_State* lua) {
  lua_createtable(lua, 0, 1);
  lua_pushcfunction(lua, refuse_missing);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, -2);
}

void push_error_handler(lua_State* lua) { lua_pushcfunction(lua, complete_error); }

int call_original(lua_State* lua, int upvalue) {
  return lua_tocfunction(lua, lua_upvalueindex(upvalue))(lua);
}

void open_sandbox(lua_State* lua) {
  open_libraries(lua);
  guard_base(lua);
  guard_strings(lua);
  push_globals(lua);

  // The environment of scripts: always empty, so that every write is detected and rejected.
  lua_createtable(lua, 0, 0);
  lua_createtable(lua, 0, 4);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, -2);

  // _G is a proxy of the globals with a readable metatable.
  lua_pushvalue(lua, -2);
  wrap(lua);
  lua_getmetatable(lua, -1);
  lua_createtable(lua, 0, 0);
  wrap(lua);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 1);
  lua_setfield(lua, -3, "_G");

  lua_replace(lua, LUA_GLOBALSINDEX);  // for code that scripts compile, and for their coroutines
  lua_pushcfunction(lua, complete_error);
}

}  // namespace holdfast
