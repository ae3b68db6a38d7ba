// A lock that the program holds.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "holdfast/options.h"
#include "holdfast/result.h"

namespace holdfast {

class HoldCore;

// A lock that this program holds. The destructor releases it without waiting for the answer.
//
// Thread safety: any thread may call any function at any time, except moving and destroying.
// Ownership: a Hold may outlive its Client, but the destructor of the Client releases the lock.
class [[nodiscard]] Hold {
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
  // Return the key, and the owner that the servers know: 32 hexadecimal digits, on a quorum also a dot and
  // a number. Empty for an empty Hold. They are valid as long as this object.
  std::string_view key() const;
  std::string_view owner() const;

  // Renews the lock: its TTL starts again, with `ttl` ms, which the watchdog uses from now on. Waits for
  // the answer. Returns kOk; kExpired if the lock is not held any more; or kBusy, kUnreachable or kRefused
  // if too few servers confirmed the renewal; kCancelled if the client was destroyed. After a failure the
  // hold stays valid until its validity ends. Throws std::invalid_argument if `ttl` is not kShortestTtl to
  // kLongestTtl, std::logic_error on the client's own thread.
  Status extend(milliseconds ttl);
  // Releases the lock and waits for the answer. Returns kOk; kExpired if the lock was lost or released
  // before; kUnreachable or kRefused if too few servers confirmed the release; kCancelled if the client was
  // destroyed. Throws std::invalid_argument if `at_least` is out of range, std::logic_error on the client's
  // own thread.
  //
  // If `at_least` is not over yet, the call does not wait for its end. The watchdog stops, and the servers
  // get the rest of that time as the TTL, plus 1 % for clock drift. The lock then expires by itself. If too
  // few servers confirm that TTL, the lock is not released either: on each server it expires with the last
  // TTL there. So a `ttl` that is not below `at_least` keeps the promise in this case, too.
  Status unlock(const UnlockOptions& options = {});
  // Gives up control of the lock without a release and without waiting: the servers keep it until its TTL
  // is over, whatever happens to this object and to the client. The watchdog stops, and on_lost is not
  // called any more. The servers get no message. A client that knows key() and owner() can still release
  // the lock.
  void leave();

 private:
  std::shared_ptr<HoldCore> core_;
};

}  // namespace holdfast
