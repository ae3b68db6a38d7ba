// Words with blanks stand in double quotes, where \" and \\ are a quote and a backslash.
#include "script.h"

#include <charconv>

namespace holdfast::simulation {
namespace {

std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \"\\#") == std::string::npos) return word;
  std::string text = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

std::string take_word(std::string_view& line) {
  std::string word;
  const bool quotes = line.front() == '"';
  if (quotes) line.remove_prefix(1);
  while (!line.empty() && line.front() != (quotes ? '"' : ' ')) {
    if (quotes && line.front() == '\\' && line.size() > 1) line.remove_prefix(1);
    word += line.front();
    line.remove_prefix(1);
  }
  if (!line.empty()) line.remove_prefix(1);
  return word;
}

}  // namespace

std::string ScriptStep::text() const {
  std::string line = "+" + std::to_string(run_us);
  for (const std::string& word : words) line += " " + quoted(word);
  return line;
}

std::vector<ScriptStep> read_script(std::string_view text) {
  std::vector<ScriptStep> steps;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() != '+') continue;
    ScriptStep step;
    const auto [rest, error] = std::from_chars(line.data() + 1, line.data() + line.size(), step.run_us);
    if (error != std::errc()) continue;
    line.remove_prefix(static_cast<size_t>(rest - line.data()));
    while (true) {
      while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
      if (line.empty()) break;
      step.words.push_back(take_word(line));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace holdfast::simulation
