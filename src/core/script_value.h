// Values on their way between Lua and RESP. For the script files only.
#pragma once

#include <string_view>

#include "core/reply.h"

struct lua_State;

namespace holdfast {

// Pushes what a command replied, as redis.call() gives it: one value. `bytes` is one whole reply that this
// server wrote. May raise Lua's error of too little memory.
void push_reply(lua_State* lua, std::string_view bytes);

// Writes the value on top of the stack as the script's reply. `resp3_booleans`: after redis.setresp(3).
// False: it is nested too deeply, and only a part has been written.
bool write_value(lua_State* lua, Reply& reply, bool resp3_booleans);

// Pushes {err = text}.
void push_error(lua_State* lua, std::string_view text);
// Marks the error on top of the stack as one that has been counted. It is a field that Redis leaves in the
// table too, and scripts can see.
void mark_error(lua_State* lua);
bool is_marked_error(lua_State* lua);

}  // namespace holdfast
