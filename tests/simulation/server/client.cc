// Reads replies as far as it needs them.
#include "client.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "../frame.h"

namespace holdfast::simulation {
namespace {

// Returns the flat list of strings and integers in an array or push; nullopt for other replies.
std::optional<std::vector<std::string>> elements(std::string_view reply) {
  if (reply.empty() || (reply[0] != '*' && reply[0] != '>')) return std::nullopt;
  std::vector<std::string> all;
  reply.remove_prefix(reply.find("\r\n") + 2);
  while (!reply.empty()) {
    const size_t length = reply_length(reply);
    if (length == 0) return std::nullopt;
    const std::string_view one = reply.substr(0, length);
    const size_t head = one.find("\r\n") + 2;
    all.emplace_back(one[0] == '$' && head < one.size() ? one.substr(head, one.size() - head - 2)
                                                        : one.substr(1, head - 3));
    reply.remove_prefix(length);
  }
  return all;
}

// The key that a request locks, by itself or in a script; empty if it locks none.
std::string locked_key(const std::vector<std::string>& request) {
  constexpr size_t kKey = 3;
  if (request.size() > 2 && strcasecmp(request[0].c_str(), "LOCK") == 0) return request[1];
  if (request.size() <= kKey || strcasecmp(request[0].c_str(), "EVAL") != 0) return "";
  return request[1].find("call('LOCK'") == std::string::npos ? "" : request[kKey];
}

uint64_t number(const std::string& text) {
  uint64_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

std::string bytes_of(const std::vector<std::string>& words) {
  std::string bytes = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) bytes += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return bytes;
}

// Whether the server may answer later requests with more or fewer replies than one.
bool changes_replies(const std::vector<std::string>& words) {
  constexpr std::array kCommands = {"MONITOR",     "SUBSCRIBE",    "PSUBSCRIBE",   "SSUBSCRIBE",
                                    "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "CLIENT"};
  const auto is = [&](const char* name) { return strcasecmp(words[0].c_str(), name) == 0; };
  if (!std::ranges::any_of(kCommands, is)) return words[0].empty();
  return !is("CLIENT") || (words.size() > 1 && strcasecmp(words[1].c_str(), "REPLY") == 0);
}

}  // namespace

void Client::send(const std::vector<std::string>& words) { send_part(words, SIZE_MAX); }

void Client::send_part(const std::vector<std::string>& words, size_t bytes) {
  socket_->to_server += std::exchange(rest_, "");
  const std::string all = bytes_of(words);
  socket_->to_server += all.substr(0, bytes);
  if (bytes < all.size()) rest_ = all.substr(bytes);
  if (changes_replies(words)) in_order_ = false;
  requests_.push_back(words);
}

void Client::send_bytes(const std::string& bytes) {
  socket_->to_server += bytes;
  in_order_ = false;
}

void Client::read(const std::function<void(const Grant&)>& got) {
  std::string& bytes = socket_->to_client;
  while (const size_t length = reply_length(bytes)) {
    const std::string reply = bytes.substr(0, length);
    bytes.erase(0, length);
    const auto parts = elements(reply);
    if (reply[0] == '>') {
      constexpr size_t kParts = 5;
      if (parts && parts->size() == kParts && (*parts)[1] == "granted")
        got({(*parts)[2], (*parts)[3], number((*parts)[4])});
      continue;
    }
    last_reply_ = reply;
    if (requests_.empty() || !in_order_) continue;
    const std::vector<std::string> request = std::move(requests_.front());
    requests_.pop_front();
    if (!parts || parts->size() != 2) continue;
    const std::string key = locked_key(request);
    if (!key.empty()) got({key, (*parts)[0], number((*parts)[1])});
  }
}

}  // namespace holdfast::simulation
