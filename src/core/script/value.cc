// The conversions of Redis's scripts: RESP to Lua, and Lua to RESP. Tables are read with raw access only,
// so that no metatable of a script runs here.
#include "core/script/value.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <lua.hpp>
#include <string>

#include "core/script/script.h"

namespace holdfast {

namespace {

constexpr int kMaxDepth = 1000;  // of tables in a script's reply

void push(lua_State* lua, std::string_view text) { lua_pushlstring(lua, text.data(), text.size()); }

void set_field(lua_State* lua, const char* name, std::string_view value) {
  push(lua, value);
  lua_setfield(lua, -2, name);
}

// Reads a reply from its begin on.
class ReplyReader {
 public:
  ReplyReader(lua_State* lua, ScriptHost& host, std::string_view bytes)
      : lua_(lua), host_(host), rest_(bytes) {}

  // Needs 6 free places on the stack, which every C function of Lua has at its begin.
  void push_next() {
    host_.spend(lua_);
    const char type = rest_[0];
    const std::string_view line = take_line();
    switch (type) {
      case '+':
        return push_single("ok", line);
      case '-':
        return push_error(lua_, line);
      case ':':
        return lua_pushnumber(lua_, static_cast<lua_Number>(integer(line)));
      case '$':
        return push_bulk(line);
      case '*':
      case '>':
        return push_array(line);
      case '%':
        return push_map(line);
      case '~':
        return push_set(line);
      case ',':
        return push_double(line);
      case '#':
        return lua_pushboolean(lua_, line == "t");
      case '=':
        return push_verbatim(line);
      case '(':
        return push_single("big_number", line);
      default:
        return lua_pushnil(lua_);  // '_': RESP3's null
    }
  }

 private:
  void push_element() {
    luaL_checkstack(lua_, 6, "a reply is nested too deeply");
    push_next();
  }
  // Returns the text after the type, up to the end of the line.
  std::string_view take_line() {
    const size_t end = rest_.find('\r');
    const std::string_view line = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 2);
    return line;
  }
  static int64_t integer(std::string_view text) {
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  std::string_view take_bytes(std::string_view size) {
    const std::string_view bytes = rest_.substr(0, static_cast<size_t>(integer(size)));
    rest_.remove_prefix(bytes.size() + 2);
    return bytes;
  }
  void push_single(const char* name, std::string_view value) {
    lua_createtable(lua_, 0, 1);
    set_field(lua_, name, value);
  }
  void push_bulk(std::string_view size) {
    if (size == "-1") return lua_pushboolean(lua_, 0);
    push(lua_, take_bytes(size));
  }
  void push_array(std::string_view count) {
    if (count == "-1") return lua_pushboolean(lua_, 0);
    const int n = static_cast<int>(integer(count));
    lua_newtable(lua_);  // not preallocated: so # of a list with nils is as in Redis
    for (int i = 1; i <= n; ++i) {
      push_element();
      lua_rawseti(lua_, -2, i);
    }
  }
  void push_map(std::string_view count) {
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, static_cast<int>(integer(count)));
    for (int64_t i = integer(count); i > 0; --i) {
      push_element();
      push_element();
      lua_rawset(lua_, -3);
    }
    lua_setfield(lua_, -2, "map");
  }
  void push_set(std::string_view count) {
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, static_cast<int>(integer(count)));
    for (int64_t i = integer(count); i > 0; --i) {
      push_element();
      lua_pushboolean(lua_, 1);
      lua_rawset(lua_, -3);
    }
    lua_setfield(lua_, -2, "set");
  }
  void push_double(std::string_view text) {
    lua_createtable(lua_, 0, 1);
    lua_pushnumber(lua_, std::strtod(std::string(text).c_str(), nullptr));
    lua_setfield(lua_, -2, "double");
  }
  void push_verbatim(std::string_view size) {
    const std::string_view bytes = take_bytes(size);  // "txt:" and the text
    lua_createtable(lua_, 0, 1);
    lua_createtable(lua_, 0, 2);
    set_field(lua_, "format", bytes.substr(0, 3));
    set_field(lua_, "string", bytes.substr(4));
    lua_setfield(lua_, -2, "verbatim_string");
  }

  lua_State* lua_;
  ScriptHost& host_;
  std::string_view rest_;
};

std::string_view string_at(lua_State* lua, int index) {
  size_t size = 0;
  const char* bytes = lua_tolstring(lua, index, &size);
  return {bytes, size};
}

// Pushes a field of the table on top, without metatables. Pushes nil if there is none.
void push_field(lua_State* lua, std::string_view name) {
  push(lua, name);
  lua_rawget(lua, -2);
}

// Converts a double as C does: a value out of range becomes the smallest number, as on Redis's processors.
int64_t to_integer(lua_Number n) {
  constexpr lua_Number kEdge = 9223372036854775808.0;
  if (!(n >= -kEdge && n < kEdge)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(n);
}

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) c = c == '\r' || c == '\n' ? ' ' : c;
  return line;
}

class ValueWriter {
 public:
  ValueWriter(lua_State* lua, ScriptHost& host, Reply& reply, bool resp3_booleans)
      : lua_(lua),
        host_(host),
        reply_(reply),
        resp3_booleans_(resp3_booleans),
        most_(reply.out().size() + host.reply_limit()) {}

  // Writes the value on top of the stack and keeps it there.
  Written write(int depth) {
    if (depth > kMaxDepth || lua_checkstack(lua_, 5) == 0) return Written::kTooDeep;
    host_.spend(lua_);
    if (!has_room(lua_type(lua_, -1) == LUA_TSTRING ? lua_objlen(lua_, -1) : 0)) return Written::kTooLarge;
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        reply_.bulk(string_at(lua_, -1));
        return Written::kWhole;
      case LUA_TNUMBER:
        reply_.integer(to_integer(lua_tonumber(lua_, -1)));
        return Written::kWhole;
      case LUA_TBOOLEAN:
        write_boolean(lua_toboolean(lua_, -1) != 0);
        return Written::kWhole;
      case LUA_TTABLE:
        return write_table(depth);
      case LUA_TUSERDATA:  // a library: a table without elements
        reply_.array(0);
        return Written::kWhole;
      default:
        reply_.null();
        return Written::kWhole;
    }
  }

 private:
  bool has_room(size_t bytes) const {
    const size_t size = reply_.out().size();
    return size <= most_ && bytes <= most_ - size;
  }

  void write_boolean(bool value) {
    if (resp3_booleans_) return reply_.boolean(value);
    value ? reply_.integer(1) : reply_.null();
  }

  // Writes a table. One known field (such as "err") determines its type, otherwise it is an array.
  Written write_table(int depth) {
    Written whole = Written::kWhole;
    bool done = write_text("err", whole, [&] { write_error(); });
    done = done || write_text("ok", whole, [&] { reply_.simple(one_line(string_at(lua_, -1))); });
    done = done || write_field("double", LUA_TNUMBER, [&] { reply_.number(lua_tonumber(lua_, -1)); });
    done = done || write_field("map", LUA_TTABLE, [&] { whole = write_pairs(depth, true); });
    done = done || write_field("set", LUA_TTABLE, [&] { whole = write_pairs(depth, false); });
    done =
        done || write_text("big_number", whole, [&] { reply_.big_number(one_line(string_at(lua_, -1))); });
    bool verbatim = false;
    if (!done) write_field("verbatim_string", LUA_TTABLE, [&] { verbatim = write_verbatim(whole); });
    return done || verbatim ? whole : write_array(depth);
  }

  template <class F>
  bool write_text(std::string_view name, Written& whole, F f) {
    return write_field(name, LUA_TSTRING,
                       [&] { has_room(lua_objlen(lua_, -1)) ? f() : void(whole = Written::kTooLarge); });
  }

  template <class F>
  bool write_field(std::string_view name, int type, F f) {
    push_field(lua_, name);
    // A number is not accepted as a string here, although Lua would convert it.
    const bool is_it = lua_type(lua_, -1) == type;
    if (is_it) f();
    lua_pop(lua_, 1);
    return is_it;
  }

  void write_error() {
    std::string_view text = string_at(lua_, -1);
    if (text.starts_with('-')) text.remove_prefix(1);
    reply_.error(text);
  }

  bool write_verbatim(Written& result) {
    push_field(lua_, "format");
    lua_insert(lua_, -2);  // under the table
    push_field(lua_, "string");
    const bool whole = lua_type(lua_, -1) == LUA_TSTRING && lua_type(lua_, -3) == LUA_TSTRING;
    if (whole && !has_room(lua_objlen(lua_, -1) + lua_objlen(lua_, -3))) {
      result = Written::kTooLarge;
    } else if (whole) {
      reply_.verbatim(string_at(lua_, -1), string_at(lua_, -3));
    }
    lua_pop(lua_, 1);
    lua_remove(lua_, -2);
    return whole;
  }

  // Writes the keys and values of a map, or the keys of a set.
  Written write_pairs(int depth, bool values) {
    size_t count = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      host_.spend(lua_);
      ++count;
    }
    values ? reply_.map(count) : reply_.set(count);
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0;) {
      lua_pushvalue(lua_, -2);
      Written whole = write(depth + 1);
      lua_pop(lua_, 1);
      if (values && whole == Written::kWhole) whole = write(depth + 1);
      lua_pop(lua_, 1);
      if (whole == Written::kWhole) continue;
      lua_pop(lua_, 1);  // the key, which lua_next() would have popped
      return whole;
    }
    return Written::kWhole;
  }

  // Writes the elements up to the first nil.
  Written write_array(int depth) {
    int count = 0;
    for (bool more = true; more; lua_pop(lua_, 1)) {
      host_.spend(lua_);
      lua_rawgeti(lua_, -1, count + 1);
      more = !lua_isnil(lua_, -1);
      if (more) ++count;
    }
    reply_.array(static_cast<size_t>(count));
    for (int i = 1; i <= count; ++i) {
      lua_rawgeti(lua_, -1, i);
      const Written whole = write(depth + 1);
      lua_pop(lua_, 1);
      if (whole != Written::kWhole) return whole;
    }
    return Written::kWhole;
  }

  lua_State* lua_;
  ScriptHost& host_;
  Reply& reply_;
  bool resp3_booleans_;
  size_t most_;  // size limit of the output, including earlier bytes
};

}  // namespace

void push_reply(lua_State* lua, ScriptHost& host, std::string_view bytes) {
  ReplyReader(lua, host, bytes).push_next();
}

Written write_value(lua_State* lua, ScriptHost& host, Reply& reply, bool resp3_booleans) {
  return ValueWriter(lua, host, reply, resp3_booleans).write(0);
}

void push_error(lua_State* lua, std::string_view text) {
  lua_newtable(lua);
  set_field(lua, "err", text);
}

namespace {
constexpr char kErrorMark[] = "ignore_error_stats_update";
}

void mark_error(lua_State* lua) {
  lua_pushboolean(lua, 1);
  lua_setfield(lua, -2, kErrorMark);
}

bool is_marked_error(lua_State* lua) {
  if (!lua_istable(lua, -1)) return false;
  push_field(lua, kErrorMark);
  const bool marked = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 1);
  return marked;
}

}  // namespace holdfast
