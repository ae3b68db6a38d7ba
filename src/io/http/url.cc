// Decoding of URLs and of base64.
#include "io/http/url.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace holdfast {
namespace {

bool is_plain(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

int base64_value(char c) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t at = kDigits.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

// Takes the text up to `end`, and `end` itself.
std::string_view take_until(std::string_view& rest, char end) {
  const std::string_view part = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  return part;
}

// In a query, "+" is a blank.
std::optional<std::string> decoded_word(std::string_view text) {
  std::string word(text);
  std::ranges::replace(word, '+', ' ');
  return percent_decoded(word);
}

bool parse_query(std::string_view text, Url& url) {
  while (!text.empty()) {
    std::string_view pair = take_until(text, '&');
    const std::string_view name = take_until(pair, '=');
    const std::optional<std::string> value = decoded_word(pair);
    const std::optional<std::string> word = decoded_word(name);
    if (!word || !value || !url.query.emplace(*word, *value).second) return false;
  }
  return true;
}

}  // namespace

std::string percent_encoded(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(byte)) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const std::string digits(text.substr(i + 1, 2));
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, byte, 16);
    if (error != std::errc() || end != digits.data() + 2) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

std::string_view Url::value(std::string_view name, std::string_view otherwise) const {
  const auto found = query.find(name);
  return found == query.end() ? otherwise : std::string_view(found->second);
}

std::optional<Url> parse_url(std::string_view target) {
  Url url;
  const size_t end = target.find_first_of("?#");
  url.path = target.substr(0, end);
  std::string_view rest = url.path.substr(std::min<size_t>(1, url.path.size()));
  while (true) {
    const bool last = rest.find('/') == std::string_view::npos;
    std::optional<std::string> part = percent_decoded(take_until(rest, '/'));
    if (!part) return std::nullopt;
    url.parts.push_back(std::move(*part));
    if (last) break;
  }
  if (end == std::string_view::npos) return url;
  const std::string_view query = target.substr(end + 1);
  if (target[end] == '#' || !parse_query(query.substr(0, query.find('#')), url)) return std::nullopt;
  return url;
}

std::optional<std::string> base64_decoded(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  const size_t digits = std::min(text.find('='), text.size());
  if (text.size() % 4 != 0 || text.size() - digits > 2) return std::nullopt;
  for (const char c : text.substr(0, digits)) {
    const int value = base64_value(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6U | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> static_cast<unsigned>(count) & 0xffU);
  }
  if (text.substr(digits).find_first_not_of('=') != std::string_view::npos) return std::nullopt;
  return out;
}

}  // namespace holdfast
