// Splits a line into words, also in the quoting of Redis's sdssplitargs; see words.h.
#include "core/base/words.h"

#include <algorithm>

namespace holdfast {

namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Redis skips \v and \f between words, but they do not end a word.
bool ends_word(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char unescape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Removes the closing quote. Returns false if a character that is not blank follows it.
bool close_quote(std::string_view& rest) {
  rest.remove_prefix(1);
  return rest.empty() || is_blank(rest[0]);
}

// `rest` begins behind the opening quote. Returns false if the quotes are unbalanced.
bool take_double_quoted(std::string_view& rest, std::string& out) {
  while (!rest.empty()) {
    if (rest[0] == '"') return close_quote(rest);
    size_t taken = 1;
    char c = rest[0];
    if (c == '\\' && rest.size() >= 4 && rest[1] == 'x' && hex_digit(rest[2]) >= 0 &&
        hex_digit(rest[3]) >= 0) {
      c = static_cast<char>(hex_digit(rest[2]) * 16 + hex_digit(rest[3]));
      taken = 4;
    } else if (c == '\\' && rest.size() >= 2) {
      c = unescape(rest[1]);
      taken = 2;
    }
    out.push_back(c);
    rest.remove_prefix(taken);
  }
  return false;
}

bool take_single_quoted(std::string_view& rest, std::string& out) {
  while (!rest.empty()) {
    if (rest[0] == '\'') return close_quote(rest);
    if (rest.starts_with("\\'")) rest.remove_prefix(1);
    out.push_back(rest[0]);
    rest.remove_prefix(1);
  }
  return false;
}

// A quote may open in the middle of a word; the closing quote ends the word.
bool take_word(std::string_view& rest, std::string& out) {
  while (!rest.empty() && !ends_word(rest[0])) {
    const char c = rest[0];
    rest.remove_prefix(1);
    if (c == '"') return take_double_quoted(rest, out);
    if (c == '\'') return take_single_quoted(rest, out);
    out.push_back(c);
  }
  return true;
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return words;
    words.push_back(line.substr(0, line.find_first_of(kBlanks)));
    line.remove_prefix(words.back().size());
  }
}

bool split_quoted_words(std::string_view line, std::string& text, std::vector<std::string_view>& words) {
  text.reserve(line.size());
  for (;;) {
    while (!line.empty() && is_blank(line[0])) line.remove_prefix(1);
    if (line.empty()) return true;
    const size_t start = text.size();
    if (!take_word(line, text)) return false;
    words.emplace_back(text.data() + start, text.size() - start);
  }
}

}  // namespace holdfast
