// The client requests the map of slots when it first needs it, after MOVED, and after the loss of a node.
// It asks the known nodes one after the other. If all fail, it retries after a growing pause.
#include "client/transport/nodes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "client/transport/auth.h"
#include "core/base/parse.h"

namespace holdfast::client {
namespace {

using Kind = Value::Kind;

constexpr int kMaxRedirects = 16;
constexpr DurationMs kTryAgain{20};        // pause of a request while its slot moves
constexpr DurationMs kSlotsTimeout{1000};  // for each node
constexpr DurationMs kBetweenRefreshes{100};
const std::string kOther =
    "ERR this server is one of a Redis Cluster, and does not have the slot of the key: name it as "
    "redis-cluster://host:port";

std::string name_of(const std::string& host, int port) { return Address{host, port}.text(); }

Value late(DurationMs timeout) {
  return {Kind::kLost, 0, "no answer in " + std::to_string(timeout.count) + " ms", {}};
}

// Returns the n-th word, counted from 0; empty if there is none.
std::string word_of(const std::string& text, int n) {
  size_t begin = 0;
  for (; n > 0 && begin != std::string::npos; --n) begin = text.find(' ', begin + 1);
  if (begin == std::string::npos) return {};
  if (begin > 0) ++begin;
  return text.substr(begin, text.find(' ', begin) - begin);
}

}  // namespace

RedisNodes::RedisNodes(Loop& loop, const Address& address)
    : loop_(loop), address_(address), failure_{Kind::kNull, 0, {}, {}}, timer_(loop, [this] {
        on_time();
      }) {
  known_.push_back(&node(address.host, address.port));
  for (const Address& other : address.others) known_.push_back(&node(other.host, other.port));
  if (!address.cluster) owners_.fill(known_.front());
}

RedisNodes::Node& RedisNodes::node(const std::string& host, int port) {
  std::unique_ptr<Node>& found = nodes_[name_of(host, port)];
  if (!found) {
    Address at = address_;
    at.host = host;
    at.port = port;
    at.others.clear();
    found = std::make_unique<Node>(loop_, std::move(at));
  }
  return *found;
}

Address RedisNodes::listener() { return known_[listener_++ % known_.size()]->address; }

std::string RedisNodes::owner_of(int slot) const {
  const Node* owner = owners_[static_cast<size_t>(slot)];
  return owner == nullptr ? "" : owner->address.text();
}

std::optional<int> RedisNodes::next_owner(int after) const {
  std::set<const Node*> met;
  for (int slot = 0; slot < kHashSlots; ++slot) {
    const Node* owner = owners_[static_cast<size_t>(slot)];
    if (owner != nullptr && met.insert(owner).second && slot > after) return slot;
  }
  return std::nullopt;
}

void RedisNodes::ask(std::optional<int> slot, Argv argv, DurationMs timeout, Done done, bool apart) {
  const TimeMs deadline = Loop::now() + timeout;
  route(std::make_shared<Call>(Call{slot, std::move(argv), timeout, deadline, std::move(done), apart}));
}

void RedisNodes::ask_at(Spot spot, const Argv& argv, DurationMs timeout, const Link::Answered& done) {
  if (spot.pipeline->connection() != spot.connection)
    return done({Kind::kLost, 0, "the connection broke", {}});
  spot.pipeline->ask(argv, timeout, done);
}

void RedisNodes::route(const CallPtr& call) {
  if (!call->slot) return send(call, *known_[home_]);
  if (Node* owner = owners_[static_cast<size_t>(*call->slot)]; owner != nullptr) return send(call, *owner);
  park(call, kNever);
  refresh();
}

void RedisNodes::send(const CallPtr& call, Node& node, bool asking) {
  const DurationMs left{std::max<int64_t>((call->deadline - Loop::now()).count, 1)};
  Pipeline& pipeline = node.pipeline_of(*call);
  if (asking) pipeline.ask({"ASKING"}, left, [](const Value&) {});
  pipeline.ask(call->argv, left, [this, call, &node](const Value& value) { receive(call, node, value); });
}

void RedisNodes::receive(const CallPtr& call, Node& node, const Value& value) {
  if (value.kind == Kind::kLost && address_.cluster) {
    if (!call->slot) home_ = (home_ + 1) % known_.size();
    refresh();
  }
  if (value.kind == Kind::kError && follow(call, node, value.text)) return;
  const bool alien = !address_.cluster && value.kind == Kind::kError && value.text.starts_with("MOVED ");
  Pipeline& pipeline = node.pipeline_of(*call);
  const Value answer = alien ? Value{Kind::kError, 0, kOther, {}} : answer_of(value);
  call->done(answer, {&pipeline, pipeline.connection(), &node.address});
}

// Handles "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381" and "TRYAGAIN ...". Returns whether the
// request continues, or was answered because its time is over.
bool RedisNodes::follow(const CallPtr& call, Node& node, const std::string& error) {
  const bool again = error.starts_with("TRYAGAIN ");
  const bool moved = error.starts_with("MOVED ");
  if (!address_.cluster || !(again || moved || error.starts_with("ASK "))) return false;
  const TimeMs now = Loop::now();
  if (is_due(call->deadline, now)) {
    call->done(late(call->timeout), {});
    return true;
  }
  if (again) {
    call->redirects = 0;
    park(call, now + kTryAgain);
    return true;
  }
  if (++call->redirects > kMaxRedirects) return false;
  Node* next = node_in(error, node);
  if (next == nullptr) return false;
  if (moved && call->slot) owners_[static_cast<size_t>(*call->slot)] = next;
  if (moved) refresh();
  send(call, *next, !moved);
  return true;
}

// Returns the node that a redirection names; null if it is malformed. A node that does not know its own
// address leaves the host empty: then it is the host of `from`.
RedisNodes::Node* RedisNodes::node_in(const std::string& redirection, const Node& from) {
  const std::string where = word_of(redirection, 2);
  const size_t colon = where.rfind(':');
  if (colon == std::string::npos) return nullptr;
  const auto port = parse_int_in(std::string_view(where).substr(colon + 1), 1, 65535);
  if (!port) return nullptr;
  const std::string host = where.substr(0, colon);
  return &node(host.empty() ? from.address.host : host, static_cast<int>(*port));
}

void RedisNodes::park(const CallPtr& call, TimeMs at) {
  parked_.push_back({call, at});
  arm();
}

// --- the map of slots ---

void RedisNodes::refresh() {
  if (!address_.cluster || refreshing_ || !is_due(next_refresh_, Loop::now())) return;
  refreshing_ = true;
  tried_ = 0;
  ask_slots();
}

void RedisNodes::ask_slots() {
  Node& node = *known_[home_];
  node.pipeline.ask({"CLUSTER", "SLOTS"}, kSlotsTimeout,
                    [this, &node](const Value& value) { on_slots(node, value); });
}

void RedisNodes::on_slots(Node& node, const Value& value) {
  const TimeMs now = Loop::now();
  failure_ = answer_of(value);
  if (read_slots(node, value)) {
    failure_ = {Kind::kNull, 0, {}, {}};
    backoff_.succeed();
    next_refresh_ = now + kBetweenRefreshes;
  } else {
    home_ = (home_ + 1) % known_.size();
    if (++tried_ < known_.size()) return ask_slots();
    backoff_.fail(failure_.text, now);
    next_refresh_ = backoff_.until();
  }
  refreshing_ = false;
  settle_parked();
}

// Reads the map of slots: [[first slot, last slot, [host, port, ...], replicas...], ...]. Returns false if
// it is malformed.
bool RedisNodes::read_slots(Node& node, const Value& value) {
  if (value.kind != Kind::kArray) return false;
  std::array<Node*, kHashSlots> owners{};
  std::vector<Node*> known;
  for (const Value& row : value.elements) {
    if (row.elements.size() < 3) return false;
    for (size_t i = 2; i < row.elements.size(); ++i) {
      const auto& at = row.elements[i].elements;
      if (at.size() < 2 || at[1].integer < 1 || at[1].integer > 65535) return false;
      const std::string& host = at[0].text.empty() ? node.address.host : at[0].text;
      Node* found = &this->node(host, static_cast<int>(at[1].integer));
      if (std::ranges::find(known, found) == known.end()) known.push_back(found);
      if (i > 2) continue;
      const int64_t first = std::max<int64_t>(row.elements[0].integer, 0);
      const int64_t last = std::min<int64_t>(row.elements[1].integer, kHashSlots - 1);
      for (int64_t slot = first; slot <= last; ++slot) owners[static_cast<size_t>(slot)] = found;
    }
  }
  if (known.empty()) return false;
  for (Node* before : known_) {
    const bool first = before->address.text() == name_of(address_.host, address_.port);
    const bool seed = first || std::ranges::any_of(address_.others, [&](const Address& other) {
                        return other.text() == before->address.text();
                      });
    if (seed && std::ranges::find(known, before) == known.end()) known.push_back(before);
  }
  owners_ = owners;
  known_ = std::move(known);
  const auto home = std::ranges::find(known_, &node);
  home_ = home == known_.end() ? 0 : static_cast<size_t>(home - known_.begin());
  return true;
}

// --- requests that wait for the map ---

// Sends the parked requests that wait for the map, or answers them with the failure. A callback may destroy
// this object.
void RedisNodes::settle_parked() {
  const std::weak_ptr<const bool> life = life_;
  std::vector<Parked> all;
  for (Parked& one : parked_) {
    if (one.at == kNever) all.push_back(std::move(one));
  }
  std::erase_if(parked_, [](const Parked& one) { return one.call == nullptr; });
  const Value failure = failure_.kind != Kind::kNull
                            ? failure_
                            : Value{Kind::kError, 0, "CLUSTERDOWN no node has the slot of the key", {}};
  for (const Parked& one : all) {
    Node* owner = owners_[static_cast<size_t>(*one.call->slot)];
    if (owner != nullptr) {
      send(one.call, *owner);
    } else {
      one.call->done(failure, {});
      if (life.expired()) return;
    }
  }
  arm();
}

void RedisNodes::on_time() {
  const std::weak_ptr<const bool> life = life_;
  const TimeMs now = Loop::now();
  std::vector<Parked> due;
  for (Parked& one : parked_) {
    if (is_due(one.at, now) || is_due(one.call->deadline, now)) due.push_back(std::move(one));
  }
  std::erase_if(parked_, [](const Parked& one) { return one.call == nullptr; });
  for (const Parked& one : due) {
    if (is_due(one.call->deadline, now)) {
      one.call->done(late(one.call->timeout), {});
      if (life.expired()) return;
    } else {
      route(one.call);
    }
  }
  const bool needs_map = std::ranges::any_of(parked_, [](const Parked& one) { return one.at == kNever; });
  if (needs_map) refresh();
  arm();
}

void RedisNodes::arm() {
  TimeMs at = kNever;
  for (const Parked& one : parked_) {
    at = std::min({at, one.at, one.call->deadline});
    if (one.at == kNever && !refreshing_) at = std::min(at, std::max(next_refresh_, Loop::now()));
  }
  timer_.set(at);
}

}  // namespace holdfast::client
