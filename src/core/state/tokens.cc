// The counters of single keys.
#include "core/state/tokens.h"

#include <new>

#include "core/base/hash.h"

namespace holdfast {

namespace {

// One minute in microseconds. With this reserve, a key whose tokens grow one by one needs few writes to the
// disk.
constexpr uint64_t kReserve = 60'000'000;

}  // namespace

// calloc() takes so much memory from the system as pages that are zero and exist only after a write.
Tokens::Tokens(uint64_t floor)
    : counters_(static_cast<uint64_t*>(std::calloc(kStripes, sizeof(uint64_t)))),
      floor_(floor),
      largest_(floor) {
  if (counters_ == nullptr) throw std::bad_alloc();
}

Token Tokens::next_ahead(const Key& key, uint64_t hint, uint64_t limit) {
  const uint64_t after = last(key) + 1;
  const Token token{hint > after && fits(key, hint, limit) ? hint : after};
  raise(key, token, limit);
  return token;
}

void Tokens::raise(const Key& key, Token token, uint64_t limit) {
  if (token.value <= stripe(key)) return;
  const auto own = ahead_.find(key.bytes);
  if (own != ahead_.end() && std::max(token.value, own->second.token) <= limit) {
    // The clock has caught up: the stripe's counter suffices again.
    raise_stripe(key, std::max(token.value, own->second.token));
    ahead_.erase(own);
    return;
  }
  if (own == ahead_.end() && (is_near(token.value, limit) || !make_room(key, limit)))
    return raise_stripe(key, token.value);
  Own& mine = own != ahead_.end() ? own->second : ahead_[std::string(key.bytes)];
  mine.token = std::max(mine.token, token.value);
  if (mine.token <= mine.reserve) return;
  mine.reserve = std::min(mine.token + kReserve, kMaxToken);
  ++ahead_serial_;
}

void Tokens::raise_stripe(const Key& key, uint64_t token) {
  uint64_t& counter = stripe(key);
  counter = std::max(counter, token);
  largest_ = std::max(largest_, counter);
}

bool Tokens::fits(const Key& key, uint64_t token, uint64_t limit) {
  return is_near(token, limit) || make_room(key, limit);
}

// Whether the key has or can have a counter of its own. Removes own counters that the clock has caught up
// with.
bool Tokens::make_room(const Key& key, uint64_t limit) {
  if (ahead_.contains(key.bytes)) return true;
  if (key.bytes.size() > kMaxAheadKeyBytes) return false;
  if (ahead_.size() < kMaxAhead) return true;
  uint64_t caught_up = 0;
  absl::erase_if(ahead_, [&](const auto& own) {
    if (own.second.token > limit) return false;
    caught_up = std::max(caught_up, own.second.token);
    return true;
  });
  if (caught_up > 0) raise_all({caught_up});
  return ahead_.size() < kMaxAhead;
}

void Tokens::raise_all(Token token) {
  floor_ = std::max(floor_, token.value);
  largest_ = std::max(largest_, token.value);
}

IssuedTokens Tokens::issued(bool exact) const {
  IssuedTokens out{largest_, {}, ahead_serial_};
  for (const auto& [key, own] : ahead_) out.ahead.push_back({key, exact ? own.token : own.reserve});
  return out;
}

}  // namespace holdfast
