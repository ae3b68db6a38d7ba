// A request of a client from its arrival to its answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/remote_keys.h"
#include "core/codec/reply.h"
#include "proxy/key_state.h"
#include "proxy/quorum.h"

namespace holdfast::proxy {

class Gateway;

// The error for a value that is too long for an owner on the servers.
std::string long_value_error();
// The error for a TTL that the proxy does not take; empty if it takes it.
std::string refuse_ttl(const Gateway& gateway, std::optional<DurationMs> ttl);

class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Gateway& gateway, ConnId conn) : gateway_(gateway), conn_(conn) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  virtual void begin() = 0;
  // How long it may take; nullopt: without a limit.
  virtual std::optional<DurationMs> limit() const;
  // Answers with this error. If the request is an EXEC that has not run, the transaction is over.
  void fail(std::string_view error);
  // Nobody waits for the answer any more. The call ends what it has begun, and answers nothing.
  virtual void drop() { dropped_ = true; }

  ConnId conn() const { return conn_; }

 protected:
  void answer(std::string_view reply);
  void answer_error(std::string_view text);
  void answer_integer(int64_t value);
  // fail() with -UNAVAILABLE and the servers that failed.
  void fail_unavailable(const std::vector<std::string>& failed);

  bool dropped() const { return dropped_; }

  Gateway& gateway_;

 private:
  const ConnId conn_;
  bool dropped_ = false;
};

// Whether a transaction names a key.
bool has_key(const QueuedRequests& requests);

// LOCK.
std::shared_ptr<Call> make_lock_call(Gateway& gateway, const RemoteLock& lock);
// RENEW and UNLOCK.
std::shared_ptr<Call> make_renew_call(Gateway& gateway, const RemoteRequest& request);
std::shared_ptr<Call> make_unlock_call(Gateway& gateway, const RemoteRequest& request);
// A request that runs on a copy of its key.
std::shared_ptr<Call> make_copy_call(Gateway& gateway, const RemoteRequest& request);
// A request that gets only this error.
std::shared_ptr<Call> make_error_call(Gateway& gateway, ConnId conn, std::string text);

}  // namespace holdfast::proxy
