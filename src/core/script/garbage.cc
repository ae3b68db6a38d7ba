// Garbage collection of scripts and libraries, in small steps between requests, because one full collection
// may take as long as the creation of the garbage.
#include <algorithm>
#include <cassert>
#include <lua.hpp>

#include "core/script/script.h"

namespace holdfast {

namespace {

// Lua's default pace: its work, in percent of the allocated bytes. The pause between two cycles is set in
// set_pace().
constexpr int kUsualWork = 200;
constexpr int kMostWork = 1'000'000;    // in effect a whole cycle in one step
constexpr uint64_t kStepWork = 20'000;  // bytes marked or swept in one step: about 0.1 ms

// Both may allocate, as Lua moves its table of strings to a smaller one.
int collect_all(lua_State* lua) { return lua_gc(lua, LUA_GCCOLLECT, 0), 0; }

struct Part {
  int kib;
  bool ended;  // the cycle
};
int collect_one_part(lua_State* lua) {
  auto& part = *static_cast<Part*>(lua_touserdata(lua, 1));
  part.ended = lua_gc(lua, LUA_GCSTEP, part.kib) != 0;
  return 0;
}

}  // namespace

LuaState::~LuaState() {
  if (lua != nullptr) lua_close(lua);
}

// Raises the collector's pace for a run that has allocated much of its limit, or large blocks. Lua makes
// one step for each block of any size, so with a few large blocks it would never finish a cycle. The
// function only sets a number.
void ScriptHost::collect_faster(LuaState& state, size_t block_bytes) {
  if (block_bytes >= kLargeBlockBytes) look_soon();
  if (call_.request == nullptr || call_.collects_faster) return;
  call_.collects_faster = true;
  lua_gc(state.lua, LUA_GCSETSTEPMUL, kMostWork);
}

// A cycle must begin and end within the memory that one run may allocate, however much memory stays in use.
void ScriptHost::set_pace(LuaState& state) {
  const uint64_t run = run_limit();
  const uint64_t live = std::max(state.live_bytes, uint64_t{1});
  state.work = static_cast<int>(std::min(kUsualWork * (1 + 2 * live / run), uint64_t{kMostWork}));
  lua_gc(state.lua, LUA_GCSETSTEPMUL, state.work);
  lua_gc(state.lua, LUA_GCSETPAUSE, static_cast<int>(100 + 100 * std::min(live, run / 4) / live));
}

void ScriptHost::set_collecting(LuaState& state, bool collecting) {
  if (state.collecting == collecting) return;
  state.collecting = collecting;
  collecting ? ++collecting_states_ : --collecting_states_;
}

void ScriptHost::end_collection(LuaState& state) {
  set_collecting(state, false);
  state.live_bytes = state.used_bytes;
  set_pace(state);
}

// Returns whether a cycle ended.
bool ScriptHost::collect_part(LuaState& state) {
  // For each KiB that it shall collect, Lua does work of 1,024/100 times the percentage.
  const uint64_t kib = std::max(kStepWork * 100 / (1024 * static_cast<uint64_t>(state.work)), uint64_t{1});
  Part part{static_cast<int>(kib), false};
  return protect(state, collect_one_part, &part) && part.ended;
}

void ScriptHost::collect_step() {
  assert(!running());
  if (!closing_.empty()) {
    LuaState& state = *closing_.back();
    if (collect_part(state) && --state.cycles_left == 0) closing_.pop_back();
    return;
  }
  LuaState* state = &scripts_lua_;
  for (auto it = libraries_.all().begin(); !state->collecting && it != libraries_.all().end(); ++it) {
    state = it->second->state.get();
  }
  if (state->collecting && collect_part(*state)) end_collection(*state);
}

void ScriptHost::collect(LuaState& state) {
  static_cast<void>(protect(state, collect_all, nullptr));
  end_collection(state);
}

// Frees the memory that libraries do not need.
void ScriptHost::collect_libraries() {
  constexpr uint64_t kLittle = uint64_t{16} << 10U;
  closing_.clear();
  for (const auto& [name, library] : libraries_.all()) {
    if (library->state->used_bytes > library->state->live_bytes + kLittle) collect(*library->state);
  }
}

// Collects all garbage now if the steps between requests were not enough.
void ScriptHost::make_room(LuaState& state) {
  const uint64_t run = run_limit();
  uint64_t garbage = run_reserve() / 8;  // what may stay
  if (&state == &scripts_lua_) {
    garbage = state.used_bytes + run > scripts_room() ? run_reserve() / 4 : 2 * run;
  } else if (library_bytes() + run_reserve() > library_room()) {
    collect_libraries();
  }
  if (state.used_bytes > state.live_bytes + garbage) collect(state);
}

void ScriptHost::tidy(LuaState& state) {
  state.live_bytes = std::min(state.live_bytes, state.used_bytes);
  const uint64_t garbage = &state == &scripts_lua_ ? run_limit() / 4 : run_reserve() / 16;
  if (state.used_bytes > state.live_bytes + garbage) set_collecting(state, true);
}

}  // namespace holdfast
