// The functions that scripts may call, and the sandbox they stand in. For the script files only.
#pragma once

struct lua_State;

namespace holdfast {

class ScriptHost;

// Builds the sandbox in a fresh state; runs protected, and leaves the environment of scripts and the
// function that completes errors on the stack, in this order.
int open_sandbox(lua_State* lua);

// Pushes the table `redis`.
void push_redis_table(lua_State* lua);

// Puts what needs the host in the place of functions of Lua's own: math.random(), string.rep().
void put_host_functions(lua_State* lua);

// The host of a state, known by its allocator.
ScriptHost& host_of(lua_State* lua);

}  // namespace holdfast
