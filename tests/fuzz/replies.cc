// The client's handling of a server's bytes: replies, the same for every split into pieces, and a lock on
// three servers that send arbitrary replies.
#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "client/algorithm/redlock.h"
#include "client/transport/reply_reader.h"
#include "client/transport/transport.h"
#include "fuzz/targets.h"

namespace holdfast::fuzz {
namespace {

using client::Redlock;
using client::Reply;
using client::Value;

void put(std::string& out, const Value& value) {
  out.append(std::to_string(static_cast<int>(value.kind)))
      .append(" ")
      .append(std::to_string(value.integer));
  out.append(" ").append(std::to_string(value.text.size())).append(value.text).append("[");
  for (const Value& element : value.elements) put(out, element);
  out.append("]");
}

struct Heard {
  std::vector<Value> values;
  bool broken = false;
};

Heard read(std::string_view bytes, size_t piece) {
  Heard heard;
  client::ReplyReader reader;
  for (size_t at = 0; at < bytes.size(); at += std::min(piece, bytes.size() - at)) {
    reader.feed(bytes.substr(at, piece));
    while (std::optional<Value> value = reader.next()) heard.values.push_back(std::move(*value));
  }
  heard.broken = !reader.error().empty();
  return heard;
}

// Returns the next reply to one of the lock's requests: one of `said`, in order, or one that a real server
// could send.
Reply next_reply(Source& source, std::deque<Reply>& said, const client::Send& send) {
  const size_t kind = source.below(8);
  if (kind == 0 || said.empty()) return {Reply::Kind::kLost, 0, "lost"};
  if (kind == 1) return {Reply::Kind::kNull, 0, {}};
  if (kind == 2) return {Reply::Kind::kInteger, static_cast<int64_t>(source.number()), {}};
  if (kind <= 4 && send.argv.size() > 2)
    return {Reply::Kind::kGrant, static_cast<int64_t>(source.below(5)), send.argv[2]};
  const Reply reply = said.front();
  said.pop_front();
  return reply;
}

void play_lock(Source& source, std::deque<Reply> said) {
  client::RedlockConfig config;
  config.servers = 3;
  config.quorum = 2;
  config.ttl = {1000};
  config.server_timeout = {50};
  if (source.one_in(2)) config.wait = DurationMs{500};
  uint64_t drawn = 0;  // each attempt has its own owner
  Redlock lock(config, "k", {}, [&](uint64_t n) {
    return ((drawn = drawn * 6364136223846793005U + 1442695040888963407U) >> 33U) % n;
  });
  int64_t now_ms = 1000;
  const auto now = [&] { return TimeMs{now_ms}; };
  lock.acquire(now(), 1);
  std::vector<client::Send> open;
  for (int steps = 0; !lock.settled() && steps < 200; ++steps) {
    for (client::Send& send : lock.take_sends()) open.push_back(std::move(send));
    for (const uint64_t id : lock.take_ends())
      std::erase_if(open, [&](const auto& s) { return s.id == id; });
    lock.check_invariants();
    const size_t kind = source.below(8);
    if (kind == 1 && lock.state() == Redlock::State::kHeld) lock.renew(now(), {500});
    if (kind == 2 && lock.state() == Redlock::State::kHeld) lock.release(now());
    if (kind == 3) lock.on_freed(now(), 5);
    if (kind == 4 || open.empty()) {
      const std::optional<TimeMs> due = lock.next_deadline();
      if (!due && open.empty() && lock.state() != Redlock::State::kHeld) break;
      if (due) now_ms = std::max(now_ms, due->count);
      lock.on_time(now(), 9);
    } else {
      const size_t chosen = source.below(open.size());
      const client::Send send = open[chosen];
      open.erase(open.begin() + static_cast<ptrdiff_t>(chosen));
      lock.on_reply(send.id, next_reply(source, said, send), now(), 7);
    }
    lock.check_invariants();
  }
}

}  // namespace

void fuzz_replies(std::string_view bytes) {
  Source source(bytes);
  const size_t piece = 1 + source.below(20);
  const size_t size = source.byte();
  const std::string_view stream = source.take(size);
  const Heard whole = read(stream, SIZE_MAX);
  const Heard pieces = read(stream, piece);
  must(whole.broken == pieces.broken, "pieces break where the whole does");
  std::string a;
  std::string b;
  for (const Value& value : whole.values) put(a, value);
  for (const Value& value : pieces.values) put(b, value);
  must(a == b, "pieces give what the whole gives");
  std::deque<Reply> said;
  for (const Value& value : whole.values) said.push_back(client::reply_of(value));
  play_lock(source, std::move(said));
}

}  // namespace holdfast::fuzz
