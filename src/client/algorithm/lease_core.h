// One lease over its store: how each answer changes its state. Knows no server; the time comes from the
// clock in LeaseBackend.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/types.h"
#include "holdfast/lease.h"

namespace holdfast {

// A store that can cancel a lease without blocking the caller, as a Holdfast server does.
class ServerLeaseStore : public LeaseStore {
 public:
  // Cancels the lease without waiting. If an answer is lost, retries for at most `at_most` ms.
  virtual void cancel_later(const std::string& lease, milliseconds at_most) = 0;
  // Throws std::logic_error on the client's own thread, and in a child of fork().
  virtual void forbid_to_wait() const = 0;
};

// The parts that all leases of one store share.
struct LeaseBackend {
  std::shared_ptr<LeaseStore> store;
  std::shared_ptr<ServerLeaseStore> server;  // the same object if the store is a server; otherwise null
  std::function<TimeMs()> clock;             // monotonic
};

class LeaseCore {
 public:
  // The caller has checked the documents and the TTL.
  LeaseCore(LeaseBackend place, std::vector<Document> documents, milliseconds ttl);
  LeaseCore(const LeaseCore&) = delete;
  LeaseCore& operator=(const LeaseCore&) = delete;
  // Cancels the lease unless it has ended.
  ~LeaseCore();

  // Grants the lease and waits for the answer, as Leases::lease() does. Call it once, before the functions
  // of Lease.
  Status grant();

  // The functions of Lease; any thread may call them.
  Lease::State state() const;
  milliseconds validity() const;
  std::vector<Document> documents() const;
  Result<std::vector<uint64_t>> confirm();
  Status renew(std::optional<milliseconds> ttl);
  Status cancel();

 private:
  using Verdict = LeaseStore::Verdict;
  struct Answers;  // the answers to one call of the store

  void forbid_after_fork() const;
  void forbid_to_wait() const;
  Status refuse_grant(const Answers& result);
  // The caller holds mutex_:
  Lease::State state_now() const;
  // The caller holds mutex_ and turn_:
  Status check_open(std::unique_lock<std::mutex>& lock);
  // The caller holds turn_, but not mutex_:
  Answers touch(std::optional<milliseconds> ttl);
  Status judge(const Answers& result, bool by_us);
  void end_as(Lease::State state);
  Status expire(const std::vector<Document>& left, const char* why);
  Answers remove(const std::vector<Document>& documents);
  std::exception_ptr roll_back(const std::vector<Document>& documents);

  const LeaseBackend backend_;
  const std::string id_;
  const pid_t pid_;
  std::mutex turn_;  // one call to the store at a time; locked before mutex_; guards the next three
  milliseconds ttl_;
  bool confirm_asked_ = false;  // the store got a confirm and may have done it: time alone ends nothing
  bool cancel_asked_ = false;   // the store got a cancel and may have done it
  mutable std::mutex mutex_;    // guards the members below; never held during a call to the store
  std::vector<Document> documents_;
  Lease::State state_ = Lease::State::kExpired;  // until the grant
  bool doubt_of_confirm_ = false;                // kInDoubt, and the lease may be confirmed
  TimeMs valid_until_;
};

}  // namespace holdfast
