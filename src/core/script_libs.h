// The libraries that Redis gives its scripts beside Lua's own. For the script files only.
#pragma once

struct lua_State;

namespace holdfast {

// Puts cjson, bit, struct and cmsgpack into the state's globals.
void open_script_libraries(lua_State* lua);

// Each pushes its table.
void push_bit(lua_State* lua);       // script_bit.cc
void push_struct(lua_State* lua);    // script_struct.cc
void push_cmsgpack(lua_State* lua);  // script_cmsgpack.cc

}  // namespace holdfast
