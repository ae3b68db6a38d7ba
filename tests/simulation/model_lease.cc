// The model's leases: several keys, written together with a ttl, and confirmed or cancelled together.
#include <algorithm>

#include "model.h"

namespace holdfast::simulation {

Model::Reply Model::cmd_lease(Caller& caller, const Args& args) {
  const std::string name = upper(args[1]);
  if (name == "GRANT") return lease_grant(caller, args);
  if (name == "CONFIRM") return lease_confirm(caller, args[2]);
  if (name == "CANCEL") return lease_cancel(caller, args[2]);
  if (name == "INFO") return lease_info(caller, args[2]);
  std::optional<int64_t> ttl_ms;
  if (args.size() > 3) {
    ttl_ms = parse_integer(args[3]);
    if (!ttl_ms || *ttl_ms < 1 || *ttl_ms > kMaxTtlMs) {
      return caller.error("ERR ttl must be an integer from 1 to 9007199254740991");
    }
  }
  return lease_renew(caller, args[2], ttl_ms);
}

Model::Reply Model::lease_grant(Caller& caller, const Args& args) {
  const std::optional<int64_t> ttl_ms = parse_integer(args[3]);
  if (!ttl_ms || *ttl_ms < 1 || *ttl_ms > kMaxTtlMs) {
    return caller.error("ERR ttl must be an integer from 1 to 9007199254740991");
  }
  Lease lease;
  std::vector<std::string> collisions;
  for (size_t at = 4; at < args.size(); at += 2) {
    if (std::find(lease.keys.begin(), lease.keys.end(), args[at]) != lease.keys.end()) {
      return caller.error("ERR a key is given twice");
    }
    lease.keys.push_back(args[at]);
    const KeyId key = caller.key(args[at]);
    if (exists(key) || !admits_new_requests(keys_[key])) collisions.push_back(args[at]);
  }
  const std::string id = args[2] == "*" ? hex(random_) : args[2];
  const auto same = leases_.find(id);
  if (same != leases_.end() && same->second.state == Lease::State::kGranted) {
    return caller.error("ERR lease id is in use");
  }
  Frame out = caller.frame().array(2);
  if (!collisions.empty()) {
    out.null().array(collisions.size());
    for (const std::string& key : collisions) out.bulk(key);
    return out;
  }
  lease.serial = ++last_lease_;
  lease.armed = ++last_armed_;
  lease.db = caller.client.db;
  lease.ttl_ms = *ttl_ms;
  lease.deadline = now_.mono + DurationMs{*ttl_ms};
  std::vector<KeyId> ids;
  for (const std::string& key : lease.keys) ids.push_back(caller.key(key));
  undetermined_ = undetermined_ || tokens_.lead(ids, now_.wall_us) == TokenBook::Lead::kUndetermined;
  lease.token = tokens_.granted(ids, 0);
  for (size_t at = 4; at < args.size(); at += 2) {
    const KeyId key = caller.key(args[at]);
    write(key, args[at + 1], *ttl_ms, caller.serial);
    keys_[key].holds[0].token = lease.token;
    keys_[key].holds[0].lease = id;
  }
  leases_[id] = lease;
  return out.bulk(id).token(lease.token);
}

void Model::renew_document(const KeyId& id, int64_t ttl_ms, Serial client) {
  Hold& hold = keys_[id].holds[0];
  set_ttl(hold, ttl_ms);
  hold.client = client;
}

// A document that became a lock of another kind no longer belongs to the lease.
bool Model::owns(const std::string& id, const KeyState& state) {
  return !state.holds.empty() && !is_lock(state) && state.holds[0].lease == id;
}

// Whether the lease still owns all its keys.
bool Model::whole(const std::string& id) const {
  const Lease& lease = leases_.at(id);
  return std::all_of(lease.keys.begin(), lease.keys.end(), [&](const std::string& key) {
    const auto found = keys_.find({lease.db, key});
    return found != keys_.end() && owns(id, found->second);
  });
}

// The lease is lost: its remaining documents end, without a request of its owner.
void Model::lose_lease(const std::string& id, TimeMs moment) {
  const Lease lease = leases_.at(id);
  finish_lease(id, Lease::State::kExpired);
  for (const std::string& key : lease.keys) {
    const KeyId key_id{lease.db, key};
    const KeyState& state = keys_[key_id];
    if (!owns(id, state)) continue;
    end_hold(key_id, state.holds[0].owner, moment);
    touch(key_id);
  }
}

// Ends the lease. The model keeps the outcomes of only the newest ended leases.
void Model::finish_lease(const std::string& id, Lease::State state) {
  Lease& lease = leases_.at(id);
  lease.state = state;
  lease.keys.clear();
  ended_leases_.emplace_back(id, lease.serial);
  while (ended_leases_.size() > config_.limits.max_ended_leases) {
    const auto [oldest, serial] = ended_leases_.front();
    ended_leases_.erase(ended_leases_.begin());
    if (leases_.contains(oldest) && leases_.at(oldest).serial == serial) leases_.erase(oldest);
  }
}

// Returns the error of a lease that has ended; nullopt if it exists.
Model::Reply Model::outcome(Caller& caller, const std::string& id) const {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return caller.error("NOLEASE no such lease");
  switch (found->second.state) {
    case Lease::State::kGranted:
      return std::nullopt;
    case Lease::State::kConfirmed:
      return caller.error("CONFIRMED the lease is confirmed");
    case Lease::State::kCancelled:
      return caller.error("CANCELLED the lease was cancelled");
    case Lease::State::kExpired:
      return caller.error("EXPIRED the lease has expired");
  }
  return std::nullopt;
}

Model::Reply Model::lease_confirm(Caller& caller, const std::string& id) {
  if (Reply ended = outcome(caller, id)) return ended;
  if (!whole(id)) {
    lose_lease(id, now_.mono);
    return caller.error("EXPIRED the lease has expired");
  }
  const Lease lease = leases_.at(id);
  for (const std::string& key : lease.keys) renew_document({lease.db, key}, 0, caller.serial);
  finish_lease(id, Lease::State::kConfirmed);
  return caller.frame().token(lease.token);
}

Model::Reply Model::lease_cancel(Caller& caller, const std::string& id) {
  if (Reply ended = outcome(caller, id)) {
    const auto found = leases_.find(id);
    if (found != leases_.end() && found->second.state == Lease::State::kExpired) {
      return caller.frame().simple("OK");
    }
    return ended;
  }
  const Lease lease = leases_.at(id);
  for (const std::string& key : lease.keys) {
    const KeyId key_id{lease.db, key};
    if (owns(id, keys_[key_id])) lose_holds(key_id);
  }
  finish_lease(id, Lease::State::kCancelled);
  return caller.frame().simple("OK");
}

Model::Reply Model::lease_renew(Caller& caller, const std::string& id, std::optional<int64_t> ttl_ms) {
  if (Reply ended = outcome(caller, id)) return ended;
  if (!whole(id)) {
    lose_lease(id, now_.mono);
    return caller.error("EXPIRED the lease has expired");
  }
  Lease& lease = leases_.at(id);
  lease.ttl_ms = ttl_ms.value_or(lease.ttl_ms);
  const TimeMs deadline = now_.mono + DurationMs{lease.ttl_ms};
  if (deadline != lease.deadline) lease.armed = ++last_armed_;
  lease.deadline = deadline;
  for (const std::string& key : lease.keys) renew_document({lease.db, key}, lease.ttl_ms, caller.serial);
  return caller.frame().integer(1);
}

Model::Reply Model::lease_info(Caller& caller, const std::string& id) {
  static const std::map<Lease::State, std::string> kNames = {{Lease::State::kGranted, "granted"},
                                                             {Lease::State::kConfirmed, "confirmed"},
                                                             {Lease::State::kCancelled, "cancelled"},
                                                             {Lease::State::kExpired, "expired"}};
  const auto found = leases_.find(id);
  if (found == leases_.end()) return caller.error("NOLEASE no such lease");
  const Lease& lease = found->second;
  const bool granted = lease.state == Lease::State::kGranted;
  Frame out = caller.frame().map(4).bulk("state").bulk(kNames.at(lease.state));
  out.bulk("ttl").integer(granted ? (lease.deadline - now_.mono).count : -1);
  out.bulk("token").token(lease.token).bulk("keys").array(lease.keys.size());
  for (const std::string& key : lease.keys) out.bulk(key);
  return out;
}

}  // namespace holdfast::simulation
