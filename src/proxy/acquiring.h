// An acquisition for a client, from the first request to the servers to the hold or the reason why there is
// none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/result.h"
#include "proxy/quorum.h"

namespace holdfast::proxy {

class Gateway;

class Acquiring : public std::enable_shared_from_this<Acquiring> {
 public:
  enum class Result : uint8_t { kHeld, kBusy, kTimeout, kDeadlock, kFailed };
  struct Wish {
    std::string key;
    std::string value;              // the client's owner or value
    std::optional<DurationMs> ttl;  // from the answer to the client on; nullopt: none
    client::LockMode mode = client::LockMode::kExclusive;
    uint32_t limit = 1;
    std::string note;
    DurationMs delay{0};
    std::optional<DurationMs> wait = DurationMs{0};  // 0: one try; nullopt: no limit
  };

  // `queued` is called once when other clients hold the key and the acquisition waits. kHeld: an exclusive
  // hold is in OwnHolds. The callbacks are not called within begin() and cancel().
  Acquiring(Gateway& gateway, Wish wish, std::function<void()> queued, std::function<void(Result)> done);
  ~Acquiring();
  Acquiring(const Acquiring&) = delete;
  Acquiring& operator=(const Acquiring&) = delete;

  void begin();
  // Ends it, also if it has succeeded and `done` has not been called; `done` is not called.
  void cancel();

  // The slot: its owners on the servers begin with it.
  const std::string& slot() const { return slot_; }
  // After kHeld:
  uint64_t token() const { return token_; }
  const std::string& owner() const { return owner_; }
  TimeMs valid_until() const { return valid_until_; }
  // After any other result:
  const Status& status() const { return status_; }

 private:
  void look();
  void look_at_hold();
  void look_at_end();
  bool lasts() const;
  void renew();
  void end(Result result);

  Gateway& gateway_;
  const Wish wish_;
  const std::string slot_;
  std::function<void()> queued_;
  std::function<void(Result)> done_;
  std::unique_ptr<DrivenLock> lock_;
  client::TimeUs begun_;  // the acquisition, or the last renewal
  bool waited_ = false;   // in the queues of the servers
  bool renewing_ = false;
  uint64_t token_ = 0;
  std::string owner_;
  TimeMs valid_until_;
  Status status_;
};

}  // namespace holdfast::proxy
