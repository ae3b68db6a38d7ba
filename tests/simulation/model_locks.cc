// The model's LOCKS command: the view of a key's holders and waiters, and forced changes to them.
#include <algorithm>
#include <tuple>

#include "model.h"

namespace holdfast::simulation {
namespace {

std::string_view mode_name(uint32_t capacity) {
  if (capacity == 1) return "exclusive";
  return capacity == kUnlimited ? "shared" : "limit";
}

int64_t limit_shown(uint32_t capacity) { return capacity == kUnlimited ? 0 : capacity; }

}  // namespace

Model::Reply Model::cmd_locks(Caller& caller, const Args& args) {
  const std::string name = upper(args[1]);
  const KeyId id = caller.key(args[2]);
  if (name == "OWNED") return owned(caller, args[2]);
  if (name == "BREAK") return locks_break(caller, id);
  if (name == "REVOKE") return locks_revoke(caller, id);
  if (name == "CHECK") {
    return locks_check(caller, id, static_cast<uint64_t>(parse_integer(args[3]).value()));
  }
  return info(caller, id);
}

// The fields that LOCKS INFO and LOCKS OWNED have in common.
void Model::write_hold(Frame& out, const KeyId& id, Hold& hold) {
  const int64_t left = hold.deadline == kNever ? -1 : (hold.deadline - now_.mono).count;
  out.bulk("token").token(token_of(id, hold));
  out.bulk("mode").bulk(mode_name(hold.capacity)).bulk("limit").integer(limit_shown(hold.capacity));
  out.bulk("ttl").integer(left).bulk("held").integer((now_.mono - hold.held_since).count);
  out.bulk("renewed").integer((now_.mono - hold.renewed).count);
  out.bulk("session").integer(hold.session ? 1 : 0).bulk("client");
  if (!clients_.contains(hold.client)) {
    out.null();
  } else {
    out.integer(static_cast<int64_t>(hold.client));
  }
  write_origin(out, hold.client, hold.note);
}

// No client of the model has a name.
void Model::write_origin(Frame& out, Serial client, const std::string& note) const {
  const auto addr = addrs_.find(client);
  out.bulk("addr").bulk(addr == addrs_.end() ? "" : addr->second).bulk("name").bulk("");
  out.bulk("note").bulk(note);
}

void Model::write_waiter(Frame& out, const Request& request) const {
  const int64_t left = request.until == kNever ? -1 : (request.until - now_.mono).count;
  out.map(10).bulk("owner").bulk(request.owner).bulk("mode").bulk(mode_name(request.capacity));
  out.bulk("limit").integer(limit_shown(request.capacity));
  out.bulk("waited").integer((now_.mono - request.since).count).bulk("left").integer(left);
  out.bulk("client").integer(static_cast<int64_t>(request.client));
  out.bulk("async").integer(request.async ? 1 : 0);
  write_origin(out, request.client, request.note.value_or(""));
}

// Sorts holders by token. This is the order of their grants unless FENCE has raised a token. Holders from
// the present transaction are the newest.
void Model::sort_holds(const KeyId& id) {
  std::vector<Hold>& holds = keys_[id].holds;
  for (Hold& hold : holds) token_of(id, hold);
  std::stable_sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) {
    const bool a_newest = a.token->value == 0;
    const bool b_newest = b.token->value == 0;
    if (a_newest || b_newest) return !a_newest && b_newest;
    return std::tie(a.token->value, a.owner) < std::tie(b.token->value, b.owner);
  });
}

Frame Model::info(Caller& caller, const KeyId& id) {
  KeyState& state = keys_[id];
  sort_holds(id);
  Frame out = caller.frame();
  if (state.holds.empty() && state.queue.empty() && !delayed(state)) return out.null_array();
  uint32_t smallest = kUnlimited;
  for (const Hold& hold : state.holds) smallest = std::min(smallest, hold.capacity);
  out.map(6).bulk("key").bulk(id.second).bulk("mode");
  out.bulk(state.holds.empty() ? "free" : mode_name(smallest)).bulk("limit").integer(limit_shown(smallest));
  out.bulk("delay").integer(delayed(state) ? (state.delay_until - now_.mono).count : 0);
  out.bulk("holders").array(state.holds.size());
  for (Hold& hold : state.holds) {
    out.map(12).bulk("owner").bulk(hold.owner);
    write_hold(out, id, hold);
  }
  out.bulk("waiters").array(state.queue.size());
  for (const Request& request : state.queue) write_waiter(out, request);
  return out;
}

// Keys are in the order of their names.
Frame Model::owned(Caller& caller, const std::string& owner) {
  size_t n = 0;
  Frame list = caller.frame();
  for (auto& [id, state] : keys_) {
    Hold* hold = id.first == caller.client.db ? hold_of(state, owner) : nullptr;
    if (hold == nullptr) continue;
    ++n;
    list.map(12).bulk("key").bulk(id.second);
    write_hold(list, id, *hold);
  }
  return caller.frame().array(n).append(list);
}

Model::Reply Model::locks_check(Caller& caller, const KeyId& id, uint64_t token) {
  for (const Hold& hold : keys_[id].holds) {
    undetermined_ = undetermined_ || (hold.token && !hold.token->known);  // granted in this step
    if (hold.token && hold.token->known && hold.token->value == token) return caller.frame().integer(1);
  }
  return caller.frame().integer(0);
}

Model::Reply Model::locks_break(Caller& caller, const KeyId& id) {
  const std::vector<Hold> holds = keys_[id].holds;
  group_ = ++last_group_;  // the order of holders is unspecified
  for (const Hold& hold : holds) end_hold(id, hold.owner, now_.mono);
  group_ = 0;
  touch(id);
  return caller.frame().integer(static_cast<int64_t>(holds.size()));
}

// The revoke applies to all holders, but only holders with a listener cause output here. The history has
// the token of each hold, so a hold without one gets it.
Model::Reply Model::locks_revoke(Caller& caller, const KeyId& id) {
  group_ = ++last_group_;
  for (Hold& hold : keys_[id].holds) {
    token_of(id, hold);
    if (!hold.async) continue;
    expect_output(hold.listener, push(hold.listener, "revoke", id.second, hold.owner, 4),
                  id.second + ", " + hold.owner);
  }
  group_ = 0;
  return caller.frame().integer(static_cast<int64_t>(keys_[id].holds.size()));
}

}  // namespace holdfast::simulation
