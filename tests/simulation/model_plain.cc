// The model's plain Redis commands: strings, expiry and the keyspace, where locks are ordinary entries.
#include <algorithm>

#include "model.h"

namespace holdfast::simulation {
namespace {

constexpr std::string_view kWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value";

struct SetOptions {
  bool nx = false;
  bool xx = false;
  bool get = false;
  bool keepttl = false;
  std::optional<std::string> ifeq;
  int64_t ttl_ms = 0;
};

SetOptions parse_set(const Args& args) {
  SetOptions out;
  for (size_t at = 3; at < args.size(); ++at) {
    const std::string name = upper(args[at]);
    if (name == "NX") out.nx = true;
    if (name == "XX") out.xx = true;
    if (name == "GET") out.get = true;
    if (name == "KEEPTTL") out.keepttl = true;
    if (name == "IFEQ") out.ifeq = args[++at];
    if (name == "PX") out.ttl_ms = parse_integer(args[++at]).value();
  }
  return out;
}

// A lock with several holders exists until its last hold ends.
TimeMs last_deadline(const KeyState& state) {
  TimeMs last{-1};
  for (const Hold& hold : state.holds) last = std::max(last, hold.deadline);
  return last;
}

int64_t ms_to_live(const KeyState& state, TimeMs now) {
  if (state.holds.empty()) return -2;
  return last_deadline(state) == kNever ? -1 : (last_deadline(state) - now).count;
}

}  // namespace

bool Model::exists(const KeyId& id) const {
  const auto found = keys_.find(id);
  return found != keys_.end() && !found->second.holds.empty();
}

bool Model::is_lock(const KeyState& state) {
  return state.holds.size() > 1 || (state.holds.size() == 1 && state.holds[0].capacity != 1);
}

// Writes a string. The same value is the same holder: it keeps its token and all attributes except the
// ttl.
void Model::write(const KeyId& id, const std::string& value, std::optional<int64_t> ttl_ms, Serial client) {
  KeyState& state = keys_[id];
  touch(id);
  if (!is_lock(state) && !state.holds.empty() && state.holds[0].owner == value) {
    state.holds[0].client = client;
    if (ttl_ms) set_ttl(state.holds[0], *ttl_ms);
    return;
  }
  Hold fresh;
  fresh.owner = value;
  fresh.client = client;
  fresh.held_since = now_.mono;
  if (is_lock(state) && !ttl_ms) {  // KEEPTTL: the remaining time of the longest hold
    set_ttl(fresh, last_deadline(state) == kNever ? 0 : (last_deadline(state) - now_.mono).count);
  } else if (!state.holds.empty() && !ttl_ms) {
    fresh.deadline = state.holds[0].deadline;
    fresh.ttl_ms = state.holds[0].ttl_ms;
    fresh.renewed = state.holds[0].renewed;
  } else {
    set_ttl(fresh, ttl_ms.value_or(0));
  }
  lose_holds(id);
  state.holds.push_back(fresh);
}

Model::Reply Model::cmd_set(Caller& caller, const Args& args) {
  const SetOptions options = parse_set(args);
  const KeyId id = caller.key(args[1]);
  KeyState& state = keys_[id];
  if (is_lock(state) && (options.get || options.ifeq)) return caller.error(kWrongType);
  const bool there = exists(id);
  Frame old = caller.frame().null();
  if (there) old = caller.frame().bulk(state.holds[0].owner);
  const bool refused = (options.nx && (there || !admits_new_requests(state))) || (options.xx && !there) ||
                       (options.ifeq && (!there || state.holds[0].owner != *options.ifeq));
  if (!refused) {
    std::optional<int64_t> ttl_ms = options.ttl_ms;
    if (options.keepttl) ttl_ms.reset();
    write(id, args[2], ttl_ms, caller.serial);
  }
  if (options.get) return old;
  if (refused) return caller.frame().null();
  return caller.frame().simple("OK");
}

Model::Reply Model::cmd_get(Caller& caller, const Args& args) {
  const KeyState& state = keys_[caller.key(args[1])];
  if (is_lock(state)) return caller.error(kWrongType);
  if (state.holds.empty()) return caller.frame().null();
  return caller.frame().bulk(state.holds[0].owner);
}

Model::Reply Model::cmd_del(Caller& caller, const Args& args) {
  int64_t n = 0;
  for (size_t at = 1; at < args.size(); ++at) {
    if (lose_holds(caller.key(args[at]))) ++n;
  }
  return caller.frame().integer(n);
}

Model::Reply Model::cmd_exists(Caller& caller, const Args& args) {
  int64_t n = 0;
  for (size_t at = 1; at < args.size(); ++at) {
    if (exists(caller.key(args[at]))) ++n;
  }
  return caller.frame().integer(n);
}

Model::Reply Model::cmd_type(Caller& caller, const Args& args) {
  const KeyId id = caller.key(args[1]);
  if (!exists(id)) return caller.frame().simple("none");
  return caller.frame().simple(is_lock(keys_[id]) ? "lock" : "string");
}

Model::Reply Model::expire(Caller& caller, const Args& args, int64_t unit_ms) {
  const KeyId id = caller.key(args[1]);
  const std::optional<int64_t> ttl = parse_integer(args[2]);
  if (!ttl) return caller.error("ERR value is not an integer or out of range");
  if (!exists(id)) return caller.frame().integer(0);
  if (*ttl <= 0) {
    lose_holds(id);
  } else {
    for (Hold& hold : keys_[id].holds) set_ttl(hold, *ttl * unit_ms);
    if (!is_lock(keys_[id])) keys_[id].holds[0].client = caller.serial;
  }
  return caller.frame().integer(1);
}

Model::Reply Model::cmd_persist(Caller& caller, const Args& args) {
  KeyState& state = keys_[caller.key(args[1])];
  const bool timed = !state.holds.empty() && last_deadline(state) != kNever;
  if (!timed) return caller.frame().integer(0);
  for (Hold& hold : state.holds) set_ttl(hold, 0);
  if (!is_lock(state)) state.holds[0].client = caller.serial;
  return caller.frame().integer(1);
}

Model::Reply Model::cmd_pttl(Caller& caller, const Args& args) {
  return caller.frame().integer(ms_to_live(keys_[caller.key(args[1])], now_.mono));
}

Model::Reply Model::cmd_ttl(Caller& caller, const Args& args) {
  const int64_t ms = ms_to_live(keys_[caller.key(args[1])], now_.mono);
  return caller.frame().integer(ms < 0 ? ms : (ms + 500) / 1000);
}

Model::Reply Model::cmd_dbsize(Caller& caller, const Args&) {
  const auto n = std::count_if(keys_.begin(), keys_.end(), [&](const auto& entry) {
    return entry.first.first == caller.client.db && !entry.second.holds.empty();
  });
  return caller.frame().integer(n);
}

Model::Reply Model::flush(Caller& caller, int db) {
  group_ = ++last_group_;
  for (const auto& [id, state] : keys_) {
    if (db < 0 || id.first == db) lose_holds(id);
  }
  return caller.frame().simple("OK");
}

Model::Reply Model::cmd_flushall(Caller& caller, const Args&) { return flush(caller, -1); }
Model::Reply Model::cmd_flushdb(Caller& caller, const Args&) { return flush(caller, caller.client.db); }

}  // namespace holdfast::simulation
