// What the model expects a connection to hear: RESP as text, with gaps where the engine's choice of a
// fencing token stands. Written out byte by byte here, so that a mistake in the engine's own writer is
// found.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::simulation {

// A token the engine has chosen or will choose: known once a reply has shown it.
struct TokenBox {
  bool known = false;
  uint64_t value = 0;  // not known yet: 0 in the step that assigns it, later on what it is at least
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
  // Any one reply will do.
  Frame& anything() {
    anything_ = true;
    return *this;
  }

  // Whether `bytes` are this frame. Tokens not yet known are learnt from them, but only if all else agrees.
  bool matches(std::string_view bytes) const;

  // The text with "<token>" in its gaps.
  std::string text() const;
  int protocol() const { return protocol_; }

  // Frames of one group other than 0 may come in any order, but those of one topic in theirs.
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

// How many bytes the first reply in `bytes` has; 0 where they are no whole reply.
size_t reply_length(std::string_view bytes);

}  // namespace holdfast::simulation
