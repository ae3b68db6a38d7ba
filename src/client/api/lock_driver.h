// One lock at its servers, from the first request to the release: what HoldCore needs of it. There are two
// kinds: TicketLock waits by ticket, on quorums of Holdfast servers; AttemptLock makes attempts. For the
// loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/api/wait_limit.h"
#include "core/base/types.h"
#include "holdfast/options.h"
#include "holdfast/result.h"

namespace holdfast {

class ClientCore;

// Gets the news of a driver, but not within a call of it. May call any function of the driver.
class LockUser {
 public:
  virtual ~LockUser() = default;
  virtual void driver_changed() = 0;
};

class LockDriver {
 public:
  // kQueued: a server has queued the request. kPausing: an attempt has failed; status() says why, and
  // another one follows.
  enum class State : uint8_t { kAcquiring, kQueued, kPausing, kHeld, kReleasing, kOver };

  LockDriver() = default;
  virtual ~LockDriver() = default;
  LockDriver(const LockDriver&) = delete;
  LockDriver& operator=(const LockDriver&) = delete;

  // Begins to acquire; call it once.
  virtual void acquire() = 0;
  // Begins a renewal; only in state kHeld. The hold stays, whatever the outcome. `repair`: servers without
  // the hold get it again; otherwise they are only counted.
  virtual void renew(DurationMs ttl, bool repair) = 0;
  // Forgets an unfinished renewal.
  virtual void stop_renewing() = 0;
  // Releases the hold, or cancels the acquisition. `at_least` counts from the grant: until then the servers
  // keep the hold.
  virtual void release(DurationMs at_least) = 0;
  // Gives the hold up without a release: the servers keep it for its TTL.
  virtual void leave() = 0;
  // The user needs no more news. The driver may still repeat the release to servers that have not answered.
  virtual void retire() = 0;

  virtual State state() const = 0;
  // Whether no answer is awaited any more, after the end of the hold or of the acquisition.
  virtual bool is_finished() const = 0;
  // A server does not know the requests of this kind of driver: AttemptLock must acquire the lock.
  virtual bool is_too_new() const { return false; }
  // In kPausing and kOver: why the attempt, the acquisition or the hold ended. In kHeld: how it was
  // acquired. The reports are in the order of the servers; their `server` is empty.
  virtual const Status& status() const = 0;
  // The outcome of the last complete renewal; null before the first and during a renewal. Only in kHeld.
  virtual const Status* renewal() const = 0;
  // How many attempts have begun.
  virtual size_t attempts() const = 0;
  // The owner of the present attempt, wait or hold.
  virtual std::string owner() const = 0;
  // In kHeld:
  virtual uint64_t token() const = 0;
  // Until when the lock is certainly held. It becomes later by a renewal, and soon after the acquisition if
  // the servers had not confirmed the hold before. If the user is warned before its end, they had.
  virtual TimeMs valid_until() const = 0;
};

// What an acquisition asks for.
struct LockRequest {
  const std::string& key;
  const std::vector<size_t>& servers;  // as indexes into the client's servers
  const LockOptions& options;
  WaitLimit wait;
};

// Returns the driver of a lock: by ticket, or by attempts. `client` and `user` must outlive it; after
// retire() `user` need not.
std::shared_ptr<LockDriver> make_ticket_lock(ClientCore& client, LockUser& user,
                                             const LockRequest& request);
std::shared_ptr<LockDriver> make_attempt_lock(ClientCore& client, LockUser& user,
                                              const LockRequest& request);

}  // namespace holdfast
