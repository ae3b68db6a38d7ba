// The terminal of `holdfast top`: draws lines, reads keys, and leaves the terminal as it was. The only file
// that knows ncurses.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "cli/top_ui.h"

namespace holdfast {

class TopScreen {
 public:
  // Takes over the terminal of standard input and output. Throws std::runtime_error if it cannot be used.
  TopScreen();
  ~TopScreen();  // restores the terminal
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  size_t width() const;
  size_t height() const;
  void draw(const std::vector<TopLine>& lines);
  // Returns the next pressed key that means anything; nullopt if there is none now.
  std::optional<TopKey> next_key();
  // Adopts the present size of the terminal.
  void resize();
  // Give the terminal back for a stop (Ctrl-Z), and take it over again.
  void leave();
  void come_back();
};

}  // namespace holdfast
