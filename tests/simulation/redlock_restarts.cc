// Servers that restart one after the other while one client keeps its hold.
#include <algorithm>
#include <charconv>

#include "redlock_world.h"

namespace holdfast::simulation {

using client::Redlock;
using client::Reply;

namespace {

constexpr const char* kKey = "k";

// Returns the text behind `field` in a reply: "$4\r\nleft\r\n:12\r\n".
std::string_view behind(std::string_view text, std::string_view field) {
  const size_t at = text.find(field);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + field.size());
}

}  // namespace

void RedlockWorld::schedule_leave(size_t server, int64_t after_us) {
  Event event;
  event.kind = Event::Kind::kLeave;
  event.server = server;
  schedule(now_us_ + after_us, std::move(event));
}

std::vector<std::string> RedlockWorld::holders_on(Server& server) {
  const ConnId probe = server.engine->open("127.0.0.1:1", "127.0.0.1:2", server_now(server));
  Effects fx;
  const std::string_view argv[] = {"LOCKS", "INFO", kKey};
  server.engine->apply(probe, argv, server_now(server), fx);
  const std::string all(server.engine->output(probe).view());
  server.engine->drop(probe, server_now(server), fx);
  std::vector<std::string> holders;
  std::string_view text(all);
  text = text.substr(0, text.find("$7\r\nwaiters"));
  while (!(text = behind(text, "$5\r\nowner\r\n$32\r\n")).empty()) holders.push_back(std::string(text));
  return holders;
}

// Returns the remaining ttl of the owner's hold on the server, in ms of the server's clock; nullopt
// without a hold.
std::optional<int64_t> RedlockWorld::left_on(Server& server, const std::string& owner) {
  for (const std::string& holder : holders_on(server)) {
    if (!holder.starts_with(owner)) continue;
    const std::string_view text = behind(holder, "ttl\r\n:");
    int64_t left = 0;
    std::from_chars(text.data(), text.data() + text.size(), left);
    return left;
  }
  return std::nullopt;
}

// Other clients that try to acquire can delay healing for a while. A server therefore leaves only when all
// other servers have the hold, and they must get it in time. With a single client the next server may
// leave at once.
bool RedlockWorld::may_leave(size_t server) {
  if (story_ == Story::kForgets) return may_forget(server);
  if (profile_.clients == 1) return true;
  const Session& keeper = sessions_[clients_[0].session];
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (i != server && !left_on(servers_[i], keeper.lock->owner())) return false;
  }
  return true;
}

// Whether a quorum of the other servers keeps each hold on this server for as long as its client has a
// valid hold. For a counted lock, which each server must know in full, all other servers must keep it.
bool RedlockWorld::may_forget(size_t server) {
  size_t known = 0;
  for (const Client& client : clients_) {
    if (!client.busy) continue;
    const Session& session = sessions_[client.session];
    if (session.lock->state() != Redlock::State::kHeld) continue;
    if (session.renewing) return false;
    const TimeMs now = client_now(session.client);
    const int64_t needed = (session.lock->valid_until() - now).count;
    size_t remember = 0;
    for (size_t i = 0; i < servers_.size(); ++i) {
      const auto left = left_on(servers_[i], session.lock->owner());
      if (i == server) known += left.has_value() ? 1 : 0;
      if (i != server && left && *left >= needed) ++remember;
    }
    if (remember < (profile_.limit != 0 ? profile_.servers - 1 : profile_.servers / 2 + 1)) return false;
  }
  return holders_on(servers_[server]).size() == known;
}

void RedlockWorld::leave(size_t index) {
  const Session& keeper = sessions_[clients_[0].session];
  if (keeper.lock->state() != Redlock::State::kHeld) return;
  if (!may_leave(index)) {
    if (now_us_ - returned_us_ > 20 * profile_.ttl_ms * 1000) return wrong("a server is not healed");
    return schedule_leave(index, 1000);
  }
  Server& server = servers_[index];
  const auto links = server.links;
  const auto waits = server.waits;
  const int64_t ttl_us = profile_.ttl_ms * 1000;
  if (story_ == Story::kForgets) {
    IssuedTokens before = server.engine->tokens().issued();
    before.largest += dice_.below(3);
    start_engine(server, before);
  } else {
    Effects fx;
    for (const auto& [name, link] : links) {
      if (link.id) server.engine->drop(link.id, server_now(server), fx);
    }
    server.links.clear();
    server.waits.clear();
  }
  server.away = true;
  for (const auto& [serial, link] : waits)
    deliver(index, link, link.second, {Reply::Kind::kLost, 0, "gone"});
  Event event;
  event.kind = Event::Kind::kReturn;
  event.server = index;
  const bool forgets = story_ == Story::kForgets;
  const int64_t away_us = forgets ? dice_.between(0, ttl_us / 8) : dice_.between(ttl_us, ttl_us * 2);
  schedule(now_us_ + away_us, std::move(event));
}

void RedlockWorld::come_back(size_t index) {
  servers_[index].away = false;
  returned_us_ = now_us_;
  const int64_t ttl_us = profile_.ttl_ms * 1000;
  if (index + 1 < servers_.size()) return schedule_leave(index + 1, dice_.between(0, ttl_us / 4));
  restarts_over_ = true;
}

// Renews as HoldCore does, until the last server is back.
void RedlockWorld::keep(Session& session) {
  const TimeMs now = client_now(session.client);
  session.act_us = now_us_ + profile_.ttl_ms * 1000;
  if (restarts_over_ || session.forgotten) return session.lock->release(now);
  session.lock->renew(now, {profile_.ttl_ms});
  session.renewing = true;
}

}  // namespace holdfast::simulation
