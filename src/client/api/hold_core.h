// One lock from its first request to its end: drives a Redlock over the links, renews it, and calls the
// user's callbacks. Members that the user's threads may read are atomic or constant; all others are for the
// loop's thread.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/algorithm/redlock.h"
#include "client/api/wait_limit.h"
#include "client/transport/transport.h"
#include "holdfast/client.h"

namespace holdfast {

class ClientCore;
class WaitInquiry;

class HoldCore : public std::enable_shared_from_this<HoldCore> {
 public:
  using Done = std::function<void(Result<Hold>)>;

  // `done` is called once, on the loop's thread.
  HoldCore(std::shared_ptr<ClientCore> client, std::string key, WaitLimit wait, LockOptions options,
           Done done);

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
  enum class Phase : uint8_t { kAcquiring, kHolding, kEnding, kOver };
  using Answer = std::shared_ptr<std::promise<Status>>;
  struct Wait {
    size_t server = 0;
    client::Link::Wait wait{};
    bool quiet = false;
    bool answered = false;
  };

  client::Link& link(size_t server);
  bool may_extend() const;
  void drive();
  void send(const client::Send& send);
  void transmit(const client::Send& send, bool with_note);
  void receive(const client::Send& noted, const client::Reply& reply);
  void end_wait(uint64_t id);
  void receive(uint64_t id, const client::Reply& reply);
  void observe();
  void record_waiting();
  void begin_inquiry();
  void become_holder();
  void record_renewal();
  void record_late_loss();
  void notify_renewal(const Status& status);
  void refuse(const char* why);
  void lose(Status why, TimeMs free_at, LossReason reason);
  static microseconds since(int64_t begin_us);
  LossReason expiry_reason() const;
  void record_attempts();
  void record_end(Outcome outcome);
  void free_lost();
  void answer_releases();
  void end();
  void on_timer();
  void arm_timer();
  void renew(DurationMs ttl, bool heal = true);
  void verify();
  bool must_verify() const;
  void set_times();
  void set_end(DurationMs ttl);
  DurationMs share_of_time(int64_t ms, int64_t part) const;
  void watch();
  void unwatch();
  void on_event(const std::string& message);
  void release(DurationMs at_least = {0});
  void stop_without_release();
  Status named(Status status) const;
  Status ask(const std::function<void(Answer)>& work);

  const std::shared_ptr<ClientCore> client_;
  const std::string key_;
  const LockOptions options_;
  Done done_;
  const std::vector<size_t> servers_;  // the servers of the key, as indexes into the client's servers
  client::Redlock machine_;
  const DurationMs server_timeout_;
  Phase phase_ = Phase::kAcquiring;
  const bool may_wait_;
  const char* cancelled_ = nullptr;  // why it was cancelled
  bool queued_ = false;              // it had to wait in a server's queue
  std::unique_ptr<client::LoopTimer> timer_;
  std::string queued_owner_;                  // owner of the last LOCK that may wait in a server's queue
  std::shared_ptr<WaitInquiry> inquiry_;      // during a wait, for options_.on_waiting
  size_t under_way_ = 0;                      // requests without a reply
  std::map<uint64_t, Wait> waits_;            // by the send's id
  std::vector<client::Link::Watch> watches_;  // one for each server, or none
  DurationMs ttl_;                            // the TTL of the next renewal
  bool renewing_ = false;
  bool verify_later_ = false;  // something happened during the present renewal
  DurationMs renewing_ttl_;
  bool heals_ = true;     // the present or last renewal heals servers
  bool failing_ = false;  // on_renewal_failed was called, on_renewal_restored was not
  bool warned_ = false;
  bool pausing_ = false;  // between two attempts
  TimeMs renew_at_ = kNever;
  TimeMs warn_at_ = kNever;
  TimeMs lost_at_ = kNever;
  TimeMs free_at_ = kNever;                             // in kEnding: when to release the lost lock
  std::vector<std::pair<DurationMs, Answer>> extends_;  // calls of extend() that are not sent yet
  Answer extending_;
  std::vector<Answer> releases_;
  // For the counters of the client; times in us of Loop::now_us():
  int64_t asked_us_ = 0;
  int64_t granted_us_ = 0;
  int64_t renewing_us_ = 0;        // start of the present or last renewal
  size_t counted_attempts_ = 0;    // attempts that were counted
  bool waited_ = false;            // it did not end with the first attempt
  bool releasing_ = false;         // the release was not counted yet
  bool released_in_time_ = false;  // the validity was not over when the release began
  bool was_lost_ = false;
  bool left_ = false;  // leave() was called: kEnding until the last request is answered

  // For any thread. Owner and token are written before `done_` is called, then constant:
  std::string owner_;
  uint64_t token_ = 0;
  std::atomic<bool> locked_ = false;
  std::atomic<bool> detached_ = false;
  std::atomic<int64_t> valid_until_ms_ = 0;
};

}  // namespace holdfast
