// Memory that C++ code uses for a script. It comes from Lua's allocator and counts to the limits of
// scripts. For the script files only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct lua_State;

namespace holdfast {

// Returns what is left of `all`; 0 if more is used.
constexpr uint64_t rest_of(uint64_t all, uint64_t used) { return used < all ? all - used : 0; }

// Allocates memory from a state's allocator. Returns null if the limits do not allow it, even after all
// garbage has been collected. Values that are still needed must be on Lua's stack.
void* take_script_memory(lua_State* lua, size_t bytes);
void give_script_memory(lua_State* lua, void* block, size_t bytes);
[[noreturn]] void raise_no_memory(lua_State* lua);

// The allocator of a container that lives while a C function of a script runs. If there is no memory it
// raises Lua's error. That is an exception, so the container frees its memory.
template <class T>
class ScriptAllocator {
 public:
  using value_type = T;

  explicit ScriptAllocator(lua_State* lua) : lua_(lua) {}
  template <class U>
  explicit ScriptAllocator(const ScriptAllocator<U>& o) : lua_(o.lua()) {}

  T* allocate(size_t n) {
    void* block = take_script_memory(lua_, n * sizeof(T));
    if (block == nullptr) raise_no_memory(lua_);
    return static_cast<T*>(block);
  }
  void deallocate(T* block, size_t n) { give_script_memory(lua_, block, n * sizeof(T)); }

  lua_State* lua() const { return lua_; }
  bool operator==(const ScriptAllocator& o) const { return lua_ == o.lua_; }

 private:
  lua_State* lua_;
};

using ScriptString = std::basic_string<char, std::char_traits<char>, ScriptAllocator<char>>;

}  // namespace holdfast
