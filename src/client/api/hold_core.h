// One lock from its first request to its end: renews it, and calls the user's callbacks. The driver does
// what the lock needs at its servers. Members that the user's threads may read are atomic or constant; all
// others are for the loop's thread.
//
// The phases, each a struct in hold_phases.h, made on entry and dropped on exit:
//   Acquiring  until the driver has the lock
//   Holding    renew, and follow the events of the key
//   Ending     the hold is released, lost or given up, or was not acquired: the last answers
//   Over
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/api/hold_phases.h"
#include "client/api/lock_driver.h"
#include "client/api/wait_limit.h"
#include "client/transport/transport.h"
#include "holdfast/client.h"

namespace holdfast {

class ClientCore;

class HoldCore : public std::enable_shared_from_this<HoldCore>, private LockUser {
 public:
  using Done = hold::Done;

  // `done` is called once, on the loop's thread.
  HoldCore(std::shared_ptr<ClientCore> client, std::string key, WaitLimit wait, LockOptions options,
           Done done);
  ~HoldCore() override;

  // For any thread, as the functions of Hold:
  bool is_locked() const;
  milliseconds validity() const;
  uint64_t token() const { return token_; }
  const std::string& key() const { return key_; }
  const std::string& owner() const { return owner_; }
  Status extend(milliseconds ttl);
  Status unlock(milliseconds at_least);
  // Releases the lock without waiting for the answer.
  void detach();
  // Ends without a release, and without waiting.
  void leave();
  bool is_forked() const;

  // Ends the request before its start, because the client is closed: `done` gets kCancelled.
  void refuse();

  // For the loop's thread only:
  void start();
  // The same because of a stop before the start.
  void refuse_stopped();
  // The caller cancels the acquisition. No effect after the grant.
  void stop();
  // The client is being destroyed: releases the lock, or ends the wait with kCancelled.
  void cancel();

 private:
  static constexpr const char* kDestroyed = "the client was destroyed";
  static constexpr const char* kStopped = "the caller cancelled the wait";
  using Acquiring = hold::Acquiring;
  using Holding = hold::Holding;
  using Ending = hold::Ending;
  using Answer = hold::Answer;

  // The phases, and what follows from the news of the driver: hold_core.cc
  void driver_changed() override { drive(); }
  void drive();
  void run(Acquiring& acquiring);
  void run(Ending& ending);
  void use_driver(bool tickets);
  void change_driver(Acquiring& acquiring);
  void begin_to_hold(Acquiring acquiring);
  void fail(Acquiring&& ended);
  void end();
  void refuse(const char* why);
  void release(DurationMs at_least = {0});
  void stop_without_release();
  void free_lost(Ending& ending);
  void on_timer();
  void arm_timer();

  // The phase Holding: hold_holding.cc
  void run(Holding& holding);
  bool begin_next(Holding& holding);
  void begin_renewal(Holding& holding, DurationMs ttl, bool repair, Answer answer = nullptr);
  void record_renewal(Holding& holding);
  void notify_renewal(Holding& holding, const Status& status);
  void verify(Holding& holding);
  void set_times(Holding& holding);
  void set_end(Holding& holding, DurationMs ttl);
  void on_time(Holding& holding);
  void on_event(const std::string& message);
  LossReason expiry_reason(const Holding& holding) const;
  void lose(Status why, TimeMs free_at, LossReason reason);
  void begin_to_release(Holding& holding, DurationMs at_least);
  Ending end_of(Holding& holding);
  static Status not_held() { return {Outcome::kExpired, "the lock is not held any more"}; }
  Status named(Status status) const;
  Status ask(const std::function<void(Answer)>& work);

  const std::shared_ptr<ClientCore> client_;
  const std::string key_;
  const LockOptions options_;
  const WaitLimit wait_;
  const std::vector<size_t> servers_;  // the servers of the key, as indexes into the client's servers
  hold::Phase phase_;
  std::shared_ptr<LockDriver> driver_;  // from start() to the end
  std::unique_ptr<client::LoopTimer> timer_;

  // For any thread. Owner and token are written before `done` is called, then constant:
  std::string owner_;
  uint64_t token_ = 0;
  std::atomic<bool> locked_ = false;
  std::atomic<bool> detached_ = false;
  std::atomic<int64_t> valid_until_ms_ = 0;
};

}  // namespace holdfast
