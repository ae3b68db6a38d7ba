// Writes expected replies, compares them with real ones, and finds the end of a reply.
#include "frame.h"

#include <charconv>
#include <utility>

namespace holdfast::simulation {

Frame& Frame::raw(const std::string& text) {
  if (pieces_.empty() || pieces_.back().token) pieces_.push_back({});
  pieces_.back().text += text;
  return *this;
}

Frame& Frame::bulk(std::string_view bytes) {
  return raw("$" + std::to_string(bytes.size()) + "\r\n" + std::string(bytes) + "\r\n");
}

Frame& Frame::map(size_t pairs) {
  if (protocol_ == 3) return raw("%" + std::to_string(pairs) + "\r\n");
  return array(2 * pairs);
}

Frame& Frame::token(TokenRef box) {
  pieces_.push_back({"", std::move(box)});
  return *this;
}

Frame& Frame::append(const Frame& inner) {
  for (const Piece& piece : inner.pieces_) pieces_.push_back(piece);
  return *this;
}

bool Frame::matches(std::string_view bytes) const {
  if (anything_) return reply_length(bytes) == bytes.size();
  std::vector<std::pair<TokenRef, uint64_t>> learnt;
  for (const Piece& piece : pieces_) {
    if (!piece.token) {
      if (!bytes.starts_with(piece.text)) return false;
      bytes.remove_prefix(piece.text.size());
      continue;
    }
    if (!bytes.starts_with(":")) return false;
    uint64_t value = 0;
    const char* end = bytes.data() + bytes.size();
    const auto [stop, wrong] = std::from_chars(bytes.data() + 1, end, value);
    if (wrong != std::errc() || !std::string_view(stop, end).starts_with("\r\n")) return false;
    bytes = std::string_view(stop + 2, end);
    if (piece.token->known && piece.token->value != value) return false;
    for (const auto& [box, seen] : learnt) {
      if (box == piece.token && seen != value) return false;
    }
    learnt.emplace_back(piece.token, value);
  }
  if (!bytes.empty()) return false;
  for (const auto& [box, value] : learnt) *box = {true, value};
  return true;
}

std::string Frame::text() const {
  if (anything_) return "<anything>";
  std::string out;
  for (const Piece& piece : pieces_) {
    if (!piece.token) {
      out += piece.text;
    } else {
      out += ":" + (piece.token->known ? std::to_string(piece.token->value) : "<token>") + "\r\n";
    }
  }
  return out;
}

size_t reply_length(std::string_view bytes) {
  const size_t line_end = bytes.find("\r\n");
  if (line_end == std::string_view::npos || line_end == 0) return 0;
  const size_t head = line_end + 2;
  if (std::string_view("+-:_#,").find(bytes[0]) != std::string_view::npos) return head;
  int64_t n = 0;
  std::from_chars(bytes.data() + 1, bytes.data() + line_end, n);
  if (n < 0) return head;
  const auto count = static_cast<size_t>(n);
  if (bytes[0] == '$' || bytes[0] == '=') return bytes.size() >= head + count + 2 ? head + count + 2 : 0;
  size_t total = head;
  for (size_t i = 0; i < (bytes[0] == '%' ? 2 * count : count); ++i) {
    const size_t element = reply_length(bytes.substr(total));
    if (element == 0) return 0;
    total += element;
  }
  return total;
}

}  // namespace holdfast::simulation
