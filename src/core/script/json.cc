// The library `cjson`: encode(), the settings, and the table. Behaves as lua-cjson 2.1.0, the library of
// Redis. That library allocates memory outside of the limits, and aborts the process if allocation fails.
#include "core/script/json.h"

#include <array>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <lua.hpp>
#include <new>
#include <string_view>

#include "core/script/api.h"
#include "core/script/libs.h"
#include "core/script/memory.h"
#include "core/script/script.h"

namespace holdfast {

namespace {

class Encoder {
 public:
  Encoder(lua_State* lua, const JsonSettings& settings)
      : lua_(lua), host_(host_of(lua)), settings_(settings), out_(ScriptAllocator<char>(lua)) {}

  const ScriptString& text() const { return out_; }

  // Encodes the value on top of the stack and keeps it there.
  void append(int depth) {
    host_.spend(lua_);
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        return append_string(-1);
      case LUA_TNUMBER:
        return append_number(-1);
      case LUA_TBOOLEAN:
        out_ += lua_toboolean(lua_, -1) != 0 ? "true" : "false";
        return;
      case LUA_TTABLE:
        return append_table(depth + 1);
      case LUA_TNIL:
        out_ += "null";
        return;
      case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(lua_, -1) == nullptr) {
          out_ += "null";
          return;
        }
        [[fallthrough]];
      default:
        refuse(-1, "type not supported");
    }
  }

 private:
  void refuse(int index, const char* why) {
    luaL_error(lua_, "Cannot serialise %s: %s", luaL_typename(lua_, index), why);
  }

  void append_string(int index) {
    size_t size = 0;
    const char* text = lua_tolstring(lua_, index, &size);
    out_ += '"';
    for (size_t i = 0; i < size; ++i) {
      host_.spend(lua_);
      append_byte(text[i]);
    }
    out_ += '"';
  }

  void append_byte(char c) {
    static constexpr std::string_view kEscaped = "\"\\/\b\f\n\r\t";
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    if (const size_t at = kEscaped.find(c); at != std::string_view::npos) {
      out_ += '\\';
      out_ += kLetters[at];
    } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') {
      static constexpr std::string_view kDigits = "0123456789abcdef";
      out_ += "\\u00";
      out_ += kDigits[static_cast<unsigned char>(c) >> 4U];
      out_ += kDigits[static_cast<unsigned char>(c) & 15U];
    } else {
      out_ += c;
    }
  }

  void append_number(int index) {
    const double n = lua_tonumber(lua_, index);
    if (!std::isfinite(n)) {
      if (settings_.encode_invalid == 0) refuse(index, "must not be NaN or Inf");
      if (settings_.encode_invalid == 2) {
        out_ += "null";
        return;
      }
      out_ += std::isnan(n) ? "nan" : n < 0 ? "-inf" : "inf";
      return;
    }
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n,
                                   std::chars_format::general, settings_.precision);
    out_.append(digits.data(), end.ptr);
  }

  // Returns the highest key if all keys are whole numbers from 1 on. Returns 0 or less if the table is an
  // object.
  int list_size() {
    double highest = 0;
    double count = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      host_.spend(lua_);
      const double key = lua_type(lua_, -2) == LUA_TNUMBER ? lua_tonumber(lua_, -2) : 0;
      if (key < 1 || key != std::floor(key)) return lua_pop(lua_, 2), 0;
      highest = std::max(highest, key);
      ++count;
    }
    if (highest > INT_MAX) return 0;
    const bool sparse = settings_.sparse_ratio > 0 && highest > count * settings_.sparse_ratio &&
                        highest > settings_.sparse_safe;
    if (sparse && settings_.sparse_convert == 0) refuse(-1, "excessively sparse array");
    return sparse ? 0 : static_cast<int>(highest);
  }

  void append_table(int depth) {
    if (depth > settings_.encode_max_depth || lua_checkstack(lua_, 3) == 0) {
      luaL_error(lua_, "Cannot serialise, excessive nesting (%d)", depth);
    }
    const int size = list_size();
    if (size <= 0) return append_object(depth);
    for (int i = 1; i <= size; ++i) {
      out_ += i == 1 ? '[' : ',';
      lua_rawgeti(lua_, -1, i);
      append(depth);
      lua_pop(lua_, 1);
    }
    out_ += ']';
  }

  void append_object(int depth) {
    out_ += '{';
    bool first = true;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      if (!first) out_ += ',';
      first = false;
      if (lua_type(lua_, -2) == LUA_TSTRING) {
        append_string(-2);
      } else if (lua_type(lua_, -2) == LUA_TNUMBER) {
        out_ += '"';
        append_number(-2);
        out_ += '"';
      } else {
        refuse(-2, "table key must be a number or string");
      }
      out_ += ':';
      append(depth);
    }
    out_ += '}';
  }

  lua_State* lua_;
  ScriptHost& host_;
  const JsonSettings& settings_;
  ScriptString out_;
};

// Returns the settings of the table whose function is called.
JsonSettings& settings_of(lua_State* lua) {
  return *static_cast<JsonSettings*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

int encode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  Encoder encoder(lua, settings_of(lua));
  encoder.append(0);
  lua_pushlstring(lua, encoder.text().data(), encoder.text().size());
  return 1;
}

int decode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  if (size >= 2 && (text[0] == '\0' || text[1] == '\0')) {
    return luaL_error(lua, "JSON parser does not support UTF-16 or UTF-32");
  }
  push_json(lua, text, settings_of(lua));
  return 1;
}

void take_arguments(lua_State* lua, int most) {
  luaL_argcheck(lua, lua_gettop(lua) <= most, most + 1, "found too many arguments");
  lua_settop(lua, most);
}

// Each stores an argument as a setting, unless it is nil, and pushes the present value.
void integer_setting(lua_State* lua, int index, int& setting, int least, int most) {
  if (!lua_isnil(lua, index)) {
    const lua_Integer n = luaL_checkinteger(lua, index);
    if (n < least || n > most) {
      luaL_argerror(lua, 1, lua_pushfstring(lua, "expected integer between %d and %d", least, most));
    }
    setting = static_cast<int>(n);
  }
  lua_pushinteger(lua, setting);
}

constexpr const char* kOffOn[] = {"off", "on", nullptr};
constexpr const char* kOffOnNull[] = {"off", "on", "null", nullptr};

void named_setting(lua_State* lua, int& setting, const char* const names[]) {
  if (lua_isboolean(lua, 1)) {
    setting = lua_toboolean(lua, 1);
  } else if (!lua_isnil(lua, 1)) {
    setting = luaL_checkoption(lua, 1, nullptr, names);
  }
  setting > 1 ? lua_pushstring(lua, names[setting]) : lua_pushboolean(lua, setting);
}

int encode_sparse_array(lua_State* lua) {
  JsonSettings& s = settings_of(lua);
  take_arguments(lua, 3);
  named_setting(lua, s.sparse_convert, kOffOn);
  integer_setting(lua, 2, s.sparse_ratio, 0, INT_MAX);
  integer_setting(lua, 3, s.sparse_safe, 0, INT_MAX);
  return 3;
}

template <int JsonSettings::*kSetting, int kMost>
int number(lua_State* lua) {
  take_arguments(lua, 1);
  integer_setting(lua, 1, settings_of(lua).*kSetting, 1, kMost);
  return 1;
}

template <int JsonSettings::*kSetting, const char* const* kNames>
int choice(lua_State* lua) {
  take_arguments(lua, 1);
  named_setting(lua, settings_of(lua).*kSetting, kNames);
  return 1;
}

int make_another(lua_State* lua);

// Pushes a table whose functions share one settings object. Pops that object from the top of the stack.
void push_table(lua_State* lua) {
  static constexpr luaL_Reg kFunctions[] = {
      {"encode", encode},
      {"decode", decode},
      {"encode_sparse_array", encode_sparse_array},
      {"encode_max_depth", number<&JsonSettings::encode_max_depth, INT_MAX>},
      {"decode_max_depth", number<&JsonSettings::decode_max_depth, INT_MAX>},
      {"encode_number_precision", number<&JsonSettings::precision, JsonSettings::kPrecision>},
      {"encode_keep_buffer", choice<&JsonSettings::keep_buffer, kOffOn>},
      {"encode_invalid_numbers", choice<&JsonSettings::encode_invalid, kOffOnNull>},
      {"decode_invalid_numbers", choice<&JsonSettings::decode_invalid, kOffOn>},
      {"new", make_another}};
  lua_createtable(lua, 0, 16);
  for (const luaL_Reg& f : kFunctions) {
    lua_pushvalue(lua, -2);
    lua_pushcclosure(lua, f.func, 1);
    lua_setfield(lua, -2, f.name);
  }
  lua_pushlightuserdata(lua, nullptr);
  lua_setfield(lua, -2, "null");
  lua_pushliteral(lua, "cjson");
  lua_setfield(lua, -2, "_NAME");
  lua_pushliteral(lua, "2.1.0");
  lua_setfield(lua, -2, "_VERSION");
  lua_remove(lua, -2);
}

int make_another(lua_State* lua) {
  new (lua_newuserdata(lua, sizeof(JsonSettings))) JsonSettings;
  push_table(lua);
  return 1;
}

}  // namespace

void push_cjson(lua_State* lua, JsonSettings& settings) {
  lua_pushlightuserdata(lua, &settings);
  push_table(lua);
}

}  // namespace holdfast
