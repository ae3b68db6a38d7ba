// What must hold between two calls of scripts, however they ended: for tests.
#include <algorithm>
#include <cassert>
#include <lua.hpp>

#include "core/script/script.h"

namespace holdfast {

namespace {

void check_idle(const LuaState& state) {
  assert(state.ceiling_bytes == UINT64_MAX && state.fast_collection_bytes == UINT64_MAX);
  assert(state.lua == nullptr || lua_gettop(state.lua) == 0);
}

bool is_registered_function(const LuaState& state, int place) {
  lua_rawgeti(state.lua, LUA_REGISTRYINDEX, place);
  const bool is_it = lua_isfunction(state.lua, -1);
  lua_pop(state.lua, 1);
  return is_it;
}

}  // namespace

void ScriptHost::check_invariants() const {
  assert(!running() && state_ == nullptr);
  check_idle(scripts_lua_);
  size_t collecting = scripts_lua_.collecting ? 1 : 0;
  uint64_t used_bytes = scripts_lua_.used_bytes;
  for (const auto& [name, library] : libraries_.all()) {
    check_idle(*library->state);
    assert(is_registered_function(*library->state, library->state->run));
    for (const LibraryFunction& f : library->functions) {
      assert(libraries_.function(f.name) == &f);
      assert(f.state == library->state.get() && is_registered_function(*f.state, f.registered));
    }
    used_bytes += library->state->used_bytes;
    collecting += library->state->collecting ? 1 : 0;
  }
  for (const auto& state : closing_) used_bytes += state->used_bytes;
  assert(used_bytes == used_bytes_ && collecting == collecting_states_);

  size_t evictable = 0;
  uint64_t kept_bytes = 0;
  for (const auto& part : scripts_) {
    for (const auto& [sha, script] : part) {
      push_function(scripts_lua_.lua, script.function);
      assert(lua_isfunction(scripts_lua_.lua, -1));
      lua_pop(scripts_lua_.lua, 1);
      script.evictable ? ++evictable : kept_bytes += script.bytes;
      assert(!script.evictable || *script.place == sha);
    }
  }
  assert(evictable == by_use_.size() && kept_bytes == kept_bytes_);
  assert(scripts_.size() + free_places_.size() == functions_);
}

}  // namespace holdfast
