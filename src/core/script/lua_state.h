// One Lua state and its memory. All scripts share one state, and each library of functions has its own: so
// the memory of a library is counted exactly, ends with the library, and is none of the scripts'. Users
// need no Lua header.
#pragma once

#include <cstdint>

struct lua_State;

namespace holdfast {

class ScriptHost;

inline constexpr uint64_t kLargeBlockBytes = uint64_t{64} << 10U;  // the collector runs faster for it

struct LuaState {
  explicit LuaState(ScriptHost& h) : host(h) {}
  ~LuaState();  // frees all memory of the state
  LuaState(const LuaState&) = delete;
  LuaState& operator=(const LuaState&) = delete;

  ScriptHost& host;           // outlives the state
  lua_State* lua = nullptr;   // null before ScriptHost::open()
  uint64_t used_bytes = 0;    // memory in use
  uint64_t opened_bytes = 0;  // memory of the state without scripts
  uint64_t live_bytes = 0;    // memory in use after the last collection
  // The limits of the present call. There is no limit while no script runs: the engine's own calls of Lua
  // must not fail because scripts have used their memory.
  uint64_t ceiling_bytes = UINT64_MAX;
  uint64_t fast_collection_bytes = UINT64_MAX;  // use beyond which the collector runs faster
  bool collecting = false;                      // there is too much garbage
  int work = 0;         // pace of Lua's collector, in percent of the allocated bytes
  int run = 0;          // registry place of the function that runs a script
  int cycles_left = 2;  // collections until a removed library's state has little left to free
};

}  // namespace holdfast
