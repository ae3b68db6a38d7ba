// The selection follows the key of its lock, not its place: rows move between two refreshes.
#include "cli/top_ui.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/columns.h"
#include "cli/printable.h"

namespace holdfast {
namespace {

using client::field;
using client::Value;
using KeyKind = TopKey::Kind;
using Style = TopLine::Style;

constexpr size_t kLongestInput = 200;
constexpr size_t kLeastRows = 4;  // the rows of locks that the servers leave on a small screen

const std::vector<std::string>& help_text() {
  static const std::vector<std::string> kText{
      "Up, Down, PgUp, PgDn, Home, End   select a lock; also k and j",
      "Enter   show the holders and the queue of the lock",
      "/       show only names with a text, or by a pattern such as job:*; empty: all",
      "d       show another database",
      "s       sort by the next criterion; R reverses the order",
      "w l a t n o   sort by waiters, longest wait, age, TTL, name, holder",
      "b       break the lock: end all its holds by force (asks first)",
      "r       revoke the lock: ask its holders to release it (asks first)",
      "Space   refresh now",
      "q       quit",
      "",
      "Servers: grants a second, waits that ended in the last interval (p50, p99).",
      "Locks: HOLDER has the smallest token (+N more holders), AGE is the time since",
      "its grant, LONGEST the longest wait of the present waiters, ON the servers of",
      "a quorum that have this holder. A - means: not known.",
  };
  return kText;
}

std::string pattern_of(const std::string& typed) {
  const bool is_pattern = typed.find_first_of("*?[") != std::string::npos;
  return typed.empty() || is_pattern ? typed : "*" + typed + "*";
}

void drop_last_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80) text.pop_back();
  if (!text.empty()) text.pop_back();
}

std::string title_of(const std::vector<ServerState>& servers, const TopQuery& query, TopOrder order) {
  std::string title = "holdfast top  ";
  title += servers.size() == 1 ? printable(servers[0].name) : fmt::format("{} servers", servers.size());
  title += "  " + time_now().substr(11, 8) + "Z";
  if (query.database > 0) title += fmt::format("  db {}", query.database);
  title += fmt::format("  by {}{}", name_of(order.by), order.reversed ? " reversed" : "");
  if (!query.pattern.empty()) title += "  /" + printable(query.pattern);
  return title;
}

// Puts the texts on lines of at most this width, with two blanks between them.
std::vector<std::string> joined(const std::vector<std::string>& texts, size_t width) {
  std::vector<std::string> lines;
  for (const std::string& text : texts) {
    const bool fits = !lines.empty() && width_of(lines.back()) + 2 + width_of(text) <= width;
    if (fits) {
      lines.back() += "  " + text;
    } else {
      lines.push_back(text);
    }
  }
  return lines;
}

}  // namespace

void TopUi::take(std::vector<ServerState> servers) {
  servers_ = std::move(servers);
  reorder();
}

void TopUi::reorder() {
  rows_ = rows_of(servers_);
  sort_rows(rows_, order_);
  const auto same = std::ranges::find(rows_, selected_key_, &LockRow::key);
  if (same != rows_.end()) selected_ = static_cast<size_t>(same - rows_.begin());
  selected_ = std::min(selected_, rows_.empty() ? 0 : rows_.size() - 1);
}

void TopUi::keep_selection() {
  selected_key_ = selected_ < rows_.size() ? rows_[selected_].key : std::string();
}

TopUi::Wish TopUi::press(const TopKey& key) {
  message_.clear();
  if (prompt_ == Prompt::kConfirm) return confirm(key);
  if (prompt_ != Prompt::kNone) return press_in_prompt(key);
  return press_in_list(key);
}

TopUi::Wish TopUi::press_in_list(const TopKey& key) {
  if (key.kind == KeyKind::kText && key.text.size() == 1) return command(key.text[0]);
  if (key.kind == KeyKind::kEnter && view_ == View::kLocks) return open_queue();
  if (key.kind == KeyKind::kEscape || key.kind == KeyKind::kEnter) {
    query_.queue_key.clear();
    view_ = View::kLocks;
    return {};
  }
  scroll(key);
  return {};
}

// Moves the selection, or the text of the queue or the help.
void TopUi::scroll(const TopKey& key) {
  size_t& at = view_ == View::kLocks ? selected_ : scrolled_;
  const size_t by = key.kind == KeyKind::kPageUp || key.kind == KeyKind::kPageDown ? page_ : 1;
  if (key.kind == KeyKind::kUp || key.kind == KeyKind::kPageUp) at -= std::min(at, by);
  if (key.kind == KeyKind::kDown || key.kind == KeyKind::kPageDown) at += by;
  if (key.kind == KeyKind::kHome) at = 0;
  if (key.kind == KeyKind::kEnd) at = SIZE_MAX;
  if (view_ != View::kLocks) return;  // draw_text() limits it
  selected_ = std::min(selected_, rows_.empty() ? 0 : rows_.size() - 1);
  keep_selection();
}

bool TopUi::sort_by(char letter) {
  constexpr std::string_view kLetters = "wlatno";  // in the order of TopSort
  const size_t at = kLetters.find(letter);
  if (letter == 's') {
    order_.by = static_cast<TopSort>((static_cast<size_t>(order_.by) + 1) % kLetters.size());
  } else if (letter == 'R') {
    order_.reversed = !order_.reversed;
  } else if (at != std::string_view::npos) {
    order_.by = static_cast<TopSort>(at);
  } else {
    return false;
  }
  reorder();
  return true;
}

TopUi::Wish TopUi::command(char letter) {
  if (letter == 'q' && view_ == View::kLocks) return {.quit = true};
  if (letter == 'q') return press_in_list({KeyKind::kEscape});
  if (letter == 'k') scroll({KeyKind::kUp});
  if (letter == 'j') scroll({KeyKind::kDown});
  if (letter == ' ') return {.refresh = true};
  if (letter == '?') {
    view_ = View::kHelp;
    scrolled_ = 0;
  }
  if (letter == 'b') ask("BREAK");
  if (letter == 'r') ask("REVOKE");
  if (view_ != View::kLocks) return {};
  if (letter == '/') prompt_ = Prompt::kFilter;
  if (letter == 'd') prompt_ = Prompt::kDatabase;
  if (letter == '/' || letter == 'd') typed_.clear();
  sort_by(letter);
  return {};
}

TopUi::Wish TopUi::open_queue() {
  if (selected_ >= rows_.size()) return {};
  keep_selection();
  query_.queue_key = rows_[selected_].key;
  view_ = View::kQueue;
  scrolled_ = 0;
  return {.refresh = true};
}

void TopUi::ask(const std::string& change) {
  if (view_ == View::kHelp || selected_ >= rows_.size()) return;
  keep_selection();
  asked_ = rows_[selected_];
  if (view_ == View::kQueue && asked_.key != query_.queue_key) return;
  change_ = change;
  prompt_ = Prompt::kConfirm;
}

// The lock may have gone to another holder while the question was on the screen.
TopUi::Wish TopUi::confirm(const TopKey& key) {
  prompt_ = Prompt::kNone;
  const std::string name = printable(asked_.key, true);
  if (key.kind != KeyKind::kText || (key.text != "y" && key.text != "Y")) {
    message_ = fmt::format("{}: nothing changed", name);
    return {};
  }
  const auto now = std::ranges::find(rows_, asked_.key, &LockRow::key);
  if (now == rows_.end() || now->owner != asked_.owner || now->token != asked_.token) {
    message_ = fmt::format("{}: nothing changed, because the holder changed: now {}", name,
                           now == rows_.end() ? "free" : printable(now->owner, true));
    return {};
  }
  return {.change = change_};
}

TopUi::Wish TopUi::press_in_prompt(const TopKey& key) {
  if (key.kind == KeyKind::kEnter) return end_prompt();
  if (key.kind == KeyKind::kEscape) prompt_ = Prompt::kNone;
  if (key.kind == KeyKind::kBackspace) drop_last_character(typed_);
  if (key.kind == KeyKind::kText && typed_.size() < kLongestInput) typed_ += key.text;
  return {};
}

TopUi::Wish TopUi::end_prompt() {
  const Prompt prompt = std::exchange(prompt_, Prompt::kNone);
  if (prompt == Prompt::kFilter) query_.pattern = pattern_of(typed_);
  if (prompt == Prompt::kDatabase) {
    int32_t number = 0;
    const char* last = typed_.data() + typed_.size();
    const auto [end, wrong] = std::from_chars(typed_.data(), last, number);
    if (wrong != std::errc() || end != last || number < 0) {
      message_ = fmt::format("'{}' is not the number of a database", printable(typed_));
      return {};
    }
    query_.database = number;
  }
  selected_ = top_ = 0;
  selected_key_.clear();
  return {.refresh = true};
}

std::vector<std::string> TopUi::foot(size_t width) const {
  switch (prompt_) {
    case Prompt::kFilter:
      return wrap("/" + printable(typed_) + "_", width);
    case Prompt::kDatabase:
      return wrap("database: " + printable(typed_) + "_", width);
    case Prompt::kConfirm: {
      const bool by_force = change_ == "BREAK";
      const int64_t others = asked_.holders.value_or(1) - 1;
      return wrap(fmt::format("{} {}, held by {}{}{}? {} y/n", by_force ? "Break" : "Revoke",
                              printable(asked_.key, true),
                              asked_.owner.empty() ? "an unknown owner" : printable(asked_.owner, true),
                              asked_.note.empty() ? "" : fmt::format(" ({})", printable(asked_.note)),
                              others > 0 ? fmt::format(" and {} more", others) : "",
                              by_force ? "The holder may still be at work." : "The holder may ignore it."),
                  width);
    }
    case Prompt::kNone:
      break;
  }
  if (!message_.empty()) return wrap(message_, width);
  if (view_ != View::kLocks) return {"q back  Up Down scroll"};
  return {"q quit  ? help  / filter  s sort  Enter queue  b break  r revoke"};
}

// The title, and the servers: as a table where it leaves enough lines, else only those that are not ready.
void TopUi::draw_head(size_t width, size_t height, std::vector<TopLine>& lines) const {
  lines.push_back({fit(title_of(servers_, query_, order_), width), Style::kReverse});
  if (servers_.size() == 1) {
    for (const std::string& line : wrap(state_text(servers_[0]), width))
      lines.push_back({line, Style::kBold});
    for (const std::string& line : joined(figure_texts(servers_[0]), width)) lines.push_back({line});
    return;
  }
  if (servers_.size() + 4 + kLeastRows <= height) {
    for (const std::string& line : server_table(servers_).lines(width)) lines.push_back({line});
    lines.back().style = Style::kBold;
    return;
  }
  std::vector<std::string> texts{readiness_text(servers_)};
  for (const ServerState& server : servers_) {
    if (!server.is_ready())
      texts.push_back(fmt::format("{}: {}", printable(server.name), state_text(server)));
  }
  const auto figures = figure_texts(sum_of(servers_));
  texts.insert(texts.begin() + 1, figures.begin(), figures.begin() + 2);
  for (const std::string& line : joined(texts, width)) lines.push_back({fit(line, width)});
}

void TopUi::draw_locks(size_t width, size_t room, std::vector<TopLine>& lines) {
  page_ = std::max<size_t>(room, 2) - 1;
  if (selected_ < top_) top_ = selected_;
  if (selected_ >= top_ + page_) top_ = selected_ - page_ + 1;
  top_ = std::min(top_, rows_.size() - std::min(rows_.size(), page_));
  const auto from = rows_.begin() + static_cast<ptrdiff_t>(top_);
  const auto to = rows_.begin() + static_cast<ptrdiff_t>(std::min(rows_.size(), top_ + page_));
  const auto text = lock_table({from, to}, servers_.size()).lines(width);
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_selected = i == selected_ - top_ + 1 && !rows_.empty();
    lines.push_back({i == 0 || is_selected ? fit(text[i], width) : text[i], i == 0        ? Style::kBold
                                                                            : is_selected ? Style::kReverse
                                                                                          : Style::kPlain});
  }
  if (!rows_.empty()) return;
  const bool any = std::ranges::any_of(servers_, [](const ServerState& s) { return s.is_up(); });
  const bool waiting = std::ranges::any_of(servers_, [](const ServerState& s) { return !s.asked; });
  lines.push_back({any ? query_.pattern.empty() ? "no lock is held" : "no such lock is held"
                   : waiting || servers_.empty() ? "connecting"
                                                 : "no server answers; retrying"});
}

void TopUi::draw_text(const std::vector<std::string>& text, size_t width, size_t room,
                      std::vector<TopLine>& lines) {
  std::vector<std::string> wrapped;
  for (const std::string& line : text) {
    const auto parts = wrap(line, width);
    wrapped.insert(wrapped.end(), parts.begin(), parts.end());
    if (parts.empty()) wrapped.emplace_back();
  }
  page_ = std::max<size_t>(room, 1);
  scrolled_ = std::min(scrolled_, wrapped.size() - std::min(wrapped.size(), page_));
  for (size_t i = scrolled_; i < wrapped.size() && i < scrolled_ + room; ++i) lines.push_back({wrapped[i]});
}

std::vector<std::string> TopUi::queue_text() const {
  std::vector<std::string> text{"Lock " + printable(query_.queue_key, true)};
  for (const ServerState& server : servers_) {
    const bool known = server.is_up() && server.queue_key == query_.queue_key;
    const bool held = known && server.queue.kind == Value::Kind::kArray;
    const std::string prefix = servers_.size() > 1 ? printable(server.name) + ": " : "";
    text.push_back(prefix + (!server.is_up() ? state_text(server)
                             : !known        ? "no answer yet"
                             : held          ? mode_text(server.queue)
                                             : "free"));
    if (!held) continue;
    for (const Value& holder : field(server.queue, "holders").elements)
      text.push_back("  " + hold_text(holder));
    size_t place = 0;
    for (const Value& waiter : field(server.queue, "waiters").elements)
      text.push_back(fmt::format("  {}. {}", ++place, waiter_text(waiter)));
  }
  return text;
}

std::vector<TopLine> TopUi::draw(size_t width, size_t height) {
  std::vector<TopLine> lines;
  std::vector<std::string> last = foot(width);
  if (last.size() > height / 2 + 1) last.resize(height / 2 + 1);
  draw_head(width, height - std::min(height, last.size()), lines);
  const size_t body = height - std::min(height, last.size());
  const size_t room = body - std::min(body, lines.size());
  if (view_ == View::kLocks) draw_locks(width, room, lines);
  if (view_ == View::kQueue) draw_text(queue_text(), width, room, lines);
  if (view_ == View::kHelp) draw_text(help_text(), width, room, lines);
  lines.resize(body);
  const Style style = prompt_ == Prompt::kNone ? Style::kPlain : Style::kBold;
  for (const std::string& line : last) lines.push_back({fit(line, width), style});
  lines.resize(height);
  return lines;
}

}  // namespace holdfast
