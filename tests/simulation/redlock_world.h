// Clients that acquire one lock on several engines, in a world that one seed decides: delays, losses,
// resent requests, crashes, and separate clocks. It owns the engines, the clients and the messages between
// them, and judges the results that the clients got.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/algorithm/redlock.h"
#include "core/engine/engine.h"
#include "core/state/tokens.h"
#include "dice.h"

namespace holdfast::simulation {

// A violation of the assumptions by the world, to see that the judge detects it.
enum class Flaw : uint8_t {
  kNone,
  kCounterReset,  // a crash resets a server's counters
  kClocksAstray,  // rates of clocks differ by more than the allowed drift
  kNoHealing,     // the LOCKs of renewals never arrive
};

// The fate of the servers: chance, or restarts of one after the other while one client keeps its hold. In
// a restart a server is down for longer than the ttl. It keeps its data or loses all of it, but loses it
// only while a quorum of the other servers surely keeps all holds.
enum class Story : uint8_t { kChance, kRestarts, kForgets };

// The parameters of a run, chosen by the seed. Times of the world are in microseconds, of its clocks in
// milliseconds.
struct RedlockProfile {
  RedlockProfile(Dice& dice, Flaw flaw, Story story);

  size_t servers;
  size_t clients;
  int sessions;  // per client, one after the other
  int64_t ttl_ms;
  int64_t server_timeout_ms;
  int64_t slowest_us;    // the longest delay of a message
  uint64_t lost_one_in;  // 0: never; the next ones too
  uint64_t resent_one_in;
  uint64_t overtaken_one_in;  // LOCKs that later requests overtake
  uint64_t shared_one_in;
  int crashes;
  int jumps;              // forward, of a server's clock: holds end early
  bool recovers;          // after a crash a server grants only once lost holds have expired
  bool clocks_agree;      // so that hints give equal tokens
  bool good_in_time;      // none of the above breaks exclusion in time
  uint32_t limit = 0;     // of holders; 0: locks are not counted
  uint64_t ahead_us = 0;  // lead of one server's tokens over the others'
};

struct RedlockTally {
  uint64_t acquired = 0;
  uint64_t fenced = 0;  // of the acquired ones, by FENCE
  uint64_t renewed = 0;
  uint64_t failed = 0;
  uint64_t lost = 0;    // holds whose validity ended before the release
  uint64_t healed = 0;  // LOCKs that renewals sent
  uint64_t steps = 0;
};

class RedlockWorld {
 public:
  RedlockWorld(uint64_t seed, Flaw flaw, RedlockTally& tally, Story story = Story::kChance);
  // Plays to the end. Returns the fault; empty if there is none.
  std::string run();

 private:
  // A clock: its offset and its rate relative to the world's time.
  struct Clock {
    int64_t start_ms = 0;
    int64_t rate_ppm = 1000000;
    int64_t at(int64_t us) const { return start_ms + us * rate_ppm / 1000000000; }
    // Returns the first moment of the world, in us, at which the clock shows this.
    int64_t when(int64_t ms) const { return ((ms - start_ms) * 1000000000 + rate_ppm - 1) / rate_ppm; }
  };
  struct Client;
  // One Redlock from its start to its end.
  struct Session {
    std::unique_ptr<client::Redlock> lock;
    size_t client = 0;
    bool shared = false;
    bool fenced = false;
    bool counted = false;  // its outcome is in the tally
    bool holds = false;
    bool renewing = false;
    bool keeps = false;            // its hold must survive until the last restart
    bool forgotten = false;        // a renewal found that too many servers lack it
    uint64_t above_all = 0;        // the largest token at its start
    uint64_t above_exclusive = 0;  // the same of exclusive locks
    int64_t act_us = 0;            // time of its user's next action
  };
  struct Client {
    Clock clock;
    int64_t wall_skew_us = 0;
    int left = 0;  // sessions to start
    size_t session = 0;
    bool busy = false;
    int64_t next_us = 0;
  };
  // A client's connection, or the connection of a wait.
  struct Link {
    ConnId id;
    int64_t asked_us = 0;  // the latest arrival at the server: no request overtakes it
    int64_t received_us = 0;
  };
  struct Server {
    std::unique_ptr<Engine> engine;
    Clock clock;
    std::map<std::pair<size_t, uint64_t>, Link> links;      // by session, and by send id for waits, else 0
    std::map<uint64_t, std::pair<size_t, uint64_t>> waits;  // by serial: the receiver
    bool away = false;
  };
  struct Event {
    enum class Kind : uint8_t { kRequest, kReply, kEnd, kCrash, kJump, kLeave, kReturn };
    Kind kind = Kind::kCrash;
    size_t server = 0;
    size_t session = 0;
    uint64_t id = 0;
    bool waits = false;
    std::vector<std::string> argv;
    client::Reply reply;
  };

  void start_engine(Server& server, const IssuedTokens& before);
  Now server_now(const Server& server) const;
  TimeMs client_now(size_t client) const { return TimeMs{clients_[client].clock.at(now_us_)}; }
  uint64_t wall_us(size_t client) const;
  void schedule(int64_t at_us, Event event);
  int64_t on_the_way() { return dice_.between(50, profile_.slowest_us); }
  bool chance(uint64_t one_in) { return one_in != 0 && dice_.one_in(one_in); }

  bool step();
  bool step_client(size_t client);
  bool step_server(Server& server);
  std::optional<int64_t> next_of(size_t client) const;
  std::optional<int64_t> next_of(const Server& server) const;
  void begin(Client& client, size_t index);
  void use(Session& session);
  void play(const Event& event);
  void request(const Event& event);
  void crash(Server& server);
  void collect(size_t server, Effects& fx);
  void deliver(size_t server, std::pair<size_t, uint64_t> link, uint64_t id, client::Reply reply);
  void carry(size_t session);
  void send(size_t session, client::Send&& send);
  void judge(size_t session);
  void judge_token(const Session& session);
  void judge_exclusion();
  void judge_renewal(Session& session);
  // Restarts, in redlock_restarts.cc:
  bool may_leave(size_t server);
  bool may_forget(size_t server);
  void leave(size_t server);
  void come_back(size_t server);
  void keep(Session& session);
  void schedule_leave(size_t server, int64_t after_us);
  std::vector<std::string> holders_on(Server& server);
  std::optional<int64_t> left_on(Server& server, const std::string& owner);
  bool is_free(Server& server);
  void wrong(const std::string& what);

  Flaw flaw_;
  Story story_;
  Dice dice_;
  RedlockProfile profile_;
  RedlockTally& tally_;
  int64_t now_us_ = 0;
  uint64_t last_event_ = 0;
  bool restarts_begun_ = false;
  bool restarts_over_ = false;
  int64_t returned_us_ = 0;  // when the last restarted server came back
  std::map<std::pair<int64_t, uint64_t>, Event> events_;
  std::vector<Server> servers_;
  std::vector<Client> clients_;
  std::deque<Session> sessions_;
  std::map<uint64_t, bool> tokens_;  // issued so far; whether for an exclusive lock
  uint64_t largest_ = 0;
  uint64_t largest_exclusive_ = 0;
  std::string wrong_;
};

}  // namespace holdfast::simulation
