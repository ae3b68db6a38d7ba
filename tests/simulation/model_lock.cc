// The model's locks: admission, the places in the queue, and the four commands about one lock.
#include <algorithm>

#include "model.h"

namespace holdfast::simulation {
namespace {

constexpr std::string_view kSyntaxError = "ERR syntax error";
constexpr size_t kLongestNote = 256;

// A parsed LOCK request, or its error.
struct Parsed {
  Request request;
  std::string error;
};

bool read_number(const Args& args, size_t& at, int64_t lowest, int64_t highest, const std::string& name,
                 Parsed& out, int64_t& value) {
  if (at + 1 >= args.size()) {
    out.error = kSyntaxError;
    return false;
  }
  const std::optional<int64_t> number = parse_integer(args[++at]);
  if (!number || *number < lowest || *number > highest) {
    out.error = "ERR " + name + " must be an integer from " + std::to_string(lowest) + " to " +
                std::to_string(highest);
    return false;
  }
  value = *number;
  return true;
}

bool read_note(const Args& args, size_t& at, Parsed& out) {
  if (at + 1 >= args.size()) return out.error = kSyntaxError, false;
  out.request.note = args[++at];
  if (out.request.note->size() > kLongestNote) out.error = "ERR NOTE must be at most 256 bytes";
  return out.error.empty();
}

// Parses the option at `at` and moves `at` to its last word.
bool read_option(const Args& args, size_t& at, std::set<std::string>& seen, Parsed& out) {
  const std::string name = upper(args[at]);
  const std::string kind = name == "SHARED" || name == "LIMIT" ? "MODE" : name;
  if (!seen.insert(kind).second) {
    out.error = kSyntaxError;
    return false;
  }
  Request& request = out.request;
  int64_t number = 0;
  if (name == "SHARED") return request.capacity = kUnlimited, true;
  if (name == "SESSION") return request.session = true;
  if (name == "ASYNC") return request.async = true;
  if (name == "NOTE") return read_note(args, at, out);
  if (name == "WAIT")
    return request.waits = true, read_number(args, at, 0, kMaxTtlMs, name, out, request.wait_ms);
  if (name == "DELAY") return read_number(args, at, 0, kMaxTtlMs, name, out, request.delay_ms);
  if (name == "TOKEN" || name == "LIMIT") {
    const bool token = name == "TOKEN";
    const bool good =
        read_number(args, at, token ? 0 : 1, token ? kMaxTtlMs : 2147483647, name, out, number);
    if (token) request.hint = static_cast<uint64_t>(number);
    if (!token) request.capacity = static_cast<uint32_t>(number);
    return good;
  }
  out.error = kSyntaxError;
  return false;
}

Parsed parse_lock(const Args& args, const Limits& limits) {
  Parsed out;
  if (args.size() < 4) return out.error = "ERR wrong number of arguments for 'lock' command", out;
  out.request.owner = args[2];
  if (args[2].empty() || args[2].size() > limits.owner_bytes) {
    out.error = "ERR owner must be 1 to " + std::to_string(limits.owner_bytes) + " bytes";
    return out;
  }
  size_t ttl_at = 2;
  if (!read_number(args, ttl_at, 0, kMaxTtlMs, "ttl", out, out.request.ttl_ms)) return out;
  std::set<std::string> seen;
  for (size_t at = 4; at < args.size(); ++at) {
    if (!read_option(args, at, seen, out)) return out;
  }
  if (out.request.async && !out.request.waits) out.error = kSyntaxError;
  return out;
}

}  // namespace

Hold* Model::hold_of(KeyState& state, const std::string& owner) {
  for (Hold& hold : state.holds) {
    if (hold.owner == owner) return &hold;
  }
  return nullptr;
}

// The capacity rule, for a new owner and for a holder that requests another capacity.
bool Model::fits(const KeyState& state, const Request& request) {
  uint32_t others = 0;
  uint32_t smallest = request.capacity;
  for (const Hold& hold : state.holds) {
    if (hold.owner == request.owner) continue;
    ++others;
    smallest = std::min(smallest, hold.capacity);
  }
  return others + 1 <= smallest;
}

void Model::set_ttl(Hold& hold, int64_t ttl_ms) const {
  hold.ttl_ms = ttl_ms;
  hold.deadline = ttl_ms == 0 ? kNever : now_.mono + DurationMs{ttl_ms};
  hold.renewed = now_.mono;
}

TokenRef Model::token_of(const KeyId& id, Hold& hold) {
  if (!hold.token) hold.token = tokens_.granted({id}, 0);
  return hold.token;
}

// Makes the request's owner a holder, converts its hold or renews it. The caller has checked that it may.
TokenRef Model::take(const KeyId& id, const Request& request) {
  KeyState& state = keys_[id];
  Hold* hold = hold_of(state, request.owner);
  if (hold == nullptr || request.capacity < hold->capacity) {  // an upgrade is a grant like any other
    const std::string note = hold == nullptr ? "" : hold->note;
    std::erase_if(state.holds, [&](const Hold& h) { return h.owner == request.owner; });
    hold = &state.holds.emplace_back();
    hold->owner = request.owner;
    hold->note = note;
    hold->held_since = now_.mono;
    hold->token = tokens_.granted({id}, request.hint);
  }
  hold->capacity = request.capacity;
  hold->session = request.session;
  hold->session_end = kNever;
  hold->async = request.async;
  hold->delay_ms = request.delay_ms;
  hold->note = request.note.value_or(hold->note);
  hold->client = hold->listener = request.client;
  set_ttl(*hold, request.ttl_ms);
  return token_of(id, *hold);
}

void Model::touch(const KeyId& id) {
  if (std::find(touched_.begin(), touched_.end(), id) == touched_.end()) touched_.push_back(id);
}

// Whether the first waiter may be granted now.
bool Model::head_may_go(KeyState& state) {
  if (state.queue.empty() || delayed(state)) return false;
  const Request& request = state.queue[0];
  const Hold* hold = hold_of(state, request.owner);
  if (hold != nullptr && request.capacity > hold->capacity) return true;
  return fits(state, request);
}

// Returns the next waiter to grant: one that requests at most the rights of its owner's hold, at any
// place, or the first.
std::optional<size_t> Model::next_to_go(KeyState& state) {
  for (size_t place = 0; place < state.queue.size(); ++place) {
    const Hold* hold = hold_of(state, state.queue[place].owner);
    if (hold != nullptr && hold->capacity <= state.queue[place].capacity) return place;
  }
  return head_may_go(state) ? std::optional<size_t>(0) : std::nullopt;
}

// Grants all requests of a key's queue that can be granted.
void Model::serve(const KeyId& id) {
  KeyState& state = keys_[id];
  promote_upgrades(state);
  while (const std::optional<size_t> place = next_to_go(state)) {
    const Request request = state.queue[*place];
    state.queue.erase(state.queue.begin() + static_cast<std::ptrdiff_t>(*place));
    deliver(id, request);
    promote_upgrades(state);
  }
}

// Upgrades precede all other waiters, in FIFO order.
size_t Model::upgrade_place(const KeyState& state) {
  size_t place = 0;
  while (place < state.queue.size() && state.queue[place].upgrade) ++place;
  return place;
}

size_t Model::place_by_rank(const KeyState& state, uint64_t rank) {
  size_t place = upgrade_place(state);
  while (place < state.queue.size() && state.queue[place].rank < rank) ++place;
  return place;
}

// A waiter whose owner has become a holder in the meantime now requests an upgrade.
void Model::promote_upgrades(KeyState& state) {
  for (size_t at = 0; at < state.queue.size(); ++at) {
    const Hold* hold = hold_of(state, state.queue[at].owner);
    if (state.queue[at].upgrade || hold == nullptr || state.queue[at].capacity >= hold->capacity) continue;
    Request request = state.queue[at];
    request.upgrade = true;
    state.queue.erase(state.queue.begin() + static_cast<std::ptrdiff_t>(at));
    const size_t place = upgrade_place(state);
    state.queue.insert(state.queue.begin() + static_cast<std::ptrdiff_t>(place), request);
  }
}

void Model::deliver(const KeyId& id, const Request& request) {
  const TokenRef token = take(id, request);
  if (request.async) {
    Frame granted = push(request.client, "granted", id.second, request.owner, 5).token(token);
    return expect_output(request.client, granted, id.second);
  }
  Frame granted(clients_.at(request.client).protocol);
  wake(request.client, granted.array(2).bulk(request.owner).token(token), id.second);
}

bool Model::admitted(KeyState& state, const Request& request) const {
  const Hold* hold = hold_of(state, request.owner);
  if (hold == nullptr) return admits_new_requests(state) && fits(state, request);
  return request.capacity >= hold->capacity || (!delayed(state) && fits(state, request));
}

Model::Reply Model::cmd_lock(Caller& caller, const Args& args) {
  Parsed parsed = parse_lock(args, config_.limits);
  if (!parsed.error.empty()) return caller.error(parsed.error);
  Request& request = parsed.request;
  if (request.async && caller.client.protocol != 3) {
    return caller.error("ERR ASYNC needs RESP3: send HELLO 3 first");
  }
  const TokenBook::Lead lead = tokens_.lead(args[1], request.hint, now_.wall_us, false);
  undetermined_ = undetermined_ || lead == TokenBook::Lead::kUndetermined;
  if (lead == TokenBook::Lead::kTooFar) {
    return caller.error("ERR token is further ahead than max-token-lead allows");
  }
  request.returns = request.owner != "*";
  if (!request.returns) request.owner = hex(random_);
  request.client = caller.serial;
  const KeyId id = caller.key(args[1]);
  KeyState& state = keys_[id];
  if (admitted(state, request)) {
    empty_places_.erase({id, request.owner});
    touch(id);
    return caller.frame().array(2).bulk(request.owner).token(take(id, request));
  }
  if (!request.waits || in_exec_) return caller.frame().null_array();
  return wait(caller, id, request);
}

size_t Model::waiters() const {
  size_t n = 0;
  for (const auto& [id, state] : keys_) n += state.queue.size();
  return n;
}

Model::Reply Model::wait(Caller& caller, const KeyId& id, Request request) {
  KeyState& state = keys_[id];
  if (waiters() >= config_.limits.waiters) return caller.error("ERR too many waiters, see max-waiters");
  if (state.queue.size() >= config_.limits.waiters_per_key) {
    return caller.error("ERR too many waiters for this key, see max-waiters-per-key");
  }
  request.since = now_.mono;
  request.until = request.wait_ms == 0 ? kNever : now_.mono + DurationMs{request.wait_ms};
  request.upgrade = hold_of(state, request.owner) != nullptr;
  request.arrival = request.rank = ++last_rank_;
  const auto empty = empty_places_.find({id, request.owner});
  const bool again =
      !request.upgrade && empty != empty_places_.end() && !is_due(empty->second.until, now_.mono);
  if (again) request.rank = empty->second.rank;
  const size_t place = request.upgrade ? upgrade_place(state) : place_by_rank(state, request.rank);
  const auto at = state.queue.insert(state.queue.begin() + static_cast<std::ptrdiff_t>(place), request);
  if (deadlocked(request.owner)) {
    state.queue.erase(at);
    return caller.error(
        "DEADLOCK deadlock detected: the owner would wait for itself; release its locks and retry");
  }
  if (again) {
    empty_places_.erase(empty);
    touch(id);  // it may be the first one, and be admitted
  }
  if (request.async) return caller.frame().simple("QUEUED");
  caller.client.blocked = true;
  return std::nullopt;
}

Model::Reply Model::cmd_renew(Caller& caller, const Args& args) {
  KeyState& state = keys_[caller.key(args[1])];
  std::optional<int64_t> ttl_ms;
  if (args.size() > 3) {
    ttl_ms = parse_integer(args[3]);
    if (!ttl_ms || *ttl_ms < 0 || *ttl_ms > kMaxTtlMs) {
      return caller.error("ERR ttl must be an integer from 0 to 9007199254740991");
    }
  }
  if (state.holds.empty()) return caller.frame().integer(0);
  Hold* hold = hold_of(state, args[2]);
  if (hold == nullptr) return caller.frame().integer(-1);
  set_ttl(*hold, ttl_ms.value_or(hold->ttl_ms));
  hold->client = caller.serial;
  return caller.frame().integer(1);
}

Model::Reply Model::cmd_unlock(Caller& caller, const Args& args) {
  const KeyId id = caller.key(args[1]);
  KeyState& state = keys_[id];
  if (state.holds.empty()) return caller.frame().integer(0);
  if (hold_of(state, args[2]) == nullptr) return caller.frame().integer(-1);
  std::erase_if(state.holds, [&](const Hold& hold) { return hold.owner == args[2]; });
  touch(id);
  return caller.frame().integer(1);
}

Model::Reply Model::cmd_fence(Caller& caller, const Args& args) {
  const KeyId id = caller.key(args[1]);
  const std::optional<int64_t> token = parse_integer(args[3]);
  if (!token || *token < 0 || *token > kMaxTtlMs) {
    return caller.error("ERR TOKEN must be an integer from 0 to 9007199254740991");
  }
  const auto given = static_cast<uint64_t>(*token);
  const TokenBook::Lead lead = tokens_.lead(args[1], given, now_.wall_us, true);
  undetermined_ = undetermined_ || lead == TokenBook::Lead::kUndetermined;
  if (lead == TokenBook::Lead::kTooFar) {
    return caller.error("ERR token is further ahead than max-token-lead allows");
  }
  KeyState& state = keys_[id];
  if (state.holds.empty()) return caller.frame().integer(0);
  Hold* hold = hold_of(state, args[2]);
  if (hold == nullptr) return caller.frame().integer(-1);
  hold->token = tokens_.fenced(id, hold->token, given);
  return caller.frame().token(hold->token);
}

}  // namespace holdfast::simulation
