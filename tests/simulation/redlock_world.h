// Clients that acquire a few locks on several engines, in a world that a plan decides. It owns the servers,
// the clients and the messages between them, and judges the results that the clients got.
//
// What it checks, and when that is promised. tests/README.md explains the words.
// - Support: when a client gets a hold or a renewal, a quorum of servers has granted or renewed it with a
//   deadline at or after the end of the validity. So only replies of one round count together. Always.
// - Exclusion: one exclusive holder, or `limit` counted holders, are within their validity at any true
// time.
//   Promised if clocks differ by at most the drift, and a quorum of servers refuses other holders until the
//   end of the validity. For counted holds one server must refuse, which remembers all of them. A server
//   stops to refuse if it restarts without the hold, or if its clock jumps; a recovery wait refuses, too. A
//   hold without such a quorum is judged again after its next confirmed renewal.
// - Tokens: no two acquisitions have one token, and a later acquisition has a larger one. Always: servers
//   lose holds, but never their counters.
// - A hold that its holder renews is not lost. Promised in a calm world (Parameters::calm()), if at each
//   moment since the last confirmed renewal at most `servers - quorum` servers were bad for it: down, cut
//   off, LOADING, or without the hold. A server without the hold counts as good after healing_us().
//   Before the first renewal: if half of the validity that the acquisition left is enough for a renewal.
// - A server without such a hold gets it. Promised in a calm world while a majority is good: within 4 times
//   healing_us(), or within 20 TTLs if other owners hold the lock or wait on that server.
// - A server that restarts with all its memory has each hold until its deadline, or longer. Promised if its
//   machine did not restart, however its wall clock was set.
// - A wait without a limit ends with the lock. Promised in a calm world. In every world each lock settles.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/algorithm/redlock.h"
#include "dice.h"
#include "redlock_plan.h"
#include "redlock_server.h"

namespace holdfast::simulation::redlock {

struct Tally {
  uint64_t acquired = 0;
  uint64_t fenced = 0;  // of the acquired ones, by FENCE
  uint64_t renewed = 0;
  uint64_t failed = 0;
  uint64_t lost = 0;       // holds whose validity ended before the release
  uint64_t excused = 0;    // of these, holds that were renewed, but too few servers worked
  uint64_t healed = 0;     // LOCKs that renewals sent
  uint64_t restarts = 0;   // of servers
  uint64_t reboots = 0;    // of these, with their machine
  uint64_t kept = 0;       // holds during which every server restarted, and that were not lost
  uint64_t forgotten = 0;  // times that a hold was remembered by less than a quorum
  uint64_t steps = 0;
};

class World {
 public:
  // Takes each line of the story of a run.
  using Teller = std::function<void(const std::string&)>;
  World(const Plan& plan, Tally& tally, Teller teller = nullptr);
  // Returns the fault; empty if there is none.
  std::string run();

 private:
  // The promises of a server to a session. Times in ms are on the server's clock; 0: nothing.
  struct Proof {
    int64_t given_us = 0;        // the deadline in its last reply, in the world's time
    int64_t refuses_ms = 0;      // it refuses other holders until then
    int64_t holds_ms = 0;        // it has the hold until then
    int64_t lacks_us = -1;       // since when it is without the hold, but could have it; -1: it is not
    int64_t lacks_long_us = -1;  // the same, whether or not others are in the way
  };
  // One Redlock from its start to its end.
  struct Session {
    const Step* step = nullptr;
    std::unique_ptr<client::Redlock> lock;
    QuickDice dice{0};
    std::string owner;          // of the present attempt
    std::vector<Proof> proofs;  // by server, for that owner
    bool fenced = false;
    bool counted = false;  // its outcome is in the tally
    bool holds = false;
    bool releases = false;  // its user has decided to end it
    bool renewing = false;
    bool forgotten = false;        // a renewal found that too many servers lack it
    uint64_t restarted = 0;        // servers that restarted since it holds the lock: a bit for each
    bool unsupported = false;      // a quorum of servers does not remember it any more
    uint64_t above_all = 0;        // the largest token at its start
    uint64_t above_exclusive = 0;  // the same of exclusive locks
    int64_t act_us = 0;            // time of its user's next action
    int64_t end_us = 0;            // a holder that renews releases then
    int64_t round_us = 0;          // begin of the present round
    int64_t confirmed_us = 0;      // begin of the last confirmed round
    int64_t shaky_us = -1;         // when too many servers were bad for the hold
    int64_t unhealable_us = -1;    // when too many servers were bad for healing
    Mode mode() const { return step->mode; }
    size_t key() const { return step->key; }
  };
  // The tokens of a key.
  struct Issued {
    std::map<uint64_t, bool> tokens;  // whether for an exclusive lock
    uint64_t largest = 0;
    uint64_t largest_exclusive = 0;
  };
  struct Client {
    Clock clock;
    int64_t wall_skew_us = 0;
    std::deque<const Step*> steps;  // sessions to start
    size_t session = 0;
    bool busy = false;
    int64_t next_us = 0;
    int64_t stalled_us = 0;  // it stands still until then
  };
  struct Event {
    enum class Kind : uint8_t { kRequest, kReply, kEnd, kStep, kReturn, kLoaded, kDrain };
    Kind kind = Kind::kStep;
    size_t server = 0;
    size_t session = 0;
    uint64_t id = 0;
    bool waits = false;
    uint64_t link = 0;  // see Server::LinkName
    const Step* step = nullptr;
    std::vector<std::string> argv;
    client::Reply reply;
  };

  TimeMs client_now(size_t client) const { return TimeMs{clients_[client].clock.at(now_us_)}; }
  uint64_t wall_us(size_t client) const;
  void schedule(int64_t at_us, Event event);
  void schedule_step(int64_t at_us, Event::Kind kind, const Step& step);
  int64_t ttl_us() const { return world_.ttl_ms * 1000; }
  void wrong(const std::string& what);
  // `text()` returns the line. Without a teller it is not called.
  template <class Text>
  void tell(Text text) {
    if (teller_) tell_line(text());
  }
  void tell_line(const std::string& what);
  std::string name_of(const Session& session) const;

  // Time and clients, in redlock_world.cc:
  void plan_faults();
  bool step();
  void step_client(size_t client);
  void step_server(Server& server);
  std::optional<int64_t> next_of(size_t client) const;
  std::optional<int64_t> next_of(const Server& server) const;
  void begin(Client& client, size_t index);
  void use(Session& session);
  void keep(Session& session);
  void renew(Session& session, int64_t ttl_ms);
  void release(Session& session);
  void play(const Event& event);
  void drain();
  void finish();

  // Messages, in redlock_messages.cc:
  QuickDice fate_of(size_t session, size_t server, uint64_t id, uint64_t what) const;
  int64_t delay(QuickDice& dice) const { return dice.between(50, world_.slowest_us); }
  bool is_cut(size_t client, size_t server) const { return now_us_ < cut_us_[client][server]; }
  void carry(size_t session);
  void send(size_t session, client::Send&& send);
  void end_wait(size_t session, uint64_t id);
  void close_later(size_t session, size_t server, uint64_t link);
  void change_owner(Session& session);
  void request(const Event& event);
  void reply(const Event& event);
  void close(const Event& event);
  void collect(size_t server, Effects& fx);
  void deliver(size_t server, Server::LinkName link, uint64_t id, client::Reply reply);
  void record(size_t server, const Event& event, const client::Reply& reply);

  // Faults of servers, in redlock_faults.cc:
  void begin_step(const Step& step);
  bool may_leave(const Step& step);
  void leave(const Step& step);
  void come_back(const Step& step);
  void finish_loading(const Step& step);
  void jump(const Step& step);
  KeyState look(size_t server, size_t key);
  void judge_memory(const Session& session, const Step& step, int64_t until_ms);
  bool is_free(size_t server);

  // The judge, in redlock_judge.cc:
  size_t quorum_of(const Session& session) const;
  int64_t valid_until_us(const Session& session) const;
  bool is_valid(const Session& session) const;
  size_t supporters(const Session& session) const;
  void judge(size_t session);
  void judge_acquired(Session& session);
  void judge_token(const Session& session);
  void judge_support(Session& session);
  void judge_renewal(Session& session);
  void judge_end(Session& session);
  void judge_exclusion(size_t key);
  void judge_counted(const std::vector<const Session*>& holders);
  void judge_health();
  void judge_health(Session& session);
  bool is_good(Session& session, size_t server);
  void judge_lack(Session& session, size_t server);
  bool obstructed(const Session& session, const KeyState& state) const;
  int64_t renewal_us() const;
  int64_t healing_us() const;

  const Parameters world_;
  const std::vector<Step> steps_;
  Tally& tally_;
  Teller teller_;
  int64_t now_us_ = 0;
  int64_t last_us_ = 0;  // no step has effects after it
  bool drained_ = false;
  uint64_t last_event_ = 0;
  std::map<std::pair<int64_t, uint64_t>, Event> events_;
  std::vector<Server> servers_;
  std::vector<Client> clients_;
  std::vector<std::vector<int64_t>> cut_us_;  // by client and server: until when no message passes
  std::deque<Session> sessions_;
  std::vector<Issued> issued_;  // by key
  std::string wrong_;
};

}  // namespace holdfast::simulation::redlock
