// The order of the effects, and the replies that wait for the disk.
#include "io/net/effect_flush.h"

#include <algorithm>
#include <utility>

#include "io/net/door.h"
#include "io/net/server.h"

namespace holdfast {
namespace {

// Effects cause effects: a reply wakes a client, whose request wakes the next. After so many rounds the
// server polls the sockets first.
constexpr int kMaxRounds = 16;

}  // namespace

void EffectFlush::handle_all() {
  int round = 0;
  do {
    handle();
  } while (++round < kMaxRounds && !effects_.empty());
}

void EffectFlush::release_held() {
  for (const auto [id, end] : held_.take_kept(*server_.store(), server_.now())) {
    if (Connection* connection = server_.connections().find(id)) connection->release(end);
    finish_if_closing(id);
  }
}

void EffectFlush::flush_held() {
  for (const auto [id, end] : held_.take_all()) {
    if (Connection* connection = server_.connections().find(id)) connection->flush();
    finish_if_closing(id);
  }
}

// A connection closes after its held replies have left.
void EffectFlush::finish_if_closing(ConnId id) {
  Connection* connection = server_.connections().find(id);
  if (connection != nullptr && !connection->held() && server_.engine().closing(id)) connection->finish();
}

// Handles the effects in the order that Effects requires. Skips connections that closed meanwhile. Replies
// leave when they are as safe as the settings require; a held reply holds all later ones of its connection.
void EffectFlush::handle() {
  Store* const store = server_.store();
  const Connections& connections = server_.connections();
  const Now& now = server_.iteration_time();
  if (store != nullptr) store->commit();
  const bool all_may = store == nullptr || store->may_reply(now);
  const bool others_may = all_may || store->may_reply_to_others();
  const Store::Promise promise = all_may ? Store::Promise{} : store->promise(now);
  std::swap(effects_, handled_);
  all_may ? flush_held() : release_held();
  for (const ConnId id : handled_.closes) {
    Connection* connection = connections.find(id);
    if (connection == nullptr) continue;
    if (!all_may && (!others_may || connection->held())) {
      connection->hold(held_, promise);
      continue;
    }
    connection->flush();
    if ((connection = connections.find(id)) != nullptr) connection->finish();
  }
  // The last first: what a request causes for other clients, as the grant of a waiter, precedes its reply.
  std::for_each(handled_.dirty.rbegin(), handled_.dirty.rend(), [&](ConnId id) {
    Connection* connection = connections.find(id);
    if (connection == nullptr) return;
    const bool may = all_may || (others_may && !connection->held());
    may ? connection->flush() : connection->hold(held_, promise);
  });
  for (const ConnId id : handled_.wakes) {
    if (Connection* connection = connections.find(id)) connection->resume();
  }
  handled_.clear();
  for (Door* door : server_.doors()) door->settle(now);
}

}  // namespace holdfast
