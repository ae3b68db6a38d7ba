#include "load/request.h"

#include <fmt/format.h>

#include <utility>

#include "load/connection.h"

namespace holdfast::bench {

namespace {

struct Kind {
  std::string_view name;
  std::string_view text;  // its text, with zeros for the digits at its end
  size_t digits;
  uint64_t Numbers::*number;
};

constexpr Kind kKinds[] = {
    {"{key}", "key-of-35-bytes-and-so-000000000000", 12, &Numbers::key},
    {"{owner}", "owner-of-forty-bytes-and-so-000000000000", 12, &Numbers::owner},
    {"{deadline}", "0000000000000", 13, &Numbers::deadline_ms},
};

}  // namespace

Request::Request(std::string_view words, std::string expected)
    : words_(words), expected_(std::move(expected)) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (end > at) parts.push_back(words.substr(at, end - at));
    at = end + 1;
  }
  bytes_ = fmt::format("*{}\r\n", parts.size());
  for (const std::string_view part : parts) add_word(part);
}

void Request::add_word(std::string_view word) {
  for (const Kind& kind : kKinds) {
    if (word != kind.name) continue;
    bytes_ += fmt::format("${}\r\n{}\r\n", kind.text.size(), kind.text);
    places_.push_back({bytes_.size() - 3, kind.digits, kind.number});
    return;
  }
  bytes_ += fmt::format("${}\r\n{}\r\n", word.size(), word);
}

void Request::append_to(std::string& out, const Numbers& numbers) const {
  const size_t begin = out.size();
  out += bytes_;
  for (const Place& place : places_) {
    uint64_t n = numbers.*place.number;
    for (size_t i = 0; i < place.digits && n > 0; ++i, n /= 10) {
      out[begin + place.at - i] = static_cast<char>('0' + n % 10);
    }
  }
}

void Request::check(std::string_view reply) const {
  if (reply.starts_with(expected_)) return;
  fail(fmt::format("{}: the reply is {:?}, which does not begin with {:?}", words_, reply, expected_));
}

}  // namespace holdfast::bench
