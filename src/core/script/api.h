// The functions that scripts may call, and the sandbox they stand in. For the script files only.
#pragma once

#include <string_view>

struct lua_State;

namespace holdfast {

class ScriptHost;

// Builds the sandbox in a fresh state; runs protected, and leaves the environment of scripts and the
// function that completes errors on the stack, in this order.
int open_sandbox(lua_State* lua);

// Pushes the table `redis`.
void push_redis_table(lua_State* lua);

// These put functions of the host in the place of Lua's own, in the state's globals.
void put_host_functions(lua_State* lua);       // math.random() and string.rep(); api.cc
void put_table_functions(lua_State* lua);      // unpack(), table.insert() and sort(); table.cc
void put_pattern_functions(lua_State* lua);    // string.find() and so on; pattern.cc
void put_coroutine_functions(lua_State* lua);  // coroutine.cc

// Compiles a script's text to a function on top of the stack, like luaL_loadbuffer(); gives way on long
// ones.
int compile_text(lua_State* lua, std::string_view text, const char* name);

// The host of a state, known by its allocator.
ScriptHost& host_of(lua_State* lua);

}  // namespace holdfast
