// The libraries that Redis offers to scripts in addition to Lua's own. For the script files only.
#pragma once

struct lua_State;

namespace holdfast {

struct JsonSettings;

// Each pushes the table of its library.
void push_cjson(lua_State* lua, JsonSettings& settings);  // json.cc; the settings must outlive the state
void push_bit(lua_State* lua);                            // bit.cc
void push_struct(lua_State* lua);                         // struct.cc
void push_cmsgpack(lua_State* lua);                       // cmsgpack.cc

// Decodes a JSON text and pushes its value. The text must end with a 0.
void push_json(lua_State* lua, const char* text, const JsonSettings& settings);  // json_decode.cc

}  // namespace holdfast
