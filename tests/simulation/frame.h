// The output that the model expects for a connection: RESP as text, with gaps in place of fencing tokens,
// which the engine chooses. The text is written here byte by byte, so that a mistake in the engine's own
// writer is found.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::simulation {

// A token that the engine has chosen or will choose. It becomes known when a reply contains it.
struct TokenBox {
  bool known = false;
  uint64_t value = 0;  // not known yet: 0 in the step that assigns it, later its lower bound
};
using TokenRef = std::shared_ptr<TokenBox>;

// One reply or push.
class Frame {
 public:
  explicit Frame(int protocol) : protocol_(protocol) {}

  Frame& simple(std::string_view text) { return raw("+" + std::string(text) + "\r\n"); }
  Frame& error(std::string_view text) { return raw("-" + std::string(text) + "\r\n"); }
  Frame& integer(int64_t value) { return raw(":" + std::to_string(value) + "\r\n"); }
  Frame& bulk(std::string_view bytes);
  Frame& null() { return raw(protocol_ == 3 ? "_\r\n" : "$-1\r\n"); }
  Frame& null_array() { return raw(protocol_ == 3 ? "_\r\n" : "*-1\r\n"); }
  Frame& array(size_t n) { return raw("*" + std::to_string(n) + "\r\n"); }
  Frame& push(size_t n) { return raw(">" + std::to_string(n) + "\r\n"); }
  Frame& map(size_t pairs);
  Frame& token(TokenRef box);
  Frame& append(const Frame& inner);
  // Matches any one reply.
  Frame& anything() {
    anything_ = true;
    return *this;
  }

  // Whether `bytes` are this frame. Sets the tokens that are not known yet, but only if all else matches.
  bool matches(std::string_view bytes) const;

  // Returns the text with "<token>" in its gaps.
  std::string text() const;
  int protocol() const { return protocol_; }

  // Frames of one group other than 0 may arrive in any order, but those of one topic in their own order.
  int group = 0;
  std::string topic;

 private:
  struct Piece {
    std::string text;
    TokenRef token;
  };
  Frame& raw(const std::string& text);

  int protocol_;
  bool anything_ = false;
  std::vector<Piece> pieces_;
};

// Returns the length of the first reply in `bytes`, in bytes; 0 if the reply is incomplete.
size_t reply_length(std::string_view bytes);

}  // namespace holdfast::simulation
