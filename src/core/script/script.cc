// The host of scripts: its Lua states, and one run.
#include "core/script/script.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <lua.hpp>
#include <utility>

#include "core/command/command.h"
#include "core/script/api.h"
#include "core/script/value.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr std::string_view kNoMemory =
    "ERR not enough memory for the script: raise script-run-memory-limit or script-memory-limit";

// Lua calls it for an error outside of protected mode, and would then end the process without a word.
int on_panic(lua_State* lua) {
  const ScriptHost& host = host_of(lua);
  const char* text = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : "unknown";
  if (host.log)
    host.log(3, std::string("a fault of Holdfast: a Lua error outside of a protected call: ") + text);
  std::abort();
}

}  // namespace

// Functions that run in protected mode, because memory may run out in any of them.
struct ScriptSandbox {
  static int open(lua_State* lua) {
    open_sandbox(lua);
    lua_pushliteral(lua, "KEYS");
    lua_pushliteral(lua, "ARGV");
    lua_pushcclosure(lua, run, kUpvalues);
    state_of(lua).run = luaL_ref(lua, LUA_REGISTRYINDEX);
    // The text of an error that Lua makes outside of protected mode; made already, it needs no memory.
    lua_pushliteral(lua, "error in error handling");
    luaL_ref(lua, LUA_REGISTRYINDEX);
    return 0;
  }

  // The upvalues of run(), in the order of their creation.
  enum : int { kGlobals = 1, kHandler, kKeys, kArgv, kUpvalues = kArgv };

  // Pushes a list of strings.
  static void push_strings(lua_State* lua, ScriptHost& host, std::span<const std::string_view> strings) {
    lua_createtable(lua, static_cast<int>(strings.size()), 0);
    int i = 0;
    for (const std::string_view s : strings) {
      lua_pushlstring(lua, s.data(), s.size());
      lua_rawseti(lua, -2, ++i);
      host.call_.argument_bytes += s.size();
      host.spend(lua);
    }
  }

  // Sets a global of scripts, whose name is an upvalue, to a list of strings, or to nothing for a function
  // of a library. The table of globals is on top.
  static void set_strings(lua_State* lua, ScriptHost& host, int name,
                          std::span<const std::string_view> strings) {
    lua_pushvalue(lua, lua_upvalueindex(name));
    host.call_.function == nullptr ? push_strings(lua, host, strings) : lua_pushnil(lua);
    lua_rawset(lua, -3);
  }

  // Pushes what a run calls, and its arguments. Returns the number of arguments.
  static int push_call(lua_State* lua, ScriptHost& host) {
    const Script& script = *host.call_.script;
    if (host.call_.function == nullptr) [[likely]] {
      host.push_function(lua, script.function);
      return 0;
    }
    lua_rawgeti(lua, LUA_REGISTRYINDEX, script.registered);
    push_strings(lua, host, host.call_.keys);
    push_strings(lua, host, host.call_.args);
    return 2;
  }

  // Runs the script in a protected call of its own, so that the reply can name the position of its error.
  static int run(lua_State* lua) {
    ScriptHost& host = host_of(lua);
    Request& r = *host.call_.request;
    lua_pushvalue(lua, lua_upvalueindex(kGlobals));
    set_strings(lua, host, kKeys, host.call_.keys);
    set_strings(lua, host, kArgv, host.call_.args);
    lua_settop(lua, 0);
    lua_pushvalue(lua, lua_upvalueindex(kHandler));
    const int arguments = push_call(lua, host);
    host.begin_limit();
    const size_t begin = r.reply.out().size();
    const bool failed = lua_pcall(lua, arguments, 1, 1) != 0;
    host.repeated_an_error_ = is_marked_error(lua);
    if (failed) {
      host.write_error(r, lua);
    } else if (const Written w = write_value(lua, host, r.reply, host.call_.resp >= 3);
               w != Written::kWhole) {
      r.reply.out().truncate(begin);
      r.reply.error(w == Written::kTooDeep ? "ERR reached lua stack limit" : kNoMemory);
    }
    return 0;
  }
};

ScriptHost::ScriptHost(uint64_t all_bytes, uint64_t run_bytes)
    : limit_bytes_(all_bytes), run_bytes_(run_bytes) {}

// Makes the Lua state, which a server without scripts does not need. Returns false if there is not enough
// memory.
bool ScriptHost::open(LuaState& state) {
  if (state.lua != nullptr) return true;
  state.lua = lua_newstate(allocate, &state);
  if (state.lua == nullptr) return false;
  lua_atpanic(state.lua, on_panic);
  if (!protect(state, ScriptSandbox::open, nullptr)) {
    lua_close(std::exchange(state.lua, nullptr));
    return false;
  }
  end_collection(state);
  state.opened_bytes = state.used_bytes;
  return true;
}

// "<error> script: <sha>, on <source>:<line>." The error object is on top of the stack.
void ScriptHost::write_error(Request& r, lua_State* lua) {
  const auto field = [lua](const char* name) {
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    size_t size = 0;
    const char* bytes = lua_type(lua, -1) == LUA_TNIL ? nullptr : lua_tolstring(lua, -1, &size);
    std::string text(bytes == nullptr ? "" : bytes, size);
    lua_pop(lua, 1);
    return text;
  };
  std::string text;
  std::string place;
  if (lua_istable(lua, -1)) {
    text = field("err");
    if (text.empty()) text = "ERR unknown error";
    if (const std::string source = field("source"); !source.empty()) {
      place = ", on " + source + ":" + field("line") + ".";
    }
  } else {  // out of memory, or an error in an error's handler: Lua's own text
    const char* own = lua_tostring(lua, -1);
    text = std::string("ERR ") + (own == nullptr ? "unknown error" : own);
  }
  if (text.starts_with('-')) text.erase(0, 1);
  text.append(" script: ").append(call_.sha).append(place);
  r.reply.error(text);
}

void ScriptHost::run(Request& r, const Script& script, std::string_view sha,
                     std::span<const std::string_view> keys, std::span<const std::string_view> args,
                     bool read_only) {
  const DbIndex number = r.s().db_name[r.c.db];
  const size_t begin = r.reply.out().size();
  LuaState& state = script.state == nullptr ? scripts_lua_ : *script.state;
  make_room(state);
  begin_call(state, whole_room(state));
  repeated_an_error_ = false;
  call_.request = &r;
  call_.read_only = read_only || script.flags.no_writes;
  call_.sha = sha;
  call_.script = &script;
  call_.keys = keys;
  call_.args = args;
  if (script.evictable && std::next(script.place) != by_use_.end()) {
    by_use_.splice(by_use_.end(), by_use_, script.place);
  }
  lua_rawgeti(state.lua, LUA_REGISTRYINDEX, state.run);
  if (lua_pcall(state.lua, 0, 0, 0) != 0) {
    r.reply.out().truncate(begin);
    r.reply.error(call_.killed.empty() ? kNoMemory : call_.killed);
  }
  end_limit();
  end_call();
  r.c.db = r.s().db_at[number];  // SELECT in a script ends with the script, SWAPDB does not
  tidy(state);
}

}  // namespace holdfast
