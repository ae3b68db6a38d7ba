// The model's connections: blocking, the requests of a transaction, and the receivers and order of output.
#include "model.h"

#include <algorithm>
#include <charconv>

namespace holdfast::simulation {

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (std::to_string(value) != text) return std::nullopt;  // no leading zeros, no "-0"
  return value;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

Model::Model(const Config& config) : config_(config), tokens_(config.token_floor, config.max_token_lead) {}

const std::map<std::string, Model::Handler>& Model::handlers() {
  static const std::map<std::string, Handler> kHandlers = {
      {"LOCK", &Model::cmd_lock},         {"RENEW", &Model::cmd_renew},     {"UNLOCK", &Model::cmd_unlock},
      {"FENCE", &Model::cmd_fence},       {"LOCKS", &Model::cmd_locks},     {"LEASE", &Model::cmd_lease},
      {"SET", &Model::cmd_set},           {"GET", &Model::cmd_get},         {"UNLINK", &Model::cmd_del},
      {"TTL", &Model::cmd_ttl},           {"DBSIZE", &Model::cmd_dbsize},   {"DEL", &Model::cmd_del},
      {"EXISTS", &Model::cmd_exists},     {"TYPE", &Model::cmd_type},       {"EXPIRE", &Model::cmd_expire},
      {"PEXPIRE", &Model::cmd_pexpire},   {"PERSIST", &Model::cmd_persist}, {"PTTL", &Model::cmd_pttl},
      {"FLUSHALL", &Model::cmd_flushall}, {"FLUSHDB", &Model::cmd_flushdb}, {"SELECT", &Model::cmd_select},
      {"CLIENT", &Model::cmd_client},     {"MULTI", &Model::cmd_multi},     {"EXEC", &Model::cmd_exec},
      {"DISCARD", &Model::cmd_discard},   {"HELLO", &Model::cmd_hello},
  };
  return kHandlers;
}

void Model::open(Serial client, int protocol, const std::string& addr) {
  clients_[client].protocol = protocol;
  addrs_[client] = addr;
}

void Model::apply(Serial client, const Args& args, Now now) {
  now_ = now;
  catch_up();
  Caller caller{client, clients_.at(client)};
  in_command_ = true;
  const Reply reply = run(caller, args);
  if (reply) caller.client.output.push_back(*reply);
  finish_command();
}

void Model::finish_command() {
  in_command_ = false;
  for (auto& [client, frame] : late_) clients_.at(client).output.push_back(std::move(frame));
  late_.clear();
  group_ = ++last_group_;  // the order in which keys are granted is unspecified
  serve_touched();
  group_ = 0;
}

void Model::serve_touched() {
  const std::vector<KeyId> touched = std::move(touched_);
  touched_.clear();
  for (const KeyId& id : touched) serve(id);
}

Model::Reply Model::run(Caller& caller, const Args& args) {
  static const std::set<std::string> kAtOnce = {"MULTI", "EXEC", "DISCARD"};
  const std::string name = upper(args[0]);
  if (!caller.client.multi || kAtOnce.contains(name)) return dispatch(caller, args);
  caller.client.queued.push_back(args);
  return caller.frame().simple("QUEUED");
}

Model::Reply Model::dispatch(Caller& caller, const Args& args) {
  return (this->*handlers().at(upper(args[0])))(caller, args);
}

Model::Reply Model::cmd_multi(Caller& caller, const Args&) {
  if (caller.client.multi) return caller.error("ERR MULTI calls can not be nested");
  caller.client.multi = true;
  return caller.frame().simple("OK");
}

Model::Reply Model::cmd_discard(Caller& caller, const Args&) {
  if (!caller.client.multi) return caller.error("ERR DISCARD without MULTI");
  caller.client.multi = false;
  caller.client.queued.clear();
  return caller.frame().simple("OK");
}

Model::Reply Model::cmd_exec(Caller& caller, const Args&) {
  if (!caller.client.multi) return caller.error("ERR EXEC without MULTI");
  caller.client.multi = false;
  const std::vector<Args> commands = std::move(caller.client.queued);
  caller.client.queued.clear();
  Frame out = caller.frame().array(commands.size());
  in_exec_ = true;
  for (const Args& args : commands) out.append(*dispatch(caller, args));
  in_exec_ = false;
  return out;
}

Model::Reply Model::cmd_hello(Caller& caller, const Args& args) {
  caller.client.protocol = args[1] == "3" ? 3 : 2;
  return caller.frame().anything();
}

Model::Reply Model::cmd_select(Caller& caller, const Args& args) {
  const std::optional<int64_t> db = parse_integer(args[1]);
  if (!db || *db < 0 || *db >= kDatabases) return caller.error("ERR DB index is out of range");
  caller.client.db = static_cast<int>(*db);
  return caller.frame().simple("OK");
}

// CLIENT UNBLOCK id [TIMEOUT | ERROR], the only subcommand of the model.
Model::Reply Model::cmd_client(Caller& caller, const Args& args) {
  const auto serial = static_cast<Serial>(parse_integer(args[2]).value());
  const auto found = clients_.find(serial);
  if (found == clients_.end() || !found->second.blocked) return caller.frame().integer(0);
  for (auto& [id, state] : keys_) {
    const auto place = std::find_if(state.queue.begin(), state.queue.end(), [&](const Request& request) {
      return request.client == serial && !request.async;
    });
    if (place == state.queue.end()) continue;
    state.queue.erase(place);
    touch(id);
  }
  Frame out(found->second.protocol);
  if (args.size() > 3 && upper(args[3]) == "ERROR") {
    out.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
  } else {
    out.null_array();
  }
  found->second.blocked = false;
  found->second.output.push_back(out);
  return caller.frame().integer(1);
}

void Model::leave_queues(Serial client) {
  std::vector<std::pair<KeyId, Request>> left;
  for (auto& key : keys_) {
    const size_t removed = std::erase_if(key.second.queue, [&](const Request& r) {
      if (r.client == client) left.emplace_back(key.first, r);
      return r.client == client;
    });
    if (removed > 0) touch(key.first);
  }
  std::ranges::sort(left, {}, [](const auto& l) { return l.second.arrival; });
  for (const auto& [id, request] : left) keep_place(id, request);
}

// Another request of the owner behind it gets the place now, or the owner within a second.
void Model::keep_place(const KeyId& id, const Request& left) {
  if (left.upgrade || !left.returns) return;
  std::erase_if(empty_places_, [&](const auto& p) { return is_due(p.second.until, now_.mono); });
  const auto known = empty_places_.find({id, left.owner});
  if (known != empty_places_.end() && known->second.rank < left.rank) return;
  std::vector<Request>& queue = keys_[id].queue;
  const auto other = std::ranges::min_element(queue, {}, [&](const Request& r) {
    const bool behind = r.owner == left.owner && !r.upgrade && r.rank > left.rank;
    return behind ? r.arrival : UINT64_MAX;
  });
  if (other != queue.end() && other->owner == left.owner && !other->upgrade && other->rank > left.rank) {
    Request moved = *other;
    queue.erase(other);
    moved.rank = left.rank;
    const size_t at = place_by_rank(keys_[id], moved.rank);
    queue.insert(queue.begin() + static_cast<std::ptrdiff_t>(at), moved);
    return;
  }
  empty_places_.erase({id, left.owner});
  const size_t most = config_.limits.waiters - std::min<size_t>(config_.limits.waiters, waiters());
  while (empty_places_.size() >= most && !empty_places_.empty())
    empty_places_.erase(
        std::ranges::min_element(empty_places_, {}, [](const auto& p) { return p.second.number; }));
  if (most > 0) empty_places_[{id, left.owner}] = {left.rank, now_.mono + DurationMs{1000}, ++last_place_};
}

void Model::drop(Serial client, Now now) {
  now_ = now;
  catch_up();
  group_ = ++last_group_;
  leave_queues(client);
  clients_.erase(client);
  std::vector<std::pair<KeyId, std::string>> ended;
  for (auto& [id, state] : keys_) {
    for (Hold& hold : state.holds) {
      if (hold.listener != client) continue;
      hold.async = false;
      if (!hold.session) continue;
      hold.session_end = now.mono + config_.session_grace;
      if (config_.session_grace.count == 0) ended.emplace_back(id, hold.owner);
    }
  }
  for (const auto& [id, owner] : ended) {
    end_hold(id, owner, now.mono);
    touch(id);
  }
  finish_command();
}

Frame Model::push(Serial client, std::string_view event, const std::string& key, const std::string& owner,
                  size_t n) const {
  Frame out(clients_.at(client).protocol);
  return out.push(n).bulk("lock").bulk(event).bulk(key).bulk(owner);
}

// A push never arrives in the middle of a reply.
void Model::expect_output(Serial client, Frame frame, const std::string& topic) {
  frame.group = group_;
  frame.topic = topic;
  if (in_command_) {
    late_.emplace_back(client, std::move(frame));
  } else {
    clients_.at(client).output.push_back(std::move(frame));
  }
}

// Sends the reply to a request that has waited.
void Model::wake(Serial client, Frame frame, const std::string& topic) {
  frame.group = group_;
  frame.topic = topic;
  clients_.at(client).blocked = false;
  clients_.at(client).output.push_back(std::move(frame));
}

std::vector<Frame> Model::take_output(Serial client) {
  std::vector<Frame> out = std::move(clients_.at(client).output);
  clients_.at(client).output.clear();
  return out;
}

}  // namespace holdfast::simulation
