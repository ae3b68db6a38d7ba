#include "core/script/match.h"

#include <cctype>
#include <cstring>
#include <lua.hpp>

#include "core/script/api.h"

namespace holdfast {

namespace {

constexpr char kEscape = Matcher::kEscape;
constexpr int64_t kMatchBytesInStep = 64;

int byte(char c) { return static_cast<unsigned char>(c); }

// Whether a byte is in a class such as %a. A capital `letter` means the complement of the class.
bool is_of_class(int c, char letter) {
  bool is = false;
  switch (std::tolower(byte(letter))) {
    case 'a':
      is = std::isalpha(c) != 0;
      break;
    case 'c':
      is = std::iscntrl(c) != 0;
      break;
    case 'd':
      is = std::isdigit(c) != 0;
      break;
    case 'l':
      is = std::islower(c) != 0;
      break;
    case 'p':
      is = std::ispunct(c) != 0;
      break;
    case 's':
      is = std::isspace(c) != 0;
      break;
    case 'u':
      is = std::isupper(c) != 0;
      break;
    case 'w':
      is = std::isalnum(c) != 0;
      break;
    case 'x':
      is = std::isxdigit(c) != 0;
      break;
    case 'z':
      is = c == 0;
      break;
    default:
      return byte(letter) == c;
  }
  return (std::islower(byte(letter)) != 0) == is;
}

// Whether a byte is in a set such as [^a-z%d]. `set` ends with its ']'.
bool is_in_set(int c, std::string_view set) {
  size_t at = 1;
  const bool complement = set[at] == '^';
  if (complement) ++at;
  const size_t end = set.size() - 1;
  for (; at < end; ++at) {
    if (set[at] == kEscape) {
      ++at;
      if (is_of_class(c, set[at])) return !complement;
    } else if (set[at + 1] == '-' && at + 2 < end) {
      at += 2;
      if (byte(set[at - 2]) <= c && c <= byte(set[at])) return !complement;
    } else if (byte(set[at]) == c) {
      return !complement;
    }
  }
  return complement;
}

}  // namespace

Matcher::Matcher(lua_State* lua, std::string_view text, const char* pattern)
    : lua_(lua),
      host_(host_of(lua)),
      begin_(text.data()),
      end_(text.data() + text.size()),
      pattern_(pattern) {}

const char* Matcher::match_at(const char* s) {
  captures_ = 0;
  return match(s, pattern_);
}

int Matcher::push_captures(const char* s, const char* e) {
  const int count = captures_ == 0 && s != nullptr ? 1 : captures_;
  luaL_checkstack(lua_, count, "too many captures");
  for (int i = 0; i < count; ++i) push_capture(i, s, e);
  return count;
}

void Matcher::push_capture(int i, const char* s, const char* e) {
  if (i >= captures_) {
    if (i != 0) luaL_error(lua_, "invalid capture index");
    return lua_pushlstring(lua_, s, static_cast<size_t>(e - s));
  }
  const Capture& capture = capture_[i];
  if (capture.size == kUnfinished) luaL_error(lua_, "unfinished capture");
  if (capture.size == kPosition) return lua_pushinteger(lua_, capture.begin - begin_ + 1);
  lua_pushlstring(lua_, capture.begin, static_cast<size_t>(capture.size));
}

// Returns the end of the single item that begins at `p`.
const char* Matcher::end_of_item(const char* p) {
  if (*p == kEscape) {
    if (p[1] == '\0') luaL_error(lua_, "malformed pattern (ends with '%%')");
    return p + 2;
  }
  if (*p++ != '[') return p;
  if (*p == '^') ++p;
  do {  // a ']' in the first place is a member of the set
    if (*p == '\0') luaL_error(lua_, "malformed pattern (missing ']')");
    if (*p++ == kEscape && *p != '\0') ++p;
  } while (*p != ']');
  return p + 1;
}

bool Matcher::fits(const char* s, const char* p, const char* item_end) {
  host_.spend(lua_, 1 + (item_end - p) / kMatchBytesInStep);
  if (s >= end_) return false;
  switch (*p) {
    case '.':
      return true;
    case kEscape:
      return is_of_class(byte(*s), p[1]);
    case '[':
      return is_in_set(byte(*s), {p, item_end});
    default:
      return *p == *s;
  }
}

// Loops instead of a recursive call wherever possible. So only items with more than one possible match take
// a frame each.
const char* Matcher::match(const char* s, const char* p) {
  while (*p != '\0') {
    host_.spend(lua_);
    if (*p == '(')
      return p[1] == ')' ? begin_capture(s, p + 2, kPosition) : begin_capture(s, p + 1, kUnfinished);
    if (*p == ')') return end_capture(s, p + 1);
    if (*p == '$' && p[1] == '\0') return s == end_ ? s : nullptr;
    if (*p == kEscape && (p[1] == 'b' || p[1] == 'f' || std::isdigit(byte(p[1])) != 0)) {
      if (!match_special(s, p)) return nullptr;
      continue;
    }
    const char* item_end = end_of_item(p);
    switch (*item_end) {
      case '?':
        if (fits(s, p, item_end)) {
          if (const char* e = match(s + 1, item_end + 1); e != nullptr) return e;
        }
        p = item_end + 1;
        break;
      case '*':
        return match_most(s, s, p, item_end);
      case '+':
        return fits(s, p, item_end) ? match_most(s + 1, s + 1, p, item_end) : nullptr;
      case '-':
        return match_least(s, p, item_end);
      default:
        if (!fits(s, p, item_end)) return nullptr;
        ++s;
        p = item_end;
    }
  }
  return s;
}

// Matches as many bytes as possible, then fewer as long as the rest does not match, but at least up to
// `least`.
const char* Matcher::match_most(const char* s, const char* least, const char* p, const char* item_end) {
  while (fits(s, p, item_end)) ++s;
  for (;; --s) {
    if (const char* e = match(s, item_end + 1); e != nullptr) return e;
    if (s == least) return nullptr;
  }
}

const char* Matcher::match_least(const char* s, const char* p, const char* item_end) {
  while (true) {
    if (const char* e = match(s, item_end + 1); e != nullptr) return e;
    if (!fits(s, p, item_end)) return nullptr;
    ++s;
  }
}

const char* Matcher::begin_capture(const char* s, const char* p, ptrdiff_t size) {
  if (captures_ >= kMaxCaptures) luaL_error(lua_, "too many captures");
  capture_[captures_++] = {s, size};
  const char* e = match(s, p);
  if (e == nullptr) --captures_;
  return e;
}

const char* Matcher::end_capture(const char* s, const char* p) {
  int open = captures_ - 1;
  while (open >= 0 && capture_[open].size != kUnfinished) --open;
  if (open < 0) luaL_error(lua_, "invalid pattern capture");
  capture_[open].size = s - capture_[open].begin;
  const char* e = match(s, p);
  if (e == nullptr) capture_[open].size = kUnfinished;
  return e;
}

// Matches %b, %f and %1 to %9. Returns false if there is no match; otherwise advances `s` and `p`.
bool Matcher::match_special(const char*& s, const char*& p) {
  if (p[1] == 'b') return match_balanced(s, p);
  if (p[1] == 'f') return match_frontier(s, p);
  const int i = p[1] - '1';
  if (i < 0 || i >= captures_ || capture_[i].size == kUnfinished) {
    luaL_error(lua_, "invalid capture index");
  }
  p += 2;
  const auto size = static_cast<size_t>(capture_[i].size);  // for a position capture larger than any text
  if (static_cast<size_t>(end_ - s) < size) return false;
  host_.spend(lua_, static_cast<int64_t>(size) / kMatchBytesInStep);
  if (std::memcmp(capture_[i].begin, s, size) != 0) return false;
  s += size;
  return true;
}

bool Matcher::match_balanced(const char*& s, const char*& p) {
  if (p[2] == '\0' || p[3] == '\0') luaL_error(lua_, "unbalanced pattern");
  const char open = p[2];
  const char close = p[3];
  p += 4;
  if (s == end_ || *s != open) return false;
  int64_t depth = 1;
  for (const char* at = s + 1; at < end_; ++at) {
    host_.spend(lua_);
    if (*at == close) {
      if (--depth == 0) return s = at + 1, true;
    } else if (*at == open) {
      ++depth;
    }
  }
  return false;
}

// The begin and the end of the text count as a 0.
bool Matcher::match_frontier(const char*& s, const char*& p) {
  p += 2;
  if (*p != '[') luaL_error(lua_, "missing '[' after '%%f' in pattern");
  const char* item_end = end_of_item(p);
  const std::string_view set(p, static_cast<size_t>(item_end - p));
  p = item_end;
  host_.spend(lua_, 1 + static_cast<int64_t>(set.size()) / kMatchBytesInStep);
  const int before = s == begin_ ? 0 : byte(s[-1]);
  const int after = s == end_ ? 0 : byte(*s);
  return !is_in_set(before, set) && is_in_set(after, set);
}

}  // namespace holdfast
