// Coroutines. Lua counts the instructions of each coroutine separately. So the count of a script made of
// short coroutines would never reach its end.
#include <lua.hpp>

#include "core/script/api.h"
#include "core/script/script.h"

namespace holdfast {

namespace {

// The approximate cost of making a coroutine, or of a switch to one.
constexpr int64_t kStepsOfSwitch = 64;

// Switches to a coroutine, and in the destructor back to the previous one, also after an error.
class Switch {
 public:
  Switch(ScriptHost& host, lua_State* to) : host_(host), from_(host.switch_to(to)) {}
  ~Switch() { host_.switch_to(from_); }
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

 private:
  ScriptHost& host_;
  lua_State* from_;
};

// Runs before Lua's coroutine.create().
int create(lua_State* lua) {
  host_of(lua).spend(lua, kStepsOfSwitch);
  return call_original(lua, 1);
}

int resume_by(lua_State* lua, int upvalue) {
  ScriptHost& host = host_of(lua);
  host.spend(lua, kStepsOfSwitch);
  lua_State* coroutine = lua_tothread(lua, 1);
  if (coroutine == nullptr) return call_original(lua, upvalue);  // which raises the error
  const Switch there(host, coroutine);
  return call_original(lua, upvalue);
}

int resume(lua_State* lua) { return resume_by(lua, 1); }

// The function that coroutine.wrap() returns. Upvalues: coroutine.resume(), the coroutine.
int resume_wrapped(lua_State* lua) {
  lua_pushvalue(lua, lua_upvalueindex(2));
  lua_insert(lua, 1);
  const int count = resume_by(lua, 1);
  if (lua_toboolean(lua, -count) != 0) return count - 1;
  if (lua_isstring(lua, -1) != 0) {  // adds the position to an error's text
    luaL_where(lua, 1);
    lua_insert(lua, -2);
    lua_concat(lua, 2);
  }
  return lua_error(lua);
}

// coroutine.wrap(). Upvalues: coroutine.create(), coroutine.resume().
int wrap(lua_State* lua) {
  host_of(lua).spend(lua, kStepsOfSwitch);
  call_original(lua, 1);
  lua_pushvalue(lua, lua_upvalueindex(2));
  lua_insert(lua, -2);
  lua_pushcclosure(lua, resume_wrapped, 2);
  return 1;
}

}  // namespace

void put_coroutine_functions(lua_State* lua) {
  lua_getglobal(lua, LUA_COLIBNAME);
  lua_getfield(lua, -1, "create");
  lua_getfield(lua, -2, "resume");
  lua_pushcclosure(lua, wrap, 2);
  lua_setfield(lua, -2, "wrap");
  for (const luaL_Reg& f : {luaL_Reg{"create", create}, luaL_Reg{"resume", resume}}) {
    lua_getfield(lua, -1, f.name);
    lua_pushcclosure(lua, f.func, 1);
    lua_setfield(lua, -2, f.name);
  }
  lua_pop(lua, 1);
}

}  // namespace holdfast
