// The text of a transcript: requests, replies, times and connections. This file knows only the format,
// nothing of the engine.
//
//   # A comment.
//   == a waiter is granted at the very millisecond the hold expires
//   config session-grace 100
//   @0   A > LOCK k alice 100
//        A < ["alice", 1]
//   @10  B > LOCK k bob 1000 WAIT 0
//        B < (waits)
//        B > PING
//   @99  tick
//   @100 tick
//        B < ["bob", 2]
//        B < +PONG
//        drop A
//
// "==" opens a scenario with its own engine; its name states a promise. "config" sets an option of that
// engine. "@100" is the time of this step and the next ones, in milliseconds. The steps are:
// - "A > line" sends a line, quoted as an inline command;
// - "A >> "bytes\r\n"" sends bytes, for pipelines and broken frames;
// - "tick": the loop wakes up;
// - "connect A": the first use of a name connects as well;
// - "drop A": the peer has disconnected.
//
// After each step stands exactly the output that it causes, with connections in order of their names. It
// is a reply in the form of reply_text.h, (closed), or (waits) if the connection is blocked, so that its
// input is not read. In the output "..." stands for any text, and "| " continues the line before it.
// "sorted " before a reply sorts the elements of its arrays first.
#pragma once

#include <cctype>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::transcript {

enum class Verb { kSend, kSendRaw, kConnect, kDrop, kTick };

struct Heard {
  int line = 0;
  int last_line = 0;  // of its continuation lines
  std::string who;
  std::string text;
};

struct Step {
  int line = 0;
  int64_t at_ms = 0;
  Verb verb = Verb::kTick;
  std::string who;
  std::string text;  // the bytes to send
  std::vector<Heard> heard;
};

struct Scenario {
  std::string file;
  int line = 0;
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<Step> steps;
};

// Whether `text` matches `pattern`, where "..." stands for any text.
inline bool matches(std::string_view pattern, std::string_view text) {
  const size_t gap = pattern.find("...");
  if (gap == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, gap))) return false;
  pattern.remove_prefix(gap + 3);
  for (text.remove_prefix(gap);; text.remove_prefix(1)) {
    if (matches(pattern, text)) return true;
    if (text.empty()) return false;
  }
}

// Reads one file, line by line. An invalid line throws an exception with its file and line number.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  std::vector<Scenario> read() {
    std::ifstream in(file_);
    if (!in) throw std::runtime_error(file_ + ": cannot be read");
    for (std::string line; std::getline(in, line);) {
      ++line_;
      at_ = 0;
      text_ = line;
      read_line();
    }
    return std::move(scenarios_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(file_ + ":" + std::to_string(line_) + ": " + why);
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string word() {
    skip_blanks();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ') ++at_;
    return text_.substr(begin, at_ - begin);
  }
  // Returns the rest of the line after one blank.
  std::string rest() const { return at_ < text_.size() ? text_.substr(at_ + 1) : ""; }

  void read_line() {
    const std::string first = word();
    if (first.empty() || first[0] == '#') return;
    if (first == "==") return begin_scenario();
    if (scenarios_.empty()) fail("stands before the first '== name of a scenario'");
    if (first == "config") return read_option();
    if (first == "|") return continue_heard();
    if (first[0] != '@') return read_step(first);
    now_ms_ = std::stoll(first.substr(1));
    read_step(word());
  }

  void begin_scenario() {
    Scenario scenario;
    scenario.file = file_;
    scenario.line = line_;
    scenario.name = rest();
    scenarios_.push_back(std::move(scenario));
    now_ms_ = 0;
  }

  void read_option() {
    if (!scenarios_.back().steps.empty()) fail("config comes before the first step");
    std::string name = word();
    scenarios_.back().options.emplace_back(std::move(name), rest());
  }

  void continue_heard() {
    std::vector<Step>& steps = scenarios_.back().steps;
    if (steps.empty() || steps.back().heard.empty()) fail("continues nothing");
    steps.back().heard.back().text += " " + rest();
    steps.back().heard.back().last_line = line_;
  }

  void read_step(const std::string& first) {
    if (first == "tick") return add_step(Verb::kTick, "", "");
    if (first == "connect") return add_step(Verb::kConnect, word(), "");
    if (first == "drop") return add_step(Verb::kDrop, word(), "");
    const std::string direction = word();
    if (direction == ">") return add_step(Verb::kSend, first, rest());
    if (direction == ">>") return add_step(Verb::kSendRaw, first, rest());
    if (direction == "<") return add_heard(first);
    fail("is no step");
  }

  void add_step(Verb verb, std::string who, std::string text) {
    Step step;
    step.line = line_;
    step.at_ms = now_ms_;
    step.verb = verb;
    step.who = std::move(who);
    step.text = std::move(text);
    scenarios_.back().steps.push_back(std::move(step));
  }

  void add_heard(const std::string& who) {
    if (scenarios_.back().steps.empty()) fail("is heard before anything was said");
    scenarios_.back().steps.back().heard.push_back({line_, line_, who, rest()});
  }

  std::string file_;
  int line_ = 0;
  std::string text_;
  size_t at_ = 0;
  int64_t now_ms_ = 0;
  std::vector<Scenario> scenarios_;
};

}  // namespace holdfast::transcript
