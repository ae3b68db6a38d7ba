#include "ticket_network.h"

#include <algorithm>

namespace holdfast::simulation::ticket {

namespace {

constexpr int64_t kFirstRepeatUs = 200'000;
constexpr int64_t kFirstHandshakeUs = 1'000'000;
constexpr int64_t kLongestRepeatUs = 120'000'000;
constexpr int64_t kJitterUs = 200;

Connection::Direction& direction(Connection& c, Way way) { return way == Way::kThere ? c.there : c.back; }

}  // namespace

bool Network::passes(const Connection& c, Way way) {
  ++packets_;
  if (links_.is_cut(c.client, c.server, way)) return false;
  return links_.loss <= 0 || static_cast<double>(dice_.below(1'000'000)) >= links_.loss * 1e6;
}

int64_t Network::delay(const Connection& c) {
  return links_.delay_us(c.client, c.server) + dice_.between(0, kJitterUs);
}

ConnectionPtr Network::connect(size_t client, size_t server, uint64_t number) {
  auto c = std::make_shared<Connection>();
  c->client = client;
  c->server = server;
  c->number = number;
  shake_hands(c, kFirstHandshakeUs);
  return c;
}

// A machine without a listening process refuses.
void Network::shake_hands(const ConnectionPtr& c, int64_t repeat_us) {
  if (c->client_closed) return;
  if (!passes(*c, Way::kThere) || !passes(*c, Way::kBack)) {
    events_.after(repeat_us, [=, this] { shake_hands(c, std::min(repeat_us * 2, kLongestRepeatUs)); });
    return;
  }
  const int64_t there_us = delay(*c);
  const int64_t back_us = delay(*c);
  events_.after(there_us, [=, this] {
    const bool listens = peers_.listens(c->server);
    events_.after(back_us, [=, this] {
      if (c->client_closed) return;
      if (!listens) return peers_.refused(c);
      c->open = true;
      peers_.opened(c);
      transmit(c, Way::kThere);
    });
  });
}

void Network::send(const ConnectionPtr& c, Way way, Connection::Packet packet) {
  direction(*c, way).waiting.push_back(std::move(packet));
  transmit(c, way);
}

void Network::close(const ConnectionPtr& c, Way way) {
  bool& closed = way == Way::kThere ? c->client_closed : c->server_closed;
  if (std::exchange(closed, true) || !c->open) return;
  Connection::Packet packet;
  packet.end = true;
  send(c, way, std::move(packet));
}

// Sends what waits, up to the first packet that is lost.
void Network::transmit(const ConnectionPtr& c, Way way, bool first_passed) {
  Connection::Direction& d = direction(*c, way);
  if (!c->open || d.stopped) return;
  for (bool passed = first_passed; !d.waiting.empty(); passed = false) {
    if (!passed && !passes(*c, way)) {
      d.stopped = true;
      d.repeat_us = kFirstRepeatUs;
      events_.after(d.repeat_us, [=, this] { repeat(c, way); });
      return;
    }
    const int64_t arrival_us = std::max(events_.now_us() + delay(*c), d.last_arrival_us);
    d.last_arrival_us = arrival_us;
    auto packet = std::make_shared<Connection::Packet>(std::move(d.waiting.front()));
    d.waiting.pop_front();
    events_.at(arrival_us, [=, this] {
      const auto& receive = way == Way::kThere ? peers_.to_server : peers_.to_client;
      receive(c, std::move(*packet));
    });
  }
}

void Network::repeat(const ConnectionPtr& c, Way way) {
  Connection::Direction& d = direction(*c, way);
  if (passes(*c, way)) {
    d.stopped = false;
    return transmit(c, way, true);
  }
  d.repeat_us = std::min(d.repeat_us * 2, kLongestRepeatUs);
  events_.after(d.repeat_us, [=, this] { repeat(c, way); });
}

}  // namespace holdfast::simulation::ticket
