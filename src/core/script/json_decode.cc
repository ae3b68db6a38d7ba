// cjson.decode(): converts JSON, and the extensions that lua-cjson accepts, to Lua values.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <lua.hpp>
#include <string_view>

#include "core/base/parse.h"
#include "core/script/api.h"
#include "core/script/json.h"
#include "core/script/libs.h"
#include "core/script/memory.h"
#include "core/script/script.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

enum class TokenType : uint8_t {
  kObjectBegin,
  kObjectEnd,
  kListBegin,
  kListEnd,
  kString,
  kNumber,
  kBoolean,
  kNull,
  kColon,
  kComma,
  kEnd,
  kError
};

// The names in error texts.
constexpr const char* kTokenNames[] = {"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END",
                                       "T_STRING",    "T_NUMBER",  "T_BOOLEAN",   "T_NULL",
                                       "T_COLON",     "T_COMMA",   "T_END"};

struct Token {
  TokenType type = TokenType::kEnd;
  const char* at = nullptr;  // its begin, or the position of its error
  std::string_view string;   // valid until the next token is read
  double number = 0;
  bool boolean = false;
  const char* error = nullptr;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Returns the value of four hex digits; -1 if a character is no hex digit. The text ends with a 0.
int hex4(const char* digits) {
  int n = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = hex_digit(digits[i]);
    if (digit < 0) return -1;
    n = n * 16 + digit;
  }
  return n;
}

// Whether the text is a number that C accepts and JSON does not.
bool is_invalid_number(const char* p) {
  if (*p == '+') return true;
  if (*p == '-') ++p;
  if (*p == '0') return (p[1] | 0x20) == 'x' || (p[1] >= '0' && p[1] <= '9');
  const std::string_view word(p, strnlen(p, 3));
  return *p > '9' && (equals_ignore_case(word, "inf") || equals_ignore_case(word, "nan"));
}

// Reads the tokens of the text in order. The text ends with its first 0.
class Tokens {
 public:
  Tokens(lua_State* lua, const char* text, bool takes_invalid)
      : lua_(lua),
        host_(host_of(lua)),
        at_(text),
        takes_invalid_(takes_invalid),
        string_(ScriptAllocator<char>(lua)) {}

  const char* at() const { return at_; }

  Token next() {
    host_.spend(lua_);
    while (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r') {
      host_.spend(lua_);
      ++at_;
    }
    Token token;
    token.at = at_;
    if (*at_ == '\0') return token;
    static constexpr std::string_view kSigns = "{}[]";
    if (const size_t sign = kSigns.find(*at_); sign != std::string_view::npos) {
      token.type = static_cast<TokenType>(sign);
      ++at_;
    } else if (*at_ == ':' || *at_ == ',') {
      token.type = *at_++ == ':' ? TokenType::kColon : TokenType::kComma;
    } else if (*at_ == '"') {
      read_string(token);
    } else if (*at_ == '-' || (*at_ >= '0' && *at_ <= '9')) {
      !takes_invalid_&& is_invalid_number(at_) ? fail(token, "invalid number") : read_number(token);
    } else {
      read_word(token);
    }
    return token;
  }

 private:
  void fail(Token& token, const char* why) {
    token.type = TokenType::kError;
    token.at = at_;
    token.error = why;
  }

  void read_word(Token& token) {
    const auto takes = [this](std::string_view word) {
      const bool is_it = std::strncmp(at_, word.data(), word.size()) == 0;
      if (is_it) at_ += word.size();
      return is_it;
    };
    if (takes("true") || takes("false")) {
      token.type = TokenType::kBoolean;
      token.boolean = *token.at == 't';
    } else if (takes("null")) {
      token.type = TokenType::kNull;
    } else if (takes_invalid_ && is_invalid_number(at_)) {
      read_number(token);
    } else {
      fail(token, "invalid token");
    }
  }

  void read_number(Token& token) {
    char* end = nullptr;
    token.number = std::strtod(at_, &end);
    if (end == at_) return fail(token, "invalid number");
    token.type = TokenType::kNumber;
    spend_bytes(end - at_);
    at_ = end;
  }

  void spend_bytes(ptrdiff_t bytes) {
    constexpr ptrdiff_t kBytesInStep = 16;
    host_.spend(lua_, bytes / kBytesInStep);
  }

  void read_string(Token& token) {
    token.type = TokenType::kString;
    string_.clear();
    const char* begin = ++at_;
    while (true) {
      const size_t plain = std::strcspn(at_, "\"\\");
      spend_bytes(static_cast<ptrdiff_t>(plain));
      const char* piece = at_;
      at_ += plain;
      if (*at_ == '\0') return fail(token, "unexpected end of string");
      if (*at_ == '"' && piece == begin) {  // no escapes in it
        token.string = {begin, plain};
        break;
      }
      string_.append(piece, plain);
      if (*at_ == '"') {
        token.string = string_;
        break;
      }
      if (!read_escape(token)) return;
    }
    ++at_;
  }

  bool read_escape(Token& token) {
    static constexpr std::string_view kLetters = "\"\\/btnfr";
    static constexpr std::string_view kMeanings = "\"\\/\b\t\n\f\r";
    const char letter = at_[1];
    if (letter == 'u') {
      if (read_code_point()) return true;
      return fail(token, "invalid unicode escape code"), false;
    }
    const size_t i = letter == '\0' ? std::string_view::npos : kLetters.find(letter);
    if (i == std::string_view::npos) return fail(token, "invalid escape code"), false;
    string_ += kMeanings[i];
    at_ += 2;
    return true;
  }

  // Reads "\uXXXX", or two of them that form a surrogate pair.
  bool read_code_point() {
    int code = hex4(at_ + 2);
    if (code < 0) return false;
    size_t size = 6;
    if ((code & 0xF800) == 0xD800) {
      if ((code & 0x400) != 0 || at_[6] != '\\' || at_[7] != 'u') return false;
      const int low = hex4(at_ + 8);
      if (low < 0 || (low & 0xFC00) != 0xDC00) return false;
      code = ((code & 0x3FF) << 10 | (low & 0x3FF)) + 0x10000;
      size = 12;
    }
    append_utf8(static_cast<unsigned>(code));
    at_ += size;
    return true;
  }

  void append_utf8(unsigned code) {
    const auto rest = [this, code](unsigned shift) {
      string_ += static_cast<char>(0x80U | (code >> shift & 0x3FU));
    };
    if (code <= 0x7F) {
      string_ += static_cast<char>(code);
    } else if (code <= 0x7FF) {
      string_ += static_cast<char>(0xC0U | code >> 6U);
      rest(0);
    } else if (code <= 0xFFFF) {
      string_ += static_cast<char>(0xE0U | code >> 12U);
      rest(6);
      rest(0);
    } else {
      string_ += static_cast<char>(0xF0U | code >> 18U);
      rest(12);
      rest(6);
      rest(0);
    }
  }

  lua_State* lua_;
  ScriptHost& host_;
  const char* at_;
  bool takes_invalid_;
  ScriptString string_;
};

class Decoder {
 public:
  Decoder(lua_State* lua, const char* text, const JsonSettings& settings)
      : lua_(lua),
        text_(text),
        max_depth_(settings.decode_max_depth),
        tokens_(lua, text, settings.decode_invalid != 0) {}

  void push_whole() {
    push(tokens_.next());
    const Token end = tokens_.next();
    if (end.type != TokenType::kEnd) refuse("the end", end);
  }

 private:
  [[noreturn]] void refuse(const char* expected, const Token& token) {
    const char* found =
        token.type == TokenType::kError ? token.error : kTokenNames[static_cast<size_t>(token.type)];
    luaL_error(lua_, "Expected %s but found %s at character %d", expected, found,
               static_cast<int>(token.at - text_ + 1));
    __builtin_unreachable();
  }

  void push(const Token& token) {
    switch (token.type) {
      case TokenType::kString:
        return lua_pushlstring(lua_, token.string.data(), token.string.size());
      case TokenType::kNumber:
        return lua_pushnumber(lua_, token.number);
      case TokenType::kBoolean:
        return lua_pushboolean(lua_, token.boolean ? 1 : 0);
      case TokenType::kObjectBegin:
        return push_object();
      case TokenType::kListBegin:
        return push_list();
      case TokenType::kNull:
        return lua_pushlightuserdata(lua_, nullptr);
      default:
        refuse("value", token);
    }
  }

  void descend() {
    if (++depth_ <= max_depth_ && lua_checkstack(lua_, 3) != 0) return;
    luaL_error(lua_, "Found too many nested data structures (%d) at character %d", depth_,
               static_cast<int>(tokens_.at() - text_));
  }

  void push_object() {
    descend();
    lua_newtable(lua_);
    Token token = tokens_.next();
    for (bool more = token.type != TokenType::kObjectEnd; more;) {
      if (token.type != TokenType::kString) refuse("object key string", token);
      lua_pushlstring(lua_, token.string.data(), token.string.size());
      token = tokens_.next();
      if (token.type != TokenType::kColon) refuse("colon", token);
      push(tokens_.next());
      lua_rawset(lua_, -3);
      token = tokens_.next();
      more = token.type != TokenType::kObjectEnd;
      if (more && token.type != TokenType::kComma) refuse("comma or object end", token);
      if (more) token = tokens_.next();
    }
    --depth_;
  }

  void push_list() {
    descend();
    lua_newtable(lua_);
    Token token = tokens_.next();
    int i = 0;
    for (bool more = token.type != TokenType::kListEnd; more;) {
      push(token);
      lua_rawseti(lua_, -2, ++i);
      token = tokens_.next();
      more = token.type != TokenType::kListEnd;
      if (more && token.type != TokenType::kComma) refuse("comma or array end", token);
      if (more) token = tokens_.next();
    }
    --depth_;
  }

  lua_State* lua_;
  const char* text_;
  int max_depth_;
  int depth_ = 0;
  Tokens tokens_;
};

}  // namespace

void push_json(lua_State* lua, const char* text, const JsonSettings& settings) {
  Decoder(lua, text, settings).push_whole();
}

}  // namespace holdfast
