// One lock from its first request to its end: drives a Redlock over the links, keeps it alive, and tells
// its user. What the user's threads may read is guarded; all else is for the loop's thread.
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
#include "client/transport/transport.h"
#include "holdfast/client.h"

namespace holdfast {

class ClientCore;

class HoldCore : public std::enable_shared_from_this<HoldCore> {
 public:
  using Done = std::function<void(Acquired)>;

  // `wait`: nullopt: one attempt; 0: for ever. `done` is called once, on the loop's thread.
  HoldCore(std::shared_ptr<ClientCore> client, std::string key, std::optional<milliseconds> wait,
           LockOptions options, Done done);

  // Any thread:
  bool is_locked() const;
  milliseconds validity() const;
  uint64_t token() const { return token_; }
  const std::string& key() const { return key_; }
  const std::string& owner() const { return owner_; }
  Result extend(milliseconds ttl);
  Result unlock(milliseconds at_least);
  // Gives it back without waiting for the answer.
  void let_go();
  // Ends without giving it back, and without waiting for anything.
  void leave();
  bool is_forked() const;

  // Ends it before it began, as the client is closed.
  void refuse();

  // The loop's thread:
  void start();
  // The client goes: gives back what is held, ends what is waited for.
  void cancel();

 private:
  enum class Phase : uint8_t { kAcquiring, kHolding, kEnding, kOver };
  using Answer = std::shared_ptr<std::promise<Result>>;
  struct Wait {
    size_t server = 0;
    client::Link::Wait wait{};
    bool answered = false;
  };

  client::Link& link(size_t server);
  bool may_extend() const;
  void drive();
  void send(const client::Send& send);
  void end_wait(uint64_t id);
  void hear(uint64_t id, const client::Reply& reply);
  void observe();
  void note_waiting();
  void become_holder();
  void note_renewal();
  void note_late_loss();
  void tell_renewal(const Result& result);
  void lose(Result why, TimeMs free_at);
  void free_lost();
  void answer_releases();
  void end();
  void on_timer();
  void arm_timer();
  void renew(DurationMs ttl, bool heal = true);
  void verify();
  void set_times();
  void set_end(DurationMs ttl);
  DurationMs share_of_time(int64_t ms, int64_t part) const;
  void watch();
  void unwatch();
  void on_event(const std::string& message);
  void give_back(DurationMs at_least = {0});
  void go_without();
  Result named(Result result) const;
  Result ask(const std::function<void(Answer)>& work);

  const std::shared_ptr<ClientCore> client_;
  const std::string key_;
  const LockOptions options_;
  Done done_;
  const std::vector<size_t> servers_;  // of the key, in the client's numbering
  client::Redlock machine_;
  const DurationMs server_timeout_;
  Phase phase_ = Phase::kAcquiring;
  bool cancelled_ = false;
  bool queued_ = false;  // it had to wait in a server's queue
  std::unique_ptr<client::LoopTimer> timer_;
  size_t under_way_ = 0;                      // replies that are still to come
  std::map<uint64_t, Wait> waits_;            // by the send's id
  std::vector<client::Link::Watch> watches_;  // one a server, or none
  DurationMs ttl_;                            // of the next renewal
  bool renewing_ = false;
  DurationMs renewing_ttl_;
  bool heals_ = true;     // the renewal under way, or the last one
  bool failing_ = false;  // told by on_renewal_failed, and not yet restored
  bool warned_ = false;
  bool pausing_ = false;  // between two attempts
  TimeMs renew_at_ = kNever;
  TimeMs warn_at_ = kNever;
  TimeMs lost_at_ = kNever;
  TimeMs free_at_ = kNever;                             // phase kEnding: lost, and not released before that
  std::vector<std::pair<DurationMs, Answer>> extends_;  // asked for, and not yet sent
  Answer extending_;
  std::vector<Answer> releases_;
  bool was_lost_ = false;
  bool left_ = false;  // phase kEnding, until the last request is answered

  // Written before `done_` is called, and not changed any more:
  std::string owner_;
  uint64_t token_ = 0;
  std::atomic<bool> locked_ = false;
  std::atomic<bool> let_go_ = false;
  std::atomic<int64_t> valid_until_ms_ = 0;
};

}  // namespace holdfast
