// All signals are blocked (see Signals), so the handlers of ncurses never run: resize() does their work.
#include "cli/top_screen.h"

#include <ncurses.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

// Macros of <term.h> with the names of common words.
#undef lines
#undef columns

namespace holdfast {
namespace {

constexpr int kEscapeDelayMs = 25;  // from Esc to the next byte of a special key

using KeyKind = TopKey::Kind;

std::optional<TopKey> special_key(wint_t code) {
  constexpr std::array<std::pair<int, KeyKind>, 10> kKeys{{{KEY_UP, KeyKind::kUp},
                                                           {KEY_DOWN, KeyKind::kDown},
                                                           {KEY_PPAGE, KeyKind::kPageUp},
                                                           {KEY_NPAGE, KeyKind::kPageDown},
                                                           {KEY_HOME, KeyKind::kHome},
                                                           {KEY_END, KeyKind::kEnd},
                                                           {KEY_ENTER, KeyKind::kEnter},
                                                           {KEY_BACKSPACE, KeyKind::kBackspace},
                                                           {KEY_DC, KeyKind::kBackspace},
                                                           {KEY_CANCEL, KeyKind::kEscape}}};
  for (const auto& [key, kind] : kKeys) {
    if (static_cast<wint_t>(key) == code) return TopKey{kind};
  }
  return std::nullopt;
}

std::optional<TopKey> character_key(wint_t code) {
  if (code == L'\r' || code == L'\n') return TopKey{KeyKind::kEnter};
  if (code == 27) return TopKey{KeyKind::kEscape};
  if (code == 8 || code == 127) return TopKey{KeyKind::kBackspace};
  if (code < L' ') return std::nullopt;
  std::array<char, MB_LEN_MAX> bytes{};
  mbstate_t state{};
  const size_t length = wcrtomb(bytes.data(), static_cast<wchar_t>(code), &state);
  if (length > bytes.size()) return std::nullopt;
  return TopKey{KeyKind::kText, std::string(bytes.data(), length)};
}

attr_t attributes_of(TopLine::Style style) {
  return style == TopLine::Style::kBold ? A_BOLD : style == TopLine::Style::kReverse ? A_REVERSE : A_NORMAL;
}

}  // namespace

TopScreen::TopScreen() {
  const char* name = std::getenv("TERM");
  const std::string shown = name == nullptr ? "" : name;
  // newterm() can end the process on a terminal that it cannot move the cursor of.
  int error = 0;
  if (setupterm(nullptr, STDOUT_FILENO, &error) != OK || cursor_address == nullptr) {
    throw std::runtime_error("the terminal '" + shown +
                             "' (variable TERM) cannot move its cursor; use --batch or --json");
  }
  if (newterm(nullptr, stdout, stdin) == nullptr)
    throw std::runtime_error("the terminal '" + shown + "' (variable TERM) cannot be used; use --batch");
  set_escdelay(kEscapeDelayMs);
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  resize();
}

TopScreen::~TopScreen() { endwin(); }

size_t TopScreen::width() const { return static_cast<size_t>(std::max(COLS, 1)); }
size_t TopScreen::height() const { return static_cast<size_t>(std::max(LINES, 1)); }

void TopScreen::draw(const std::vector<TopLine>& lines) {
  erase();
  for (size_t i = 0; i < lines.size() && i < height(); ++i) {
    attrset(static_cast<int>(attributes_of(lines[i].style)));
    mvaddstr(static_cast<int>(i), 0, lines[i].text.c_str());
  }
  attrset(A_NORMAL);
  refresh();
}

std::optional<TopKey> TopScreen::next_key() {
  wint_t code = 0;
  while (true) {
    const int kind = get_wch(&code);
    if (kind == ERR) return std::nullopt;
    std::optional<TopKey> key = kind == KEY_CODE_YES ? special_key(code) : character_key(code);
    if (key) return key;
  }
}

void TopScreen::resize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return;
  resizeterm(size.ws_row, size.ws_col);
  clear();
}

void TopScreen::leave() { endwin(); }

void TopScreen::come_back() {
  refresh();
  resize();
}

}  // namespace holdfast
