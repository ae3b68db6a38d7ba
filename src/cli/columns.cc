// Uses the C library's wcwidth().
#include "cli/columns.h"

#include <langinfo.h>
#include <cwchar>

#include <algorithm>
#include <clocale>
#include <cstring>

namespace holdfast {
namespace {

// One character: its bytes, and its width. A byte that is not UTF-8 has the width 1.
struct Glyph {
  std::string_view bytes;
  size_t width;
};

Glyph first_of(std::string_view text) {
  wchar_t wide = 0;
  mbstate_t state{};
  const size_t length = mbrtowc(&wide, text.data(), text.size(), &state);
  if (length == 0 || length > text.size()) return {text.substr(0, 1), 1};
  const int width = wcwidth(wide);
  // The C library does not know newer characters. Most of these are emojis, which are wide.
  return {text.substr(0, length), width < 0 ? 2 : static_cast<size_t>(width)};
}

// Returns the longest start of the text that is at most this wide.
std::string_view start_of(std::string_view text, size_t width) {
  size_t bytes = 0, used = 0;
  while (bytes < text.size()) {
    const Glyph glyph = first_of(text.substr(bytes));
    if (used + glyph.width > width) break;
    used += glyph.width;
    bytes += glyph.bytes.size();
  }
  return text.substr(0, bytes);
}

}  // namespace

// Programs of cron and of containers often run without a locale.
void use_utf8() {
  const char* set = setlocale(LC_CTYPE, "");
  if (set == nullptr || std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

size_t width_of(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Glyph glyph = first_of(text);
    width += glyph.width;
    text.remove_prefix(glyph.bytes.size());
  }
  return width;
}

std::string fit(std::string_view text, size_t width, bool to_the_right) {
  const size_t all = width_of(text);
  if (all > width) {
    if (width == 0) return {};
    std::string cut(start_of(text, width - 1));
    const size_t used = width_of(cut);
    return cut + "…" + std::string(width - 1 - used, ' ');
  }
  const std::string blanks(width - all, ' ');
  return to_the_right ? blanks + std::string(text) : std::string(text) + blanks;
}

std::string without_first(std::string_view text, size_t columns) {
  return std::string(text.substr(start_of(text, columns).size()));
}

std::vector<std::string> wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::string_view line = start_of(text, std::max<size_t>(width, 2));
    if (line.empty()) line = first_of(text).bytes;
    if (line.size() < text.size() && text[line.size()] != ' ') {
      const size_t blank = line.rfind(' ');
      if (blank != std::string_view::npos && blank > 0) line = line.substr(0, blank);
    }
    lines.emplace_back(line);
    text.remove_prefix(line.size());
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  return lines;
}

}  // namespace holdfast
