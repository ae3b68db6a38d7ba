// The settings of clients and locks, and what a wait reports. Plain data.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

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
  // Cancels the acquisition: the outcome is kCancelled, at once. The client then removes the wait from the
  // servers, and releases what they granted or still grant to it. A request for a stop has no effect after
  // the grant. Any thread may call request_stop(), also in a callback.
  std::stop_token stop;
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
  std::function<void(const Status&)> on_lost;
  // A renewal failed: too few servers confirmed it. `status` has the answer of each server. The hold stays
  // valid until its validity ends, and the client retries. Called once until on_renewal_restored.
  std::function<void(const Status& status)> on_renewal_failed;
  // A renewal succeeded after on_renewal_failed.
  std::function<void(const Status& status)> on_renewal_restored;
  // An attempt failed and the wait continues with further attempts: other clients hold the lock, or servers
  // do not answer. Not called while the wait is in a server's queue.
  std::function<void(const Status&)> on_attempt_failed;
  // Why a call still waits: 0.3 to 1.6 s after the wait began, and again after 5 s, 10 s, 20 s and so on up
  // to every 60 s. If it is set, and only then, a wait sends LOCKS INFO to each server of the lock at these
  // times, and CLIENT LIST for the holders' connections. An ACL user needs the rights +locks|info and, for
  // the addresses, +client|list. Without these rights the wait goes on, and the status says less. A single
  // attempt does not call it.
  std::function<void(const WaitStatus&)> on_waiting;
  // A client asks the holder for the lock, by LOCKS REVOKE. The hold stays valid.
  std::function<void()> on_revoke_requested;
  // The next two set how a wait repeats its attempts if no server queue is available: servers are
  // unreachable, or the server is Redis. If either is set, a wait on Redis consists of such attempts.
  // Otherwise it follows the events of the key. On a quorum of Holdfast servers each `timeout` without a
  // majority that answers is an attempt, and there is no pause.
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
  std::function<void(const ClientEvent& event)> on_event = {};
  // Where a coroutine continues after a co_await of this client. The client's own thread calls it with the
  // work that resumes the coroutine. It passes the work to the program's executor, and must not throw or
  // block. Empty: the coroutine continues on the client's own thread, where it must not block, and a call
  // that waits for an answer throws std::logic_error.
  std::function<void(std::function<void()> work)> resume = {};
};

}  // namespace holdfast
