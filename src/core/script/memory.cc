// The memory of scripts and libraries, and its limits. Lua 5.1 allocates at points where it cannot collect,
// so memory must be free before a script begins.
//
// The limit of all scripts, script-memory-limit, has two parts that never change with what a script does,
// so that no library can take the memory of scripts:
// - library_room(): all libraries, with what their functions keep and create. It is a half of the limit,
//   less the scripts of SCRIPT LOAD, but an eighth at least.
// - scripts_room(): the rest, for cached scripts and their runs. The compiler leaves run_reserve() of it.
// One library, with what its functions keep and create, has run_reserve() at most. KEYS and ARGV count to
// no part, only to the whole.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <lua.hpp>

#include "core/script/memory.h"

#include "core/script/script.h"

namespace holdfast {

void* take_script_memory(lua_State* lua, size_t bytes) {
  void* state = nullptr;
  const lua_Alloc allocate = lua_getallocf(lua, &state);
  void* block = allocate(state, nullptr, 0, bytes);
  if (block != nullptr) return block;
  lua_gc(lua, LUA_GCCOLLECT, 0);
  return allocate(state, nullptr, 0, bytes);
}

void give_script_memory(lua_State* lua, void* block, size_t bytes) {
  void* state = nullptr;
  lua_getallocf(lua, &state)(state, block, bytes, 0);
}

void raise_no_memory(lua_State* lua) {
  luaL_error(lua, "not enough memory");
  std::abort();  // not reached
}

// Lua's allocator. Lua frees with new_size 0. It requires that a smaller size never fails; then the old
// block may stay.
void* ScriptHost::allocate(void* state, void* block, size_t old_size, size_t new_size) {
  auto& own = *static_cast<LuaState*>(state);
  ScriptHost& self = own.host;
  if (new_size == 0) {
    own.used_bytes -= old_size;
    self.used_bytes_ -= old_size;
    if (block != nullptr) self.blocks_.give(block, old_size);
    return nullptr;
  }
  if (new_size > old_size && !self.may_grow(own, new_size - old_size)) return nullptr;
  if (new_size >= kLargeBlockBytes || own.used_bytes > own.fast_collection_bytes) {
    self.collect_faster(own, new_size);
  }
  void* moved = block == nullptr ? self.blocks_.take(new_size) : self.reallocate(block, old_size, new_size);
  if (moved == nullptr) return nullptr;
  own.used_bytes += new_size - old_size;
  self.used_bytes_ += new_size - old_size;
  return moved;
}

bool ScriptHost::may_grow(const LuaState& state, size_t bytes) {
  if (--memory_fault.after < 0 && memory_fault.after >= -memory_fault.count) return false;
  return state.used_bytes + bytes <= state.ceiling_bytes;
}

void* ScriptHost::reallocate(void* block, size_t old_size, size_t new_size) {
  const bool large = std::min(old_size, new_size) > BlockPool::kMaxBytes;
  void* moved = large ? std::realloc(block, new_size) : blocks_.take(new_size);
  if (moved == nullptr) return new_size < old_size ? block : nullptr;
  if (large) return moved;
  std::memcpy(moved, block, std::min(old_size, new_size));
  blocks_.give(block, old_size);
  return moved;
}

// Calls a function of the engine's own in protected mode. Returns false if it raised an error: the limits
// of scripts do not count now, so the machine had no memory.
bool ScriptHost::protect(LuaState& state, lua_CFunction function, void* data) {
  const bool done = lua_cpcall(state.lua, function, data) == 0;
  lua_settop(state.lua, 0);
  return done;
}

// Frees places of the registry, and what they refer to. The first loop allocates nothing, as the places
// exist; luaL_unref() may, and without memory the places are lost, but not their content.
void ScriptHost::unref(LuaState& state, std::span<const int> places) {
  for (const int place : places) {
    lua_pushnil(state.lua);
    lua_rawseti(state.lua, LUA_REGISTRYINDEX, place);
  }
  const auto free_places = [](lua_State* lua) {
    for (const int place : *static_cast<std::span<const int>*>(lua_touserdata(lua, 1))) {
      luaL_unref(lua, LUA_REGISTRYINDEX, place);
    }
    return 0;
  };
  static_cast<void>(protect(state, free_places, &places));
}

uint64_t ScriptHost::library_room() const {
  return std::max(rest_of(limit_bytes_ / 2, kept_bytes_), limit_bytes_ / 8);
}

// Returns the most that a state may use, without KEYS and ARGV.
uint64_t ScriptHost::limit_of(const LuaState& state) const {
  if (&state == &scripts_lua_) return scripts_room();
  const uint64_t all = state.used_bytes + rest_of(library_room(), library_bytes());
  return std::min(all, state.opened_bytes + run_reserve());
}

// Returns the most that a state may use because of the limit of all states.
uint64_t ScriptHost::whole_room(const LuaState& state) const {
  return state.used_bytes + rest_of(limit_bytes_, used_bytes_);
}

// Begins the limit of a run. The arguments are in memory already.
void ScriptHost::begin_limit() {
  LuaState& state = *state_;
  scratch_.set_limit(run_limit());
  uint64_t most = limit_of(state) + rest_of(state.used_bytes, call_.used_before);
  if (&state == &scripts_lua_) most = std::min(most, state.used_bytes + run_bytes_);
  state.ceiling_bytes = std::min(most, whole_room(state));
  state.fast_collection_bytes = state.used_bytes + run_limit() / 4;
}

void ScriptHost::end_limit() {
  constexpr size_t kKeptBytes = size_t{64} << 10U;
  scratch_.reset(kKeptBytes);
  if (call_.collects_faster) set_pace(*state_);
}

void ScriptHost::set_memory_limits(uint64_t all_bytes, uint64_t run_bytes) {
  if (all_bytes == limit_bytes_ && run_bytes == run_bytes_) return;
  limit_bytes_ = all_bytes;
  run_bytes_ = run_bytes;
  if (scripts_lua_.lua != nullptr) set_pace(scripts_lua_);
  for (const auto& [name, library] : libraries_.all()) set_pace(*library->state);
}

}  // namespace holdfast
