// Words with blanks stand in double quotes, where \" and \\ are a quote and a backslash, and \xHH is a
// byte.
#include "script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace holdfast::simulation {
namespace {

std::string quoted(const std::string& word) {
  const auto is_plain = [](unsigned char c) { return c >= ' ' && c < 0x7f; };
  if (!word.empty() && std::ranges::all_of(word, is_plain) &&
      word.find_first_of(" \"\\#") == std::string::npos)
    return word;
  std::string text = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') text += '\\';
    text += is_plain(static_cast<unsigned char>(c))
                ? std::string(1, c)
                : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + '"';
}

// Takes the character after a backslash, or the byte of \xHH.
char take_escaped(std::string_view& line) {
  constexpr size_t kDigits = 2;
  if (line[0] == 'x' && line.size() > kDigits) {
    unsigned byte = 0;
    const char* end = line.data() + 1 + kDigits;
    if (std::from_chars(line.data() + 1, end, byte, 16).ptr == end) {
      line.remove_prefix(1 + kDigits);
      return static_cast<char>(byte);
    }
  }
  const char c = line[0];
  line.remove_prefix(1);
  return c;
}

std::string take_word(std::string_view& line) {
  std::string word;
  const bool quotes = line.front() == '"';
  if (quotes) line.remove_prefix(1);
  while (!line.empty() && line.front() != (quotes ? '"' : ' ')) {
    const char c = line.front();
    line.remove_prefix(1);
    word += quotes && c == '\\' && !line.empty() ? take_escaped(line) : c;
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

uint64_t number(const std::vector<std::string>& words, size_t at) {
  return at < words.size() ? std::strtoull(words[at].c_str(), nullptr, 10) : 0;
}

ScriptStep step_of(int64_t run_us, std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return {run_us, std::move(words)};
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
