// The functions that scripts may call, and the sandbox that contains them. For the script files only.
#pragma once

#include <string_view>

struct lua_State;

namespace holdfast {

class ScriptHost;
struct LuaState;

// Builds the sandbox in a fresh state. Runs in protected mode. Leaves on the stack, in this order: the
// table of globals, and the function that completes errors.
void open_sandbox(lua_State* lua);

// Pushes the table `redis`.
void push_redis_table(lua_State* lua);
// Pushes a table with the few parts of it that the code of a library sees while it is loaded.
void push_loading_table(lua_State* lua);

// Replaces the table on top of the stack by its proxy, which passes reads on and rejects writes.
void wrap_table(lua_State* lua);
// Makes the access to a missing name of the table on top an error.
void forbid_missing(lua_State* lua);
// Pushes the function that completes errors.
void push_error_handler(lua_State* lua);

// Each replaces functions of Lua by functions of the host, in the state's globals.
void put_host_functions(lua_State* lua);       // math.random() and string.rep(); api.cc
void put_table_functions(lua_State* lua);      // unpack(), table.insert() and sort(); table.cc
void put_pattern_functions(lua_State* lua);    // string.find() and so on; pattern.cc
void put_coroutine_functions(lua_State* lua);  // coroutine.cc

// Continues as the original function of Lua, which is the upvalue of that number. It runs in the same
// frame, so that an error names the script's own call. Not for functions that have upvalues of their own.
int call_original(lua_State* lua, int upvalue = 1);

// Compiles a script's text to a function on top of the stack, and returns a status, like luaL_loadbuffer().
// May pause for other clients while it compiles a long text.
int compile_text(lua_State* lua, std::string_view text, const char* name);

// Returns the LuaState of a state, or its host. The state's allocator has the pointer to it.
LuaState& state_of(lua_State* lua);
ScriptHost& host_of(lua_State* lua);

}  // namespace holdfast
