// The messages between clients and servers: delays, losses, and requests that arrive twice or late. The
// fate of a message depends on the seed and on its own name, not on other messages.
#include <algorithm>
#include <charconv>

#include "client/base/server_error.h"
#include "redlock_world.h"

namespace holdfast::simulation::redlock {

using client::Redlock;
using client::Reply;

namespace {

constexpr int64_t kLossReportUs = 400000;  // after this time a client learns that a reply was lost

Reply parsed(std::string_view text) {
  const auto number = [](std::string_view digits) {
    int64_t n = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), n);
    return n;
  };
  if (text.starts_with("+"))
    return {Reply::Kind::kText, 0, std::string(text.substr(1, text.find('\r') - 1))};
  if (text.starts_with("*2")) return {Reply::Kind::kGrant, number(text.substr(text.rfind(':') + 1)), ""};
  if (text.starts_with("*-1")) return {Reply::Kind::kNull, 0, ""};
  if (text.starts_with(":")) return {Reply::Kind::kInteger, number(text.substr(1)), ""};
  const std::string error(text.substr(1, text.find('\r') - 1));
  return {Reply::Kind::kError, 0, error, client::server_error_of(std::string_view(error))};
}

std::string text_of(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::kGrant:
      return "granted, token " + std::to_string(reply.number);
    case Reply::Kind::kNull:
      return "not granted";
    case Reply::Kind::kInteger:
      return std::to_string(reply.number);
    default:
      return reply.text;
  }
}

std::string text_of(const std::vector<std::string>& argv) {
  std::string out;
  for (const std::string& arg : argv)
    out += (out.empty() ? "" : " ") + (arg.size() == 32 ? arg.substr(0, 4) : arg);
  return out;
}

bool chance(QuickDice& dice, uint64_t one_in) { return one_in != 0 && dice.one_in(one_in); }

}  // namespace

QuickDice World::fate_of(size_t session, size_t server, uint64_t id, uint64_t what) const {
  const uint64_t step = sessions_[session].step->id;
  return QuickDice(((world_.seed * 31 + step) * 1000003 + id) * 64 + server * 4 + what);
}

// Sends the requests of the session, and judges its new state.
void World::carry(size_t index) {
  Session& session = sessions_[index];
  session.lock->check_invariants();
  if (session.owner != session.lock->owner()) change_owner(session);
  if (session.lock->state() == Redlock::State::kFencing) session.fenced = true;
  const bool healing = session.lock->state() == Redlock::State::kHeld;
  for (client::Send& s : session.lock->take_sends()) {
    const bool heals = healing && s.argv[0] == "LOCK";
    if (heals) ++tally_.healed;
    if (heals && world_.flaw == Flaw::kNoHealing) continue;
    send(index, std::move(s));
  }
  for (const uint64_t id : session.lock->take_ends()) end_wait(index, id);
  judge(index);
}

void World::change_owner(Session& session) {
  session.owner = session.lock->owner();
  session.proofs.assign(servers_.size(), {});
}

void World::send(size_t index, client::Send&& send) {
  Session& session = sessions_[index];
  QuickDice fate = fate_of(index, send.server, send.id, 0);
  Event event;
  event.kind = Event::Kind::kRequest;
  event.server = send.server;
  event.session = index;
  event.id = send.id;
  event.waits = send.waits;
  event.argv = std::move(send.argv);
  tell([&] {
    return name_of(session) + " > server " + std::to_string(send.server) + ": " + text_of(event.argv);
  });
  event.link = send.waits ? send.id : 0;
  Server::Link& link = servers_[send.server].links[{index, event.link}];
  if (chance(fate, world_.lost_one_in) || is_cut(session.step->client, send.server)) {
    event.kind = Event::Kind::kReply;
    event.reply = {Reply::Kind::kLost, 0, "the request was lost"};
    return schedule(now_us_ + kLossReportUs, std::move(event));
  }
  link.asked_us = std::max(now_us_ + delay(fate), link.asked_us);
  const bool locks = !send.waits && event.argv[0] == "LOCK";
  if (locks && chance(fate, world_.resent_one_in))
    schedule(link.asked_us + fate.between(0, 2 * ttl_us()), event);  // overtaken
  // A request on a broken connection may arrive after requests on the next connection.
  const bool overtaken = locks && chance(fate, world_.overtaken_one_in);
  schedule(link.asked_us + (overtaken ? fate.between(0, 2 * ttl_us()) : 0), std::move(event));
}

// Closes the connection of a wait. Behind a cut the server notices it at the end of the cut.
void World::end_wait(size_t index, uint64_t id) {
  const auto server = std::find_if(servers_.begin(), servers_.end(), [&](const Server& s) {
    return s.links.contains({index, id});
  });
  if (server == servers_.end()) return;  // the server stopped
  close_later(index, static_cast<size_t>(server - servers_.begin()), id);
}

void World::close_later(size_t index, size_t server, uint64_t link) {
  Event event;
  event.kind = Event::Kind::kEnd;
  event.session = index;
  event.id = link;
  event.server = server;
  QuickDice fate = fate_of(index, server, link, 1);
  const int64_t open_us = std::max(now_us_, cut_us_[sessions_[index].step->client][server]);
  const int64_t asked_us = servers_[server].links[{index, link}].asked_us;
  schedule(std::max(open_us + delay(fate), asked_us), std::move(event));
}

void World::request(const Event& event) {
  Server& server = servers_[event.server];
  const Server::LinkName name{event.session, event.link};
  if (!server.up())
    return deliver(event.server, name, event.id, {Reply::Kind::kLost, 0, "the server is down"});
  Server::Link& link = server.links[name];
  if (!link.id) link.id = server.engine().open("127.0.0.1:1", "127.0.0.1:2", server.now(now_us_));
  Effects fx;
  const std::string output = server.apply(link.id, event.argv, now_us_, fx);
  if (output.empty() && event.waits) server.waits[link.id.serial] = name;
  if (!output.empty()) {
    Reply answer = parsed(output);
    if (!event.waits) record(event.server, event, answer);
    tell([&] {
      return "server " + std::to_string(event.server) + ": " + text_of(event.argv) + ": " + text_of(answer);
    });
    deliver(event.server, name, event.id, std::move(answer));
  }
  collect(event.server, fx);
}

// Delivers the output for waiters.
void World::collect(size_t index, Effects& fx) {
  Server& server = servers_[index];
  for (const ConnId id : fx.dirty) {
    const auto wait = server.waits.find(id.serial);
    if (wait == server.waits.end()) continue;
    const std::string output = server.taken(id);
    if (output.empty()) continue;
    const Server::LinkName name = wait->second;
    server.waits.erase(wait);
    Reply answer = parsed(output);
    tell([&] {
      return "server " + std::to_string(index) + ": the wait of " + name_of(sessions_[name.first]) +
             " ends: " + text_of(answer);
    });
    deliver(index, name, name.second, std::move(answer));
  }
}

void World::deliver(size_t index, Server::LinkName name, uint64_t id, Reply reply) {
  QuickDice fate = fate_of(name.first, index, id, 2);
  Event event;
  event.kind = Event::Kind::kReply;
  event.server = index;
  event.session = name.first;
  event.id = id;
  Session& session = sessions_[name.first];
  const bool lost = chance(fate, world_.lost_one_in) || is_cut(session.step->client, index);
  if (lost) {
    event.reply = {Reply::Kind::kLost, 0, "the reply was lost"};
    return schedule(now_us_ + kLossReportUs, std::move(event));
  }
  Server::Link& link = servers_[index].links[name];
  link.received_us = std::max(now_us_ + delay(fate), link.received_us);
  event.reply = std::move(reply);
  schedule(link.received_us, std::move(event));
}

void World::reply(const Event& event) {
  Session& session = sessions_[event.session];
  const size_t client = session.step->client;
  if (now_us_ < clients_[client].stalled_us) return schedule(clients_[client].stalled_us, event);
  tell([&] {
    return name_of(session) + " < server " + std::to_string(event.server) + ": " + text_of(event.reply);
  });
  session.lock->on_reply(event.id, event.reply, client_now(client), wall_us(client));
  if (session.lock->state() == Redlock::State::kPausing && session.dice.one_in(8))
    session.lock->on_freed(client_now(client), wall_us(client));
  carry(event.session);
}

void World::close(const Event& event) {
  Server& server = servers_[event.server];
  const auto link = server.links.find({event.session, event.id});
  if (link == server.links.end()) return;
  if (!link->second.id) return void(server.links.erase(link));  // the request never arrived
  Effects fx;
  server.waits.erase(link->second.id.serial);
  server.engine().drop(link->second.id, server.now(now_us_), fx);
  server.collect(now_us_);
  server.links.erase(link);
  collect(event.server, fx);
}

// Records what the server has promised with this reply, for the judge.
void World::record(size_t index, const Event& event, const Reply& reply) {
  Session& session = sessions_[event.session];
  if (event.argv[2] != session.owner) return;  // of an earlier attempt
  Proof& proof = session.proofs[index];
  const bool locked = event.argv[0] == "LOCK" && reply.kind == Reply::Kind::kGrant;
  const bool renewed = event.argv[0] == "RENEW" && reply.kind == Reply::Kind::kInteger && reply.number == 1;
  // Before its LOCK has arrived, the hold is that of its wait, which ends with the connection of the wait.
  if (locked || (renewed && proof.given_us != 0)) {
    const Server& server = servers_[index];
    proof.holds_ms = server.clock.at(now_us_) + std::stoll(event.argv[3]);
    proof.refuses_ms = proof.holds_ms;
    proof.given_us = server.clock.when(proof.holds_ms);
  }
  if (event.argv[0] == "UNLOCK" && reply.kind == Reply::Kind::kInteger && reply.number == 1) proof = {};
}

}  // namespace holdfast::simulation::redlock
