// A lock by attempts, or in the queue of a single server: drives a Redlock over the links of the client.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/algorithm/redlock.h"
#include "client/api/key_watch.h"
#include "client/api/lock_driver.h"
#include "client/transport/transport.h"

namespace holdfast {

class ClientCore;

class AttemptLock final : public LockDriver, public std::enable_shared_from_this<AttemptLock> {
 public:
  // `mode`: LOCK's words for the mode. `client` and `user` must outlive this object; after retire() `user`
  // need not.
  AttemptLock(ClientCore& client, LockUser& user, const client::RedlockConfig& config, std::string key,
              std::vector<std::string> mode, std::string note, std::vector<size_t> servers);

  void acquire() override;
  void renew(DurationMs ttl, bool repair) override;
  void stop_renewing() override { machine_.stop_renewing(); }
  void release(DurationMs at_least) override;
  void leave() override;
  void retire() override;

  State state() const override;
  bool is_finished() const override { return (left_ || machine_.settled()) && under_way_ == 0; }
  const Status& status() const override { return machine_.result(); }
  const Status* renewal() const override { return machine_.renewal(); }
  size_t attempts() const override { return machine_.attempts(); }
  std::string owner() const override { return machine_.owner(); }
  uint64_t token() const override { return machine_.token(); }
  TimeMs valid_until() const override { return machine_.valid_until(); }

 private:
  struct Wait {
    size_t server = 0;
    client::Link::Wait wait{};
    bool answered = false;
  };

  client::Link& link(size_t server);
  void drive();
  void send(const client::Send& send);
  void transmit(const client::Send& send, bool with_note);
  void receive_noted(const client::Send& noted, const client::Reply& reply);
  void receive(uint64_t id, const client::Reply& reply);
  void end_wait(uint64_t id);
  void on_event(const std::string& message);
  void on_time();
  void tell();

  ClientCore& client_;
  LockUser* user_;  // null after retire()
  const std::string key_;
  const std::string note_;
  const std::vector<size_t> servers_;  // as indexes into the client's servers
  client::Redlock machine_;
  size_t under_way_ = 0;             // requests without a reply
  std::map<uint64_t, Wait> waits_;   // by the send's id
  std::unique_ptr<KeyWatch> watch_;  // during a pause
  bool left_ = false;
  client::LoopTimer timer_;
};

}  // namespace holdfast
