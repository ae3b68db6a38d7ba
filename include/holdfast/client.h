// Locks for programs: `Client` connects to the servers, `Hold` is a lock that this program holds. `Mutex`
// (mutex.h) is a lock for std::unique_lock and the like.
//
//   holdfast::Client client("holdfast://127.0.0.1:7379");
//   if (auto hold = client.lock_for("printer", 10s)) {
//     print(document, hold->token());  // the storage refuses a token smaller than the largest it has seen
//   }                                  // the end of the scope releases the lock
//
// A lock with a time to live (TTL) expires if its holder stops, for example while the machine is suspended.
// Hold::validity() and on_lost report this in time. A storage that checks tokens is safe in every case.
//
// After fork() a child process must not use the objects of its parent: calls there throw std::logic_error,
// and destroying the objects there does nothing. The child makes a Client of its own.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/awaitable.h"
#include "holdfast/hold.h"
#include "holdfast/options.h"
#include "holdfast/result.h"
#include "holdfast/stats.h"

namespace holdfast {

class ClientCore;

// A client of one server, of several servers that together are one lock service, or of the engine inside
// this process.
//
// Thread safety: any thread may call any function at any time, except destroying. The client has one thread
// of its own, which runs all callbacks.
//
// Errors: a failed acquisition is a Result, not an exception. All lock functions throw
// std::invalid_argument if an option is out of range, and std::logic_error in a child of fork(). Functions
// that block throw std::logic_error on the client's own thread, where they would wait for themselves.
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

  // --- to acquire a lock ---
  // Each verb has four forms, with the same outcomes:
  //   lock(key, options)               blocks until the result
  //   lock_future(key, options)        a future, which always gets a result and never an exception
  //   lock_async(key, options, done)   `done` gets the result: it is called exactly once, on the client's
  //   own
  //                                    thread, and must not throw. It must not be empty
  //   co_lock(key, options)            an awaitable, see awaitable.h; it has copies of key and options
  //
  // LockOptions::stop cancels an acquisition of any form: the outcome is kCancelled.

  // Makes one attempt. Returns kOk with the hold; kBusy if other clients hold the lock or wait for it; or
  // kUnreachable, kRefused, kExpired or kCancelled. Takes as long as the servers need to answer, at most a
  // few times the setting `timeout`; the last attempt of a wait may exceed the wait by as much.
  Result<Hold> try_lock(std::string_view key, const LockOptions& options = {});
  [[nodiscard]] std::future<Result<Hold>> try_lock_future(std::string_view key,
                                                          const LockOptions& options = {});
  void try_lock_async(std::string_view key, const LockOptions& options,
                      std::function<void(Result<Hold>)> done);
  LockAwaitable co_try_lock(std::string_view key, const LockOptions& options = {});

  // Waits without a time limit, and retries while servers are unreachable. Returns kOk with the hold;
  // kTimeout or the outcome of the last attempt if the limit of attempts is reached; kDeadlock, kRefused or
  // kCancelled.
  Result<Hold> lock(std::string_view key, const LockOptions& options = {});
  [[nodiscard]] std::future<Result<Hold>> lock_future(std::string_view key,
                                                      const LockOptions& options = {});
  void lock_async(std::string_view key, const LockOptions& options, std::function<void(Result<Hold>)> done);
  LockAwaitable co_lock(std::string_view key, const LockOptions& options = {});

  // Waits for at most `wait` ms. If `wait` is 0 or negative, makes one attempt, as try_lock. Returns kOk
  // with the hold; kTimeout if other clients held the lock until the end; otherwise the outcome of the last
  // attempt.
  Result<Hold> lock_for(std::string_view key, milliseconds wait, const LockOptions& options = {});
  [[nodiscard]] std::future<Result<Hold>> lock_for_future(std::string_view key, milliseconds wait,
                                                          const LockOptions& options = {});
  void lock_for_async(std::string_view key, milliseconds wait, const LockOptions& options,
                      std::function<void(Result<Hold>)> done);
  LockAwaitable co_lock_for(std::string_view key, milliseconds wait, const LockOptions& options = {});

  // lock_for() until a point in time; makes one attempt if that has passed.
  Result<Hold> lock_until(std::string_view key, std::chrono::steady_clock::time_point until,
                          const LockOptions& options = {});

  // Returns the counters of this client since it was made, for all of its locks and leases. Never waits.
  ClientStats stats() const;

 private:
  friend class Leases;

  std::shared_ptr<ClientCore> core_;
};

}  // namespace holdfast
