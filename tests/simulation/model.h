// A second lock server in the simplest form: vectors, maps and loops over all items. It shares no code
// with the engine except its number types, and represents the promises of the protocol. It is slow on
// purpose.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/base/types.h"
#include "frame.h"
#include "token_book.h"

namespace holdfast::simulation {

using Args = std::vector<std::string>;
using Serial = uint64_t;  // a connection, as CLIENT ID shows it; 0: none

inline constexpr uint32_t kUnlimited = kShared.count;

// A LOCK request, and its place in the queue while it waits.
struct Request {
  Serial client = 0;
  std::string owner;
  uint32_t capacity = 1;
  int64_t ttl_ms = 0;  // 0: never expires
  bool async = false;
  bool session = false;
  int64_t delay_ms = 0;
  uint64_t hint = 0;
  std::optional<std::string> note;  // nullopt: the hold keeps the note that it has
  bool waits = false;
  int64_t wait_ms = 0;  // 0: no limit
  TimeMs since;
  TimeMs until = kNever;
  uint64_t arrival = 0;
  uint64_t rank = 0;     // its place among those that are no upgrades
  bool returns = true;   // its owner may come again after the end of its connection
  bool upgrade = false;  // by a holder, to a smaller capacity: precedes all other waiters
};

struct Hold {
  std::string owner;  // for a plain string: its value
  uint32_t capacity = 1;
  TokenRef token;  // null: not assigned yet
  TimeMs deadline = kNever;
  int64_t ttl_ms = 0;  // the last one given
  TimeMs held_since;
  TimeMs renewed;
  bool session = false;
  TimeMs session_end = kNever;  // end of the grace after the connection's disconnect
  bool async = false;
  int64_t delay_ms = 0;
  Serial listener = 0;  // connection of the SESSION, also informed of its loss
  Serial client = 0;    // the last client that set it, as LOCKS INFO shows
  std::string lease;    // empty: none
  std::string note;
};

struct KeyState {
  std::vector<Hold> holds;     // in the order of their grants
  std::vector<Request> queue;  // waiters in FIFO order
  TimeMs delay_until{-1};      // -1: no lock-delay runs (its end is an event that sets this)
};

struct Lease {
  enum class State { kGranted, kConfirmed, kCancelled, kExpired };
  State state = State::kGranted;
  int db = 0;
  std::vector<std::string> keys;
  int64_t ttl_ms = 0;
  TimeMs deadline;
  TokenRef token;
  uint64_t armed = 0;   // leases with the same deadline end in the order in which it was set
  uint64_t serial = 0;  // distinguishes successive leases with the same id
};

class Model {
 public:
  explicit Model(const Config& config);

  void open(Serial client, int protocol, const std::string& addr);
  void apply(Serial client, const Args& args, Now now);
  void drop(Serial client, Now now);
  void tick(Now now);

  // Returns the expected output of the connection since the last call.
  std::vector<Frame> take_output(Serial client);
  bool blocked(Serial client) const { return clients_.at(client).blocked; }
  bool in_multi(Serial client) const { return clients_.at(client).multi; }
  // Sets the bytes that the engine drew from its random source for the present request.
  void offer_random(std::string bytes) { random_ = std::move(bytes); }
  // The time of the next event, and of the next event that causes output.
  std::optional<TimeMs> next_event() const;
  std::optional<TimeMs> next_visible_event() const;
  // The promises leave the outcome of a request open; the run ends without a result.
  bool is_undetermined() const { return undetermined_; }
  const TokenBook& tokens() const { return tokens_; }
  std::string settle_tokens() { return tokens_.settle(); }
  const std::map<KeyId, KeyState>& keys() const { return keys_; }
  const std::map<std::string, Lease>& leases() const { return leases_; }
  int selected(Serial client) const { return clients_.at(client).db; }

 private:
  struct Client {
    int protocol = 2;
    int db = 0;
    bool blocked = false;
    bool multi = false;
    std::vector<Args> queued;
    std::vector<Frame> output;
  };
  struct Caller {
    Serial serial;
    Client& client;
    Frame frame() const { return Frame(client.protocol); }
    Frame error(std::string_view text) const { return frame().error(text); }
    KeyId key(const std::string& name) const { return {client.db, name}; }
  };
  using Reply = std::optional<Frame>;  // nullopt: the connection waits
  using Handler = Reply (Model::*)(Caller&, const Args&);
  struct Due {
    // Events at the same moment happen in this order.
    enum Kind : uint8_t { kExpiry, kDelayOver, kSessionOver, kLeaseOver, kWaitOver };
    TimeMs at;
    Kind kind = kExpiry;
    KeyId id = {};
    std::string owner = {};  // for the end of a hold
    std::string lease = {};  // for the end of a lease
    Serial session = 0;
    const Request* request = nullptr;
  };

  // model.cc: connections, dispatch, MULTI
  static const std::map<std::string, Handler>& handlers();
  Reply dispatch(Caller& caller, const Args& args);
  Reply run(Caller& caller, const Args& args);
  Reply cmd_multi(Caller& caller, const Args& args);
  Reply cmd_discard(Caller& caller, const Args& args);
  Reply cmd_exec(Caller& caller, const Args& args);
  Reply cmd_hello(Caller& caller, const Args& args);
  Reply cmd_select(Caller& caller, const Args& args);
  Reply cmd_client(Caller& caller, const Args& args);
  void expect_output(Serial client, Frame frame, const std::string& topic);
  void wake(Serial client, Frame frame, const std::string& topic);
  void finish_command();
  void leave_queues(Serial client);
  void keep_place(const KeyId& id, const Request& left);
  Frame push(Serial client, std::string_view event, const std::string& key, const std::string& owner,
             size_t n) const;

  // model_lock.cc: admission, queues, LOCK RENEW UNLOCK FENCE
  static Hold* hold_of(KeyState& state, const std::string& owner);
  static bool fits(const KeyState& state, const Request& request);
  static bool delayed(const KeyState& state) { return state.delay_until.count >= 0; }
  static bool head_may_go(KeyState& state);
  static std::optional<size_t> next_to_go(KeyState& state);
  TokenRef take(const KeyId& id, const Request& request);
  void set_ttl(Hold& hold, int64_t ttl_ms) const;
  void touch(const KeyId& id);
  void serve(const KeyId& id);
  void deliver(const KeyId& id, const Request& request);
  static size_t upgrade_place(const KeyState& state);
  static size_t place_by_rank(const KeyState& state, uint64_t rank);
  static void promote_upgrades(KeyState& state);
  bool admits_new_requests(const KeyState& state) const { return state.queue.empty() && !delayed(state); }
  bool admitted(KeyState& state, const Request& request) const;
  TokenRef token_of(const KeyId& id, Hold& hold);
  Reply cmd_lock(Caller& caller, const Args& args);
  Reply wait(Caller& caller, const KeyId& id, Request request);
  size_t waiters() const;
  Reply cmd_renew(Caller& caller, const Args& args);
  Reply cmd_unlock(Caller& caller, const Args& args);
  Reply cmd_fence(Caller& caller, const Args& args);

  // model_deadlock.cc
  std::set<std::string> waiting_for(const std::string& owner) const;
  bool deadlocked(const std::string& owner) const;
  static bool play(KeyState& state);
  static bool release_unblocked(std::map<KeyId, KeyState>& keys);

  // model_time.cc: due events, and the ends of holds
  std::vector<Due> all_due() const;
  static bool together(const Due& a, const Due& b);
  void catch_up();
  void serve_touched();
  void happen(const Due& due);
  void end_hold(const KeyId& id, const std::string& owner, TimeMs moment);
  void push_lost(const KeyId& id, const Hold& hold);
  bool lose_holds(const KeyId& id);
  void end_wait(const Due& due);

  // model_plain.cc: strings and keys
  bool exists(const KeyId& id) const;
  static bool is_lock(const KeyState& state);
  void write(const KeyId& id, const std::string& value, std::optional<int64_t> ttl_ms, Serial client);
  Reply cmd_set(Caller& caller, const Args& args);
  Reply cmd_get(Caller& caller, const Args& args);
  Reply cmd_del(Caller& caller, const Args& args);
  Reply cmd_exists(Caller& caller, const Args& args);
  Reply cmd_type(Caller& caller, const Args& args);
  Reply expire(Caller& caller, const Args& args, int64_t unit_ms);
  Reply cmd_expire(Caller& caller, const Args& args) { return expire(caller, args, 1000); }
  Reply cmd_pexpire(Caller& caller, const Args& args) { return expire(caller, args, 1); }
  Reply cmd_persist(Caller& caller, const Args& args);
  Reply cmd_pttl(Caller& caller, const Args& args);
  Reply cmd_ttl(Caller& caller, const Args& args);
  Reply cmd_dbsize(Caller& caller, const Args& args);
  Reply flush(Caller& caller, int db);
  Reply cmd_flushall(Caller& caller, const Args& args);
  Reply cmd_flushdb(Caller& caller, const Args& args);

  // model_locks.cc: the LOCKS command
  Reply cmd_locks(Caller& caller, const Args& args);
  void sort_holds(const KeyId& id);
  Frame info(Caller& caller, const KeyId& id);
  void write_hold(Frame& out, const KeyId& id, Hold& hold);
  void write_origin(Frame& out, Serial client, const std::string& note) const;
  Frame owned(Caller& caller, const std::string& owner);
  void write_waiter(Frame& out, const Request& request) const;
  Reply locks_check(Caller& caller, const KeyId& id, uint64_t token);
  Reply locks_break(Caller& caller, const KeyId& id);
  Reply locks_revoke(Caller& caller, const KeyId& id);

  // model_lease.cc
  Reply cmd_lease(Caller& caller, const Args& args);
  Reply lease_grant(Caller& caller, const Args& args);
  Reply lease_confirm(Caller& caller, const std::string& id);
  Reply lease_cancel(Caller& caller, const std::string& id);
  Reply lease_renew(Caller& caller, const std::string& id, std::optional<int64_t> ttl_ms);
  Reply lease_info(Caller& caller, const std::string& id);
  Reply outcome(Caller& caller, const std::string& id) const;
  void renew_document(const KeyId& id, int64_t ttl_ms, Serial client);
  static bool owns(const std::string& id, const KeyState& state);
  bool whole(const std::string& id) const;
  void lose_lease(const std::string& id, TimeMs moment);
  void finish_lease(const std::string& id, Lease::State state);

  // The place of a waiter whose connection ended.
  struct EmptyPlace {
    uint64_t rank;
    TimeMs until;
    uint64_t number;
  };
  using Whose = std::pair<KeyId, std::string>;

  Config config_;
  TokenBook tokens_;
  Now now_;
  std::map<Serial, Client> clients_;
  std::map<Serial, std::string> addrs_;  // of all clients, also of those that disconnected
  std::map<KeyId, KeyState> keys_;
  std::map<std::string, Lease> leases_;
  std::vector<std::pair<std::string, uint64_t>> ended_leases_;  // id and serial, oldest first
  std::map<Whose, EmptyPlace> empty_places_;
  uint64_t last_rank_ = 0;
  uint64_t last_place_ = 0;
  uint64_t last_lease_ = 0;
  uint64_t last_armed_ = 0;
  std::vector<KeyId> touched_;                  // granted to waiters at the end of the command
  std::vector<std::pair<Serial, Frame>> late_;  // pushes that follow the command's reply
  bool in_command_ = false;
  bool in_exec_ = false;
  int group_ = 0;  // of the present output; 0: its order is promised
  int last_group_ = 0;
  std::string random_;
  bool undetermined_ = false;
};

// Parsing for all commands: an integer with the rules of Redis.
std::optional<int64_t> parse_integer(std::string_view text);
std::string upper(std::string_view text);
std::string hex(std::string_view bytes);

}  // namespace holdfast::simulation
