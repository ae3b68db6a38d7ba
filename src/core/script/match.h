// Matches a pattern of Lua 5.1 at positions of a text. For pattern.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/script/script.h"

struct lua_State;

namespace holdfast {

// Keeps pointers into the text and the pattern, which must outlive it. The pattern ends with a 0. Counts
// each step with ScriptHost::spend(). An invalid pattern raises Lua's error.
class Matcher {
 public:
  static constexpr char kEscape = '%';
  // The match is recursive: one frame of the C stack for each item of a pattern.
  static constexpr size_t kMaxPattern = 4096;

  Matcher(lua_State* lua, std::string_view text, const char* pattern);

  // Returns the end of the match that begins at `s`. Returns null if there is none.
  const char* match_at(const char* s);

  // Pushes all captures. If there are none and `s` is not null, pushes the whole match. Returns the number
  // pushed.
  int push_captures(const char* s, const char* e);
  // Pushes one capture: 0 is the first. If there are no captures, the whole match is the first.
  void push_capture(int i, const char* s, const char* e);

 private:
  static constexpr int kMaxCaptures = 32;
  static constexpr ptrdiff_t kUnfinished = -1;
  static constexpr ptrdiff_t kPosition = -2;

  struct Capture {
    const char* begin;
    ptrdiff_t size;
  };

  const char* end_of_item(const char* p);
  bool fits(const char* s, const char* p, const char* item_end);
  const char* match(const char* s, const char* p);
  const char* match_most(const char* s, const char* least, const char* p, const char* item_end);
  const char* match_least(const char* s, const char* p, const char* item_end);
  const char* begin_capture(const char* s, const char* p, ptrdiff_t size);
  const char* end_capture(const char* s, const char* p);
  bool match_special(const char*& s, const char*& p);
  bool match_balanced(const char*& s, const char*& p);
  bool match_frontier(const char*& s, const char*& p);

  lua_State* lua_;
  ScriptHost& host_;
  const char* begin_;
  const char* end_;
  const char* pattern_;
  int captures_ = 0;
  Capture capture_[kMaxCaptures] = {};
};

}  // namespace holdfast
