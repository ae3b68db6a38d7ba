// Lua's patterns: string.find(), match(), gmatch() and gsub(), as Lua 5.1 defines them. Lua's own functions
// may take time exponential in the pattern's length, in one call of C. These count their steps.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <lua.hpp>
#include <string_view>

#include "core/script/api.h"
#include "core/script/match.h"
#include "core/script/memory.h"
#include "core/script/script.h"

namespace holdfast {

namespace {

constexpr std::string_view kSpecials = "^$*+?.([%-";
constexpr int64_t kPatternBytesInStep = 64;

std::string_view text_at(lua_State* lua, int index) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, index, &size);
  return {text, size};
}

// Returns the pattern among the arguments. Raises an error if it is too long.
const char* pattern_at(lua_State* lua, int index) {
  const char* pattern = luaL_checkstring(lua, index);
  if (std::strlen(pattern) > Matcher::kMaxPattern) {
    luaL_error(lua, "pattern is longer than %d bytes", int{Matcher::kMaxPattern});
  }
  return pattern;
}

// Returns the start position from the third argument: negative numbers count from the end.
size_t first_place(lua_State* lua, size_t size) {
  lua_Integer first = luaL_optinteger(lua, 3, 1);
  const auto length = static_cast<lua_Integer>(size);
  if (first < 0) first = first < -length ? 0 : first + length + 1;
  return static_cast<size_t>(std::clamp(first - 1, lua_Integer{0}, length));
}

int push_place(lua_State* lua, size_t at, size_t end) {
  lua_pushinteger(lua, static_cast<lua_Integer>(at + 1));
  lua_pushinteger(lua, static_cast<lua_Integer>(end));
  return 2;
}

int find_plain(lua_State* lua, std::string_view text, std::string_view wanted, size_t first) {
  host_of(lua).spend(lua, static_cast<int64_t>(text.size()) / kPatternBytesInStep);
  const void* found = wanted.empty()
                          ? text.data() + first
                          : memmem(text.data() + first, text.size() - first, wanted.data(), wanted.size());
  if (found == nullptr) return lua_pushnil(lua), 1;
  const auto at = static_cast<size_t>(static_cast<const char*>(found) - text.data());
  return push_place(lua, at, at + wanted.size());
}

int find_or_match(lua_State* lua, bool find) {
  const std::string_view text = text_at(lua, 1);
  const std::string_view wanted = text_at(lua, 2);
  const size_t first = first_place(lua, text.size());
  // As in Lua: text after a 0 is not part of the pattern.
  const bool plain = std::string_view(wanted.data()).find_first_of(kSpecials) == std::string_view::npos;
  if (find && (lua_toboolean(lua, 4) != 0 || plain)) return find_plain(lua, text, wanted, first);
  const char* pattern = pattern_at(lua, 2);
  const bool anchored = *pattern == '^';
  Matcher matcher(lua, text, pattern + (anchored ? 1 : 0));
  const char* end = text.data() + text.size();
  for (const char* s = text.data() + first; s <= end; ++s) {
    const char* e = matcher.match_at(s);
    if (e != nullptr) {
      if (!find) return matcher.push_captures(s, e);
      push_place(lua, static_cast<size_t>(s - text.data()), static_cast<size_t>(e - text.data()));
      return 2 + matcher.push_captures(nullptr, nullptr);
    }
    if (anchored) break;
  }
  lua_pushnil(lua);
  return 1;
}

int string_find(lua_State* lua) { return find_or_match(lua, true); }
int string_match(lua_State* lua) { return find_or_match(lua, false); }

// The iterator of gmatch(). Upvalues: text, pattern, position to continue.
int next_match(lua_State* lua) {
  size_t size = 0;
  const char* text = lua_tolstring(lua, lua_upvalueindex(1), &size);
  Matcher matcher(lua, {text, size}, lua_tostring(lua, lua_upvalueindex(2)));
  for (const char* s = text + lua_tointeger(lua, lua_upvalueindex(3)); s <= text + size; ++s) {
    const char* e = matcher.match_at(s);
    if (e == nullptr) continue;
    lua_pushinteger(lua, (e - text) + (e == s ? 1 : 0));  // after an empty match continue at the next byte
    lua_replace(lua, lua_upvalueindex(3));
    return matcher.push_captures(s, e);
  }
  return 0;
}

int string_gmatch(lua_State* lua) {
  text_at(lua, 1);
  pattern_at(lua, 2);
  lua_settop(lua, 2);
  lua_pushinteger(lua, 0);
  lua_pushcclosure(lua, next_match, 3);
  return 1;
}

// For gsub(): replaces the matches as the third argument says.
class Replacer {
 public:
  Replacer(lua_State* lua, Matcher& matcher, ScriptString& out) : lua_(lua), matcher_(matcher), out_(out) {}

  void replace(const char* s, const char* e) {
    switch (lua_type(lua_, 3)) {
      case LUA_TNUMBER:
      case LUA_TSTRING:
        return fill_in(s, e);
      case LUA_TFUNCTION: {
        lua_pushvalue(lua_, 3);
        const int count = matcher_.push_captures(s, e);
        lua_call(lua_, count, 1);
        break;
      }
      default:
        matcher_.push_capture(0, s, e);
        lua_gettable(lua_, 3);
    }
    append_result({s, static_cast<size_t>(e - s)});
  }

 private:
  // Appends a text, in which %0 to %9 stand for the captures.
  void fill_in(const char* s, const char* e) {
    size_t size = 0;
    const char* text = lua_tolstring(lua_, 3, &size);
    host_of(lua_).spend(lua_, static_cast<int64_t>(size) / kPatternBytesInStep);
    for (size_t i = 0; i < size; ++i) {
      if (text[i] != Matcher::kEscape) {
        out_ += text[i];
      } else if (const char c = text[++i];
                 std::isdigit(static_cast<unsigned char>(c)) == 0) {  // a 0 follows the end
        out_ += c;
      } else if (c == '0') {
        out_.append(s, static_cast<size_t>(e - s));
      } else {
        append_capture(c - '1', s, e);
      }
    }
  }

  void append_capture(int i, const char* s, const char* e) {
    matcher_.push_capture(i, s, e);
    append_top();
  }

  // Appends the result of a function or a table. For false and nil the match stays.
  void append_result(std::string_view matched) {
    if (lua_toboolean(lua_, -1) == 0) {
      lua_pop(lua_, 1);
      out_.append(matched);
      return;
    }
    if (lua_isstring(lua_, -1) == 0) {
      luaL_error(lua_, "invalid replacement value (a %s)", luaL_typename(lua_, -1));
    }
    append_top();
  }

  void append_top() {
    size_t size = 0;
    const char* text = lua_tolstring(lua_, -1, &size);
    out_.append(text, size);
    lua_pop(lua_, 1);
  }

  lua_State* lua_;
  Matcher& matcher_;
  ScriptString& out_;
};

int string_gsub(lua_State* lua) {
  const std::string_view text = text_at(lua, 1);
  const char* pattern = pattern_at(lua, 2);
  const int type = lua_type(lua, 3);
  const int most = luaL_optint(lua, 4, static_cast<int>(text.size()) + 1);
  const bool anchored = *pattern == '^';
  luaL_argcheck(lua,
                type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE,
                3, "string/function/table expected");
  Matcher matcher(lua, text, pattern + (anchored ? 1 : 0));
  ScriptString out{ScriptAllocator<char>(lua)};
  Replacer replacer(lua, matcher, out);
  const char* s = text.data();
  const char* end = s + text.size();
  int count = 0;
  while (count < most) {
    const char* e = matcher.match_at(s);
    if (e != nullptr) {
      ++count;
      replacer.replace(s, e);
    }
    if (e != nullptr && e > s) {
      s = e;
    } else if (s < end) {
      out += *s++;
    } else {
      break;
    }
    if (anchored) break;
  }
  out.append(s, static_cast<size_t>(end - s));
  lua_pushlstring(lua, out.data(), out.size());
  lua_pushinteger(lua, count);
  return 2;
}

}  // namespace

void put_pattern_functions(lua_State* lua) {
  static constexpr luaL_Reg kFunctions[] = {{"find", string_find},     {"match", string_match},
                                            {"gmatch", string_gmatch}, {"gfind", string_gmatch},
                                            {"gsub", string_gsub},     {nullptr, nullptr}};
  lua_getglobal(lua, LUA_STRLIBNAME);
  luaL_register(lua, nullptr, kFunctions);
  lua_pop(lua, 1);
}

}  // namespace holdfast
