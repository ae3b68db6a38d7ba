// Values on their way between Lua and RESP. For the script files only.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/codec/reply.h"

struct lua_State;

namespace holdfast {

class ScriptHost;

// Pushes what a command replied, as redis.call() gives it: one value. `bytes` is one whole reply that this
// server wrote. May raise Lua's error of too little memory.
void push_reply(lua_State* lua, ScriptHost& host, std::string_view bytes);

enum class Written : uint8_t { kWhole, kTooDeep, kTooLarge };
// Writes the value on top of the stack as the script's reply, of at most ScriptHost::reply_limit() bytes.
// `resp3_booleans`: after redis.setresp(3). kTooDeep, kTooLarge: only a part has been written.
Written write_value(lua_State* lua, ScriptHost& host, Reply& reply, bool resp3_booleans);

// Pushes {err = text}.
void push_error(lua_State* lua, std::string_view text);
// Marks the error on top of the stack as one that has been counted. It is a field that Redis leaves in the
// table too, and scripts can see.
void mark_error(lua_State* lua);
bool is_marked_error(lua_State* lua);

}  // namespace holdfast
