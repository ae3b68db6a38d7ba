// Locks for programs: `Client` connects to the servers, `Hold` is a lock that this program holds. `Mutex`
// (mutex.h) is a lock for std::unique_lock and the like.
//
//   holdfast::Client client("holdfast://127.0.0.1:7379");
//   if (auto [result, hold] = client.lock_for("printer", 10s); result) {
//     print(document, hold.token());  // the storage refuses a token smaller than the largest it has seen
//   }                                  // the end of the scope releases the lock
//
// A lock with a time to live (TTL) expires if its holder stops, for example while the machine is suspended.
// hold.validity() and on_lost report this in time. A storage that checks tokens is safe in every case.
//
// After fork() a child process must not use the objects of its parent: calls there throw std::logic_error,
// and destroying the objects there does nothing. The child makes a Client of its own.
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
#include "holdfast/stats.h"

namespace holdfast {

using std::chrono::milliseconds;

// How many holders a key may have at the same time.
enum class Mode : uint8_t {
  kExclusiveLock,  // one holder
  kSharedLock,     // any number of readers
  kCountedLock,    // at most LockOptions::limit holders
};

// Growing pauses between attempts, with full jitter: the pause after the n-th attempt is a random time
// from 0 to first * factor^(n-1), at most `longest`. Times in milliseconds.
struct RetryBackoff {
  static constexpr double kLargestFactor = 100;

  milliseconds first{100};      // at least 1 ms
  double factor = 2;            // 1 to kLargestFactor
  milliseconds longest{10000};  // at least `first`
};

// A holder of a lock, as the servers report it.
struct HolderStatus {
  std::string owner;
  milliseconds held{0};              // time since the grant
  std::optional<milliseconds> left;  // rest of the TTL, which the holder can renew; nullopt: no TTL
  int64_t connection = 0;            // CLIENT ID of its connection to the first of `servers`; 0: unknown
  std::string address;               // "host:port" of that connection; empty: unknown
  std::string name;                  // its name, set by CLIENT SETNAME; empty: unknown
  std::vector<std::string> servers;  // servers that report this holder
};

// The cause of a wait, as the servers have just reported it.
struct WaitStatus {
  std::vector<HolderStatus> holders;  // in the order of their tokens; empty: no server reports one
  milliseconds delay{0};              // rest of the lock-delay, in which the servers grant nothing
  size_t place = 0;                   // place of this wait in a server's queue, from 1; 0: in no queue
  size_t waiters = 0;                 // waiters in that queue
  // All servers of the lock. kOk: the server replied; kRefused: it rejected the question, `text` has its
  // error; kUnreachable: no reply, or none yet.
  std::vector<ServerReport> servers;
};

// Settings of an acquisition and of the hold. The functions of Client throw std::invalid_argument if a
// value is out of range.
struct LockOptions {
  static constexpr milliseconds kShortestTtl{10};
  static constexpr milliseconds kLongestTtl{(int64_t{1} << 53) - 1};
  static constexpr size_t kLongestNote = 256;  // bytes

  Mode mode = Mode::kExclusiveLock;
  uint32_t limit = 1;       // for kCountedLock: the most holders, 1 to 2147483647
  milliseconds ttl{30000};  // a hold expires so long after its last renewal; kShortestTtl to kLongestTtl
  // Why this program wants the lock, for people: LOCKS INFO and `holdfast info` show it to every user that
  // may read the key, so it must not contain secrets. Any bytes, at most kLongestNote. A server that does
  // not know notes gets the request without it.
  std::string note;
  bool renew = true;            // a watchdog renews the hold every third of the ttl, until it is released
  milliseconds warn_before{0};  // on_expiring is called if no renewal came so long before the end; 0: never
  // The callbacks run on the client's own thread. They must not throw, block for long, or destroy the
  // client; a call that waits for an answer throws std::logic_error there. A callback may still run while
  // the hold is destroyed, but not after its unlock() returned.
  //
  // The validity ends in `warn_before` unless a renewal succeeds.
  std::function<void()> on_expiring;
  // The program can no longer rely on the lock, although it did not release it. Called once, before the
  // validity ends.
  std::function<void(const Result&)> on_lost;
  // A renewal failed: too few servers confirmed it. `result` has the answer of each server. The hold stays
  // valid until its validity ends, and the client retries. Called once until on_renewal_restored.
  std::function<void(const Result& result)> on_renewal_failed;
  // A renewal succeeded after on_renewal_failed.
  std::function<void(const Result& result)> on_renewal_restored;
  // An attempt failed and the wait continues with further attempts: other clients hold the lock, or servers
  // do not answer. Not called while the wait is in a server's queue.
  std::function<void(const Result&)> on_attempt_failed;
  // Why a call still waits: 0.3 to 1.6 s after the wait began, and again after 5 s, 10 s, 20 s and so on up
  // to every 60 s. If it is set, and only then, a wait sends LOCKS INFO to each server of the lock at these
  // times, and CLIENT LIST for the holders' connections. An ACL user needs the rights +locks|info and, for
  // the addresses, +client|list; without them the wait goes on, and the status says less. Not called for a
  // single attempt.
  std::function<void(const WaitStatus&)> on_waiting;
  // A client asks the holder for the lock, by LOCKS REVOKE. The hold stays valid.
  std::function<void()> on_revoke_requested;
  // The next two set how a wait repeats its attempts if no server queue is available: servers are
  // unreachable, or the server is Redis. If either is set, a wait on Redis consists of such attempts.
  // Otherwise it follows the events of the key.
  uint32_t max_attempts = 0;  // attempts that a wait begins; 0: the address's `attempts`, or no limit
  std::optional<RetryBackoff> backoff;  // none: the address's, or a random min-wait to max-wait
};

struct UnlockOptions {
  // The servers keep the lock for at least so long after the grant, even if unlock() is called earlier.
  // 0 to LockOptions::kLongestTtl.
  milliseconds at_least{0};
};

// Settings of a Client.
struct ClientOptions {
  // The name of the client's connections, which CLIENT LIST and LOCKS INFO show (CLIENT SETNAME). A blank,
  // and each character that is not printable ASCII, becomes '-'; only the first 128 bytes count. Empty: the
  // client sends neither a name nor the library's version (CLIENT SETINFO). A server may reject both: the
  // connection works without them. They add no round trip.
  std::string name = "holdfast-lib";
  // Gets each event, for the program's own metrics. It runs on the client's own thread, which serves all
  // locks of the client, right after the event was counted for stats(): it must not block, wait for this
  // client or destroy it. An exception that it throws is discarded. It is not called after ~Client().
  std::function<void(const ClientEvent& event)> on_event;
};

class ClientCore;
class HoldCore;

// A lock that this program holds. The destructor releases it without waiting for the answer.
//
// Thread safety: any thread may call any function at any time, except moving and destroying.
// Ownership: a Hold may outlive its Client, but the destructor of the Client releases the lock.
class Hold {
 public:
  Hold() = default;  // holds nothing
  explicit Hold(std::shared_ptr<HoldCore> core);
  Hold(Hold&&) = default;
  // Exchanges the locks of both objects: the earlier lock of this object is released with `other`.
  Hold& operator=(Hold&& other) noexcept;
  ~Hold();

  // Returns whether the program can rely on the lock at this moment. False after its validity ended, and
  // after the lock was lost, released or left. Never waits.
  bool is_locked() const;
  explicit operator bool() const { return is_locked(); }
  // Returns for how many more milliseconds the program can rely on the lock; 0 if it is not locked. Never
  // waits.
  milliseconds validity() const;
  // Returns the fencing token, 1 or more; 0 for an empty Hold. It grows with each acquisition of the key,
  // whichever servers grant it.
  uint64_t token() const;
  // Return the key, and the owner (32 hexadecimal digits) that the servers know; empty for an empty Hold.
  const std::string& key() const;
  const std::string& owner() const;

  // Renews the lock: its TTL starts again, with `ttl` ms, which the watchdog uses from now on. Waits for
  // the answer. Returns kOk; kExpired if the lock is not held any more; or kBusy, kUnreachable or kRefused
  // if too few servers confirmed the renewal; kCancelled if the client was destroyed. After a failure the
  // hold stays valid until its validity ends. Throws std::invalid_argument if `ttl` is not kShortestTtl to
  // kLongestTtl, std::logic_error on the client's own thread.
  Result extend(milliseconds ttl);
  // Releases the lock and waits for the answer. Returns kOk; kExpired if the lock was lost or released
  // before; kUnreachable or kRefused if too few servers confirmed the release; kCancelled if the client was
  // destroyed. Throws std::invalid_argument if `at_least` is out of range, std::logic_error on the client's
  // own thread.
  //
  // If `at_least` is not over yet, the call does not wait for its end. The watchdog stops, and the servers
  // get the rest of that time as the TTL, plus 1 % for clock drift. The lock then expires by itself. If too
  // few servers confirm that TTL, the lock is not released either: on each server it expires with the last
  // TTL there. So a `ttl` that is not below `at_least` keeps the promise in this case, too.
  Result unlock(const UnlockOptions& options = {});
  // Gives up control of the lock without a release and without waiting: the servers keep it until its TTL
  // is over, whatever happens to this object and to the client. The watchdog stops, and on_lost is not
  // called any more. The servers get no message. A client that knows key() and owner() can still release
  // the lock.
  void leave();

 private:
  std::shared_ptr<HoldCore> core_;
};

// The result of an attempt or a wait, and the lock if that is kOk. Otherwise `hold` is empty.
struct Acquired {
  Result result;
  Hold hold;
};

// A client of one server, of several servers that together are one lock service, or of the engine inside
// this process.
//
// Thread safety: any thread may call any function at any time, except destroying. The client has one thread
// of its own, which runs all callbacks.
//
// Errors: a failed acquisition is a Result, not an exception. All lock functions throw
// std::invalid_argument if an option is out of range. Functions that wait for an answer throw
// std::logic_error on the client's own thread, where they would wait for themselves.
class Client {
 public:
  // Connects when the first request needs it. `where` is one of:
  //   embedded:, embedded:name            no server: the engine inside this process, for its threads
  //   holdfast://host:port                one server; the port is 7379 unless given
  //   quorum://h1:p1,h2:p2,h3             several independent ones: a majority decides
  //   host:port; h1:p1,h2,h3              without a scheme: one is holdfast://, several are quorum://
  //   redis://host:port                   a stock Redis, by scripts; the port is 6379 unless given. May
  //                                       also stand in a quorum
  //   redis-cluster://h1,h2               a Redis Cluster, by some of its nodes
  //   holdfasts://, rediss://, rediss-cluster://   the same over TLS; in a quorum, per server
  // A login precedes a host: user:password@, or :password@ for the server's default user. Write %25 for %,
  // %2c for a comma, %2f for /, %3a for :, %3f for ? and %40 for @. A login after quorum:// is for all
  // servers without one; a login after the scheme of a server (quorum://holdfast://user:password@h1,h2) is
  // for that server. Servers without a login in the text get the login of the environment: HOLDFAST_USER
  // and HOLDFAST_PASSWORD. If a server rejects the login, the result is kRefused, also during a wait.
  // Settings follow a `?`, as in ?timeout=50&rfactor=3 (not for embedded:; default values in parentheses):
  //   timeout     a server that has not answered after so many ms counts as unreachable (1000)
  //   min-wait, max-wait   random pause in ms between attempts, where no queue is available (10, 100)
  //   attempts    the most attempts that a wait makes, where no queue is available (no limit)
  //   backoff, backoff-factor, backoff-max   growing pauses between attempts, instead of min-wait and
  //               max-wait: RetryBackoff's first (ms), factor (2) and longest (10000 ms)
  //   user, password   the login for all servers without one before the host (user:password@host)
  //   rfactor     how many of the servers store a key (all)
  //   wquorum, rquorum     how many servers must grant an exclusive and a shared lock (a majority)
  //   acks, ack-timeout    how many replicas of each Redis must acknowledge a grant (none), within how many
  //                        ms (half of timeout); otherwise the result is kRefused, after a release
  //   tls=yes     TLS for all servers
  //   cacert, cacertdir    a file, a directory: the trusted certificate authorities (the system's)
  //   cert, key   files: the certificate and key of this client, for servers that require one
  //   sni         the name that the servers' certificates must have (the host's)
  //   insecure    verifies no certificate: a machine in the middle can pose as the server
  // A counted lock needs all servers of its key: with fewer, different quorums could together admit more
  // holders than its limit. Redis has no queue of waiters. If a process with a lock on Redis vanishes, its
  // lock there expires with its TTL.
  // All clients of a process that name the same embedded engine share it. The engine ends with the last of
  // them. All its holds end with it, also those after leave(). The tokens of the next engine are larger. In
  // the next process they are larger, too, unless the clock was set back. A child of fork() has engines of
  // its own.
  // Throws std::invalid_argument if the text, or a file that it names, is wrong; the message says what is
  // wrong and what is valid. Throws std::system_error if the process can open no more files or start no
  // more threads.
  explicit Client(std::string_view where, const ClientOptions& options = {});
  // Releases all locks of this client and ends all waits with kCancelled. Waits until the servers answered
  // or timed out. Must not run on the client's own thread.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Makes one attempt. Returns kOk with the hold; kBusy if other clients hold the lock or wait for it; or
  // kUnreachable, kRefused, kExpired or kCancelled. Takes as long as the servers need to answer, at most a
  // few times the setting `timeout`; the last attempt of a wait may exceed the wait by as much.
  Acquired try_lock(const std::string& key, const LockOptions& options = {});
  // Waits without a time limit, and retries while servers are unreachable. Returns kOk with the hold;
  // kTimeout or the outcome of the last attempt if the limit of attempts is reached; kDeadlock, kRefused or
  // kCancelled.
  Acquired lock(const std::string& key, const LockOptions& options = {});
  // Waits for at most `wait` ms; makes one attempt if `wait` is 0 or negative. Returns kOk with the hold;
  // kTimeout if other clients held the lock until the end; otherwise the outcome of the last attempt.
  Acquired lock_for(const std::string& key, milliseconds wait, const LockOptions& options = {});
  // The same until a point in time; makes one attempt if that has passed.
  Acquired lock_until(const std::string& key, std::chrono::steady_clock::time_point until,
                      const LockOptions& options = {});

  // Begins to acquire the lock and returns at once. `wait` in ms: nullopt or negative: one attempt; 0: no
  // time limit. `done` gets the result: it is called exactly once, on the client's own thread, and must not
  // throw. Throws std::invalid_argument if `done` is empty.
  void lock_async(const std::string& key, std::optional<milliseconds> wait, const LockOptions& options,
                  std::function<void(Acquired)> done);
  // The same with a future, which always gets a result and never an exception.
  std::future<Acquired> lock_future(const std::string& key, std::optional<milliseconds> wait,
                                    const LockOptions& options = {});

  // Returns the counters of this client since it was made, for all of its locks and leases. Never waits.
  ClientStats stats() const;

 private:
  friend class Leases;
  Acquired await_lock(const std::string& key, std::optional<milliseconds> wait, const LockOptions& options);

  std::shared_ptr<ClientCore> core_;
};

}  // namespace holdfast
