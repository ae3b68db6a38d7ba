// The memory of scripts: its limits, and garbage collection. Lua 5.1 allocates at points where it cannot
// collect, so memory must be free before a script begins. The garbage of scripts is collected in small
// steps between requests, because one full collection may take as long as its creation.
#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <lua.hpp>

#include "core/script/memory.h"

#include "core/script/script.h"

namespace holdfast {

namespace {

// Lua's default pace: its work, in percent of the allocated bytes. The pause between two cycles is set in
// set_pace().
constexpr int kUsualWork = 200;
constexpr int kMostWork = 1'000'000;  // in effect a whole cycle in one step
constexpr uint64_t kLargeBlock = uint64_t{64} << 10U;
constexpr uint64_t kStepWork = 20'000;  // bytes marked or swept in one step: about 0.1 ms

}  // namespace

void* take_script_memory(lua_State* lua, size_t bytes) {
  void* host = nullptr;
  const lua_Alloc allocate = lua_getallocf(lua, &host);
  void* block = allocate(host, nullptr, 0, bytes);
  if (block != nullptr) return block;
  lua_gc(lua, LUA_GCCOLLECT, 0);
  return allocate(host, nullptr, 0, bytes);
}

void give_script_memory(lua_State* lua, void* block, size_t bytes) {
  void* host = nullptr;
  lua_getallocf(lua, &host)(host, block, bytes, 0);
}

void raise_no_memory(lua_State* lua) {
  luaL_error(lua, "not enough memory");
  std::abort();  // not reached
}

// Lua's allocator. Lua frees with new_size 0. It requires that a smaller size never fails; then the old
// block may stay.
void* ScriptHost::allocate(void* host, void* block, size_t old_size, size_t new_size) {
  auto& self = *static_cast<ScriptHost*>(host);
  if (new_size == 0) {
    self.used_bytes_ -= old_size;
    if (block != nullptr) self.blocks_.give(block, old_size);
    return nullptr;
  }
  if (new_size > old_size && self.used_bytes_ + (new_size - old_size) > self.ceiling_bytes_) return nullptr;
  if (new_size >= kLargeBlock || self.used_bytes_ > self.fast_collection_bytes_)
    self.collect_faster(new_size);
  void* moved = block == nullptr ? self.blocks_.take(new_size) : self.reallocate(block, old_size, new_size);
  if (moved != nullptr) self.used_bytes_ += new_size - old_size;
  return moved;
}

void* ScriptHost::reallocate(void* block, size_t old_size, size_t new_size) {
  if (std::min(old_size, new_size) > BlockPool::kMaxBytes) return std::realloc(block, new_size);
  void* moved = blocks_.take(new_size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(old_size, new_size));
  blocks_.give(block, old_size);
  return moved;
}

// Raises the collector's pace for a run that has allocated much of its limit, or large blocks. Lua makes
// one step for each block of any size, so with a few large blocks it would never finish a cycle. The
// function only sets a number.
void ScriptHost::collect_faster(size_t block_bytes) {
  if (block_bytes >= kLargeBlock) look_soon();
  if (call_.request == nullptr || call_.collects_faster) return;
  call_.collects_faster = true;
  lua_gc(lua_, LUA_GCSETSTEPMUL, kMostWork);
}

// A cycle must begin and end within the memory that one run may allocate, however much memory stays in use.
void ScriptHost::set_pace() {
  const uint64_t run = run_limit();
  const uint64_t live = std::max(live_bytes_, uint64_t{1});
  work_ = static_cast<int>(std::min(kUsualWork * (1 + 2 * live / run), uint64_t{kMostWork}));
  lua_gc(lua_, LUA_GCSETSTEPMUL, work_);
  lua_gc(lua_, LUA_GCSETPAUSE, static_cast<int>(100 + 100 * std::min(live, run / 4) / live));
}

void ScriptHost::begin_limit() {
  scratch_.set_limit(run_limit());
  ceiling_bytes_ = std::min(limit_bytes_, used_bytes_ + run_bytes_);
  fast_collection_bytes_ = used_bytes_ + run_limit() / 4;
}

void ScriptHost::end_limit() {
  constexpr size_t kKeptBytes = size_t{64} << 10U;
  scratch_.reset(kKeptBytes);
  ceiling_bytes_ = limit_bytes_;
  fast_collection_bytes_ = UINT64_MAX;
  if (call_.collects_faster) set_pace();
}

void ScriptHost::set_memory_limits(uint64_t all_bytes, uint64_t run_bytes) {
  if (all_bytes == limit_bytes_ && run_bytes == run_bytes_) return;
  limit_bytes_ = ceiling_bytes_ = all_bytes;
  run_bytes_ = run_bytes;
  if (lua_ != nullptr) set_pace();
}

void ScriptHost::end_collection() {
  collecting_ = false;
  live_bytes_ = used_bytes_;
  set_pace();
}

void ScriptHost::collect_step() {
  assert(!running());
  // For each KiB that it shall collect, Lua does work of 1,024/100 times the percentage.
  const uint64_t kib = std::max(kStepWork * 100 / (1024 * static_cast<uint64_t>(work_)), uint64_t{1});
  if (lua_gc(lua_, LUA_GCSTEP, static_cast<int>(kib)) != 0) end_collection();
}

// Collects all garbage now if the steps between requests were not enough.
void ScriptHost::make_room() {
  const uint64_t run = run_limit();
  const bool near_limit = used_bytes_ + run > limit_bytes_;
  if (used_bytes_ <= live_bytes_ + (near_limit ? run / 4 : 2 * run)) return;
  lua_gc(lua_, LUA_GCCOLLECT, 0);
  end_collection();
}

void ScriptHost::tidy() {
  live_bytes_ = std::min(live_bytes_, used_bytes_);
  if (used_bytes_ > live_bytes_ + run_limit() / 4) collecting_ = true;
}

}  // namespace holdfast
