// The clock of scripts. Lua calls a hook after a number of its instructions, and spend() counts the work of
// C code. The number adapts to the cost of a step: an addition, or a comparison of two strings of 8 MB.
#include <algorithm>
#include <lua.hpp>
#include <utility>

#include "core/script/api.h"
#include "core/script/memory.h"
#include "core/script/script.h"
#include "core/script/value.h"

namespace holdfast {

namespace {

constexpr int64_t kFirstSteps = 1000;
constexpr int64_t kMostSteps = 8192;
constexpr int64_t kStepsWithLargeBlocks = 16;
constexpr int64_t kShortUs = 1500;  // the least time between two checks of the clock,
constexpr int64_t kLongUs = 3000;   // and the most
constexpr int64_t kSliceUs = 5000;  // time slice of a script after its first pause

void on_count(lua_State* lua, lua_Debug*) { host_of(lua).look_at_clock(lua); }

// Returns the limit of steps between two checks. One step may read all memory of a script: table.maxn(), a
// comparison of two strings, next() on a list that was emptied. So the limit decreases with the script's
// memory, regardless of the speed so far.
int64_t most_steps(uint64_t bytes) {
  constexpr uint64_t kWork = uint64_t{1} << 29U;  // bytes to read: about 0.2 s, once
  return std::clamp(static_cast<int64_t>(kWork / std::max(bytes, uint64_t{1})), int64_t{1}, kMostSteps);
}

int64_t adapted(int64_t steps, int64_t took_us) {
  if (took_us > kLongUs) return std::max(steps / 8, int64_t{1});
  return took_us < kShortUs ? steps * 2 : steps;
}

}  // namespace

void ScriptHost::begin_call(LuaState& state, uint64_t ceiling_bytes) {
  call_.active = true;
  call_.used_before = state.used_bytes;
  state_ = &state;
  state.ceiling_bytes = ceiling_bytes;
  current_ = state.lua;
  set_steps(current_, kFirstSteps);
}

void ScriptHost::end_call() {
  lua_settop(state_->lua, 0);
  state_->ceiling_bytes = state_->fast_collection_bytes = UINT64_MAX;
  state_ = nullptr;
  call_ = Call{};
  json_ = {};
}

void ScriptHost::set_steps(lua_State* lua, int64_t steps) {
  steps_ = steps_left_ = steps;
  lua_sethook(lua, on_count, LUA_MASKCOUNT, static_cast<int>(steps));
}

// Called for a large block: one step on it may take as long as thousands of earlier steps. Reduces the
// number of steps.
void ScriptHost::look_soon() {
  if (call_.active && call_.killed.empty() && steps_ > kStepsWithLargeBlocks) {
    set_steps(current_, kStepsWithLargeBlocks);
  }
}

lua_State* ScriptHost::switch_to(lua_State* coroutine) {
  if (lua_gethookcount(coroutine) != steps_ && call_.killed.empty()) {
    lua_sethook(coroutine, on_count, LUA_MASKCOUNT, static_cast<int>(steps_));
  }
  return std::exchange(current_, coroutine);
}

void ScriptHost::yield_in_time() {
  const int64_t now_us = time.clock_us();
  if (call_.began_us == 0) call_.began_us = call_.slice_us = call_.looked_us = now_us;
  uint64_t bytes = call_.argument_bytes;
  if (const LuaState& state = *state_; state.fast_collection_bytes != UINT64_MAX) {
    const uint64_t at_first = std::min(state.fast_collection_bytes - run_limit() / 4, state.live_bytes);
    bytes += rest_of(state.used_bytes, at_first);
  }
  steps_ = std::min(adapted(steps_, now_us - call_.looked_us), most_steps(bytes));
  call_.looked_us = now_us;
  const int64_t allowed_us = call_.paused ? kSliceUs : time.busy_us;
  if (time.hard_us > 0 && !call_.wrote && now_us - call_.began_us >= time.hard_us) {
    call_.killed = "ERR Script killed: it ran for longer than script-timeout allows.";
  } else if (call_.library != nullptr && now_us - call_.began_us >= kLoadUs) {
    call_.killed = "ERR FUNCTION LOAD timeout";
  } else if (now_us - call_.slice_us >= allowed_us) {
    call_.paused = true;
    time.pause();
    call_.slice_us = call_.looked_us = time.clock_us();
  }
}

void ScriptHost::look_at_clock(lua_State* lua) {
  if (call_.active && call_.killed.empty() && time.clock_us) yield_in_time();
  if (call_.killed.empty()) return set_steps(lua, steps_);
  // From now on raises the error at every step, so that no pcall() of the script catches it for long.
  steps_left_ = 0;
  lua_sethook(lua, on_count, LUA_MASKCOUNT | LUA_MASKLINE, 1);
  push_error(lua, call_.killed);
  lua_error(lua);
}

}  // namespace holdfast
