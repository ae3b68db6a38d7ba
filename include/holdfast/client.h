// Locks for programs: `Client` reaches the servers, `Hold` is a lock that is held, `Mutex` makes one of a
// key that std::unique_lock and the like can use.
//
//   holdfast::Client client("holdfast://127.0.0.1:7379");
//   if (auto [result, hold] = client.lock_for("printer", 10s); result) {
//     print(document, hold.token());  // the storage refuses a token smaller than the largest it has seen
//   }                                  // and here it is given back
//
// A lock with a time to live can be lost while its holder stands still: hold.validity() and on_lost tell in
// time, and a storage that checks tokens is safe whatever happens.
//
// After fork() a child must not use what its parent made: every call there throws std::logic_error, and
// destroying it there does nothing. Make a new Client.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/result.h"

namespace holdfast {

using std::chrono::milliseconds;

enum class Mode : uint8_t {
  kExclusiveLock,  // one holder
  kSharedLock,     // readers: as many as come
  kCountedLock,    // at most LockOptions::limit holders
};

// Pauses between attempts that grow, with full jitter: the pause after the n-th attempt is a random time
// from 0 to first * factor^(n-1), at most `longest`.
struct RetryBackoff {
  static constexpr double kLargestFactor = 100;

  milliseconds first{100};      // at least 1 ms
  double factor = 2;            // 1 to kLargestFactor
  milliseconds longest{10000};  // at least `first`
};

struct LockOptions {
  static constexpr milliseconds kShortestTtl{10};
  static constexpr milliseconds kLongestTtl{(int64_t{1} << 53) - 1};

  Mode mode = Mode::kExclusiveLock;
  uint32_t limit = 1;           // of kCountedLock
  milliseconds ttl{30000};      // for how long a hold lives that nobody renews; kShortestTtl to kLongestTtl
  bool renew = true;            // a watchdog renews it at each third of the ttl, until it is given back
  milliseconds warn_before{0};  // calls on_expiring when so little time is left without a renewal; 0: never
  // Called on the client's own thread; they must not throw, wait for long, or destroy the client. They may
  // still run while the hold is destroyed, but not after its unlock() has returned.
  std::function<void()> on_expiring;
  // The lock cannot be relied on any more, though it was not given back. Called once, before the validity
  // ends.
  std::function<void(const Result&)> on_lost;
  // Renewals have begun to fail: too few servers confirmed one, `result` has what each said. The hold goes
  // on until its validity ends, and further renewals follow. Called once, until on_renewal_restored.
  std::function<void(const Result& result)> on_renewal_failed;
  // A renewal has succeeded after on_renewal_failed.
  std::function<void(const Result& result)> on_renewal_restored;
  // An attempt failed, and others will follow, as the wait is not over: others hold the lock, or servers do
  // not answer. Not told while the wait is in a server's queue.
  std::function<void(const Result&)> on_attempt_failed;
  // Somebody asks for the lock by LOCKS REVOKE; the hold goes on.
  std::function<void()> on_revoke_requested;
  // How attempts are repeated by a call that waits, where no queue can be had: as servers are away, or on
  // Redis. With either of them a wait on Redis is made of such attempts, as if it had no queue.
  uint32_t max_attempts = 0;  // that begin; 0: what the address says, where that says nothing no limit
  std::optional<RetryBackoff> backoff;  // none: what the address says, else min-wait to max-wait at random
};

struct UnlockOptions {
  // The servers keep the lock until so long after the grant, though it is unlocked earlier. 0 to
  // LockOptions::kLongestTtl.
  milliseconds at_least{0};
};

class ClientCore;
class HoldCore;

// A lock that is held; gives it back when it is destroyed, without waiting for the answer. Any thread may
// call any function at any time, but for moving and destroying.
class Hold {
 public:
  Hold() = default;  // holds nothing
  explicit Hold(std::shared_ptr<HoldCore> core);
  Hold(Hold&&) = default;
  Hold& operator=(Hold&& other) noexcept;
  ~Hold();

  // Whether it can still be relied on, at this moment: false from when its validity ended, or it was lost
  // or given back.
  bool is_locked() const;
  explicit operator bool() const { return is_locked(); }
  // How much longer it can be relied on; 0: not at all.
  milliseconds validity() const;
  // Grows with each acquisition of the key, on whichever servers.
  uint64_t token() const;
  const std::string& key() const;
  const std::string& owner() const;

  // Lets its time start anew, for `ttl`, which also becomes the watchdog's. Waits for the answer; whatever
  // that is, the hold goes on as long as it has validity.
  Result extend(milliseconds ttl);
  // Gives it back, and waits for the answer: kOk, kExpired where it had been lost before, or kUnreachable.
  // Before `at_least` is over the call does not wait for that: the watchdog stops, the servers get what is
  // left of that time as the ttl (with 1 % for the drift of clocks), and the lock expires by itself. Where
  // too few servers take that ttl (kUnreachable, kRefused), the lock is not released either: it expires
  // with the ttl that each server had last. So a ttl of at least `at_least` keeps the promise also then.
  Result unlock(const UnlockOptions& options = {});
  // Lets the servers keep it until its time is over, with nobody to renew it, whatever becomes of this
  // object and of the client. They are not told of it; whoever knows the owner may still give it back.
  // Nothing is held here any more, and on_lost will not be called.
  void leave();

 private:
  std::shared_ptr<HoldCore> core_;
};

// What an attempt came to: a result, and, where that is kOk, the lock.
struct Acquired {
  Result result;
  Hold hold;
};

// Reaches one server, or several that together are one lock service, or needs none. Any thread may call
// any function at any time. Where it is destroyed, what it holds is given back, and what it waits for ends
// as kCancelled.
class Client {
 public:
  // `where`, from small to large:
  //   embedded:, embedded:name            no server: the engine inside this process, for its threads
  //   holdfast://host:port                one server; the port is 7379 unless given
  //   quorum://h1:p1,h2:p2,h3             several independent ones: a majority decides
  //   redis://host:port                   a stock Redis, by scripts; the port is 6379 unless given. May
  //                                       also stand in a quorum
  //   redis-cluster://h1,h2               a Redis Cluster, by some of its nodes
  //   holdfasts://, rediss://, rediss-cluster://   the same over TLS; in a quorum each server for itself
  // A login stands before a host: user:password@, or :password@ for the server's default user; %25 stands
  // for %, %2c for a comma, %2f for /, %3a for :, %3f for ? and %40 for @. Behind quorum:// it is of all
  // servers that have none, behind the scheme of a server (quorum://holdfast://user:password@h1,h2) of that
  // one. Servers without a login in the text get that of the environment: HOLDFAST_USER and
  // HOLDFAST_PASSWORD. A login that is rejected is kRefused, also in the middle of a wait.
  // with settings behind a `?`, as in ?timeout=50&rfactor=3, but not for embedded:
  //   timeout     ms after which a server that has not answered counts as refusing (1000)
  //   min-wait, max-wait   ms between attempts, at random, where no queue can be had (10, 100)
  //   attempts    how many attempts a wait makes at most, where no queue can be had (no limit)
  //   backoff, backoff-factor, backoff-max   pauses between attempts that grow, in place of min-wait and
  //               max-wait: RetryBackoff's first (ms), factor (2) and longest (10000 ms)
  //   user, password   the login at all servers that have none before the host, as user:password@host
  //   rfactor     how many of the servers have a key (all)
  //   wquorum, rquorum     how many must grant an exclusive and a shared lock (a majority)
  //   acks, ack-timeout    how many replicas of each Redis must acknowledge a grant (none), within how many
  //                        ms (half of timeout); else the grant is given back, and is kRefused
  //   tls=yes     all servers over TLS
  //   cacert, cacertdir    a file, a folder: the authorities that vouch for the servers (the system's)
  //   cert, key   files: the certificate of this client, where servers want one
  //   sni         the name that their certificates must have (the host's)
  //   insecure    verifies no certificate: whoever stands between can pose as the server
  // A counted lock needs all servers of its key, as fewer would let in more than its limit. On Redis nobody
  // queues, and what a process leaves that vanishes ends with its ttl.
  // All clients of a process that name the same engine share it. It ends with the last of them, and with it
  // all holds, also those that were left; the next one's tokens are larger, those of the next process if
  // the clock was not set back. A child of fork() has engines of its own. Throws std::invalid_argument,
  // with what is wrong with the text or a file that it names, and how it should be; and std::system_error,
  // where the process may start no more threads.
  explicit Client(std::string_view where);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // One attempt. It takes as long as its servers need to answer, at most some times `timeout`; so may the
  // last attempt of a wait that is over.
  Acquired try_lock(const std::string& key, const LockOptions& options = {});
  // Waits for it, for ever: a server that is away is tried again.
  Acquired lock(const std::string& key, const LockOptions& options = {});
  Acquired lock_for(const std::string& key, milliseconds wait, const LockOptions& options = {});
  Acquired lock_until(const std::string& key, std::chrono::steady_clock::time_point until,
                      const LockOptions& options = {});

  // The same without waiting for the answer. `wait`: nullopt or negative: one attempt; 0: for ever. `done`
  // is called once, on the client's thread, and must not throw.
  void lock_async(const std::string& key, std::optional<milliseconds> wait, const LockOptions& options,
                  std::function<void(Acquired)> done);
  std::future<Acquired> lock_future(const std::string& key, std::optional<milliseconds> wait,
                                    const LockOptions& options = {});

 private:
  friend class Leases;
  Acquired await_lock(const std::string& key, std::optional<milliseconds> wait, const LockOptions& options);

  std::shared_ptr<ClientCore> core_;
};

}  // namespace holdfast
