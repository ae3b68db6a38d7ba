// The interaction of `holdfast top`: takes pressed keys and new states, and draws lines of text. Knows no
// terminal and sends no requests: it tells its caller what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/top_poll.h"
#include "cli/top_state.h"
#include "cli/top_table.h"

namespace holdfast {

// A pressed key: a character in UTF-8, or a special key.
struct TopKey {
  enum class Kind : uint8_t {
    kText,
    kUp,
    kDown,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kEscape,
    kBackspace
  };
  Kind kind = Kind::kText;
  std::string text = {};
};

struct TopLine {
  enum class Style : uint8_t { kPlain, kBold, kReverse };
  std::string text;
  Style style = Style::kPlain;
};

class TopUi {
 public:
  explicit TopUi(TopQuery query) : query_(std::move(query)) {}

  // What the caller must do after press().
  struct Wish {
    bool quit = false;
    bool refresh = false;     // at once, with query()
    std::string change = {};  // "BREAK" or "REVOKE": for change_key()
  };
  Wish press(const TopKey& key);
  const TopQuery& query() const { return query_; }
  const std::string& change_key() const { return asked_.key; }

  void take(std::vector<ServerState> servers);
  void show_message(const std::string& message) { message_ = message; }
  // Exactly `height` lines of at most `width`.
  std::vector<TopLine> draw(size_t width, size_t height);

 private:
  enum class View : uint8_t { kLocks, kQueue, kHelp };
  enum class Prompt : uint8_t { kNone, kFilter, kDatabase, kConfirm };

  Wish press_in_prompt(const TopKey& key);
  Wish press_in_list(const TopKey& key);
  Wish confirm(const TopKey& key);
  Wish end_prompt();
  Wish command(char letter);
  void scroll(const TopKey& key);
  bool sort_by(char letter);
  Wish open_queue();
  void ask(const std::string& change);
  void reorder();
  void keep_selection();

  void draw_head(size_t width, size_t height, std::vector<TopLine>& lines) const;
  void draw_locks(size_t width, size_t room, std::vector<TopLine>& lines);
  void draw_text(const std::vector<std::string>& text, size_t width, size_t room,
                 std::vector<TopLine>& lines);
  std::vector<std::string> queue_text() const;
  std::vector<std::string> foot(size_t width) const;

  TopQuery query_;
  std::vector<ServerState> servers_;
  std::vector<LockRow> rows_;
  TopOrder order_;
  View view_ = View::kLocks;
  Prompt prompt_ = Prompt::kNone;
  std::string typed_;
  LockRow asked_;        // the lock of the question, as it was when it was asked
  std::string change_;   // that the question is about
  std::string message_;  // until the next key
  size_t selected_ = 0, top_ = 0, scrolled_ = 0, page_ = 1;
  std::string selected_key_;
};

}  // namespace holdfast
