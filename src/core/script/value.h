// Converts values between Lua and RESP. For the script files only.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/codec/reply.h"

struct lua_State;

namespace holdfast {

class ScriptHost;

// Pushes a command's reply as redis.call() returns it: one value. `bytes` is one complete reply of this
// server. May raise Lua's out-of-memory error.
void push_reply(lua_State* lua, ScriptHost& host, std::string_view bytes);

enum class Written : uint8_t { kWhole, kTooDeep, kTooLarge };
// Writes the value on top of the stack as the script's reply, of at most ScriptHost::reply_limit() bytes.
// `resp3_booleans`: after redis.setresp(3). On kTooDeep and kTooLarge only a part of the reply is written.
Written write_value(lua_State* lua, ScriptHost& host, Reply& reply, bool resp3_booleans);

// Pushes {err = text}.
void push_error(lua_State* lua, std::string_view text);
// Marks the error on top of the stack as already counted. The mark is a field of the table, visible to
// scripts, as in Redis.
void mark_error(lua_State* lua);
bool is_marked_error(lua_State* lua);

}  // namespace holdfast
