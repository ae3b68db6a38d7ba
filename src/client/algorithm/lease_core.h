// One lease over its store: what each answer makes of its state. Knows no server; time is given to it.
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

// A store that cancels a lease without making the caller wait, as a Holdfast server does.
class ServerLeaseStore : public LeaseStore {
 public:
  // Cancels without waiting; asks again where the answer is lost, for at most that long.
  virtual void take_back(const std::string& lease, milliseconds at_most) = 0;
  // Throws std::logic_error on the client's own thread, and in a child of fork().
  virtual void forbid_to_wait() const = 0;
};

// What all leases of one store share.
struct LeasePlace {
  std::shared_ptr<LeaseStore> store;
  std::shared_ptr<ServerLeaseStore> server;  // the same, where it is one; otherwise null
  std::function<TimeMs()> clock;             // monotonic
};

class LeaseCore {
 public:
  // Grants it, or throws as Leases::lease() does. The documents and the ttl have been checked.
  LeaseCore(LeasePlace place, std::vector<Document> documents, milliseconds ttl);
  LeaseCore(const LeaseCore&) = delete;
  LeaseCore& operator=(const LeaseCore&) = delete;
  // Takes it back unless it has ended.
  ~LeaseCore();

  // As those of Lease.
  Lease::State state() const;
  milliseconds validity() const;
  std::vector<Document> documents() const;
  std::vector<uint64_t> confirm();
  void renew(std::optional<milliseconds> ttl);
  void cancel();

 private:
  using Verdict = LeaseStore::Verdict;
  struct Told;  // what the answers to one call are together

  void forbid_after_fork() const;
  void forbid_to_wait() const;
  void grant();
  [[noreturn]] void refuse_grant(const Told& told);
  // mutex_ is held:
  Lease::State state_now() const;
  // turn_ is held, too:
  void forbid_end(std::unique_lock<std::mutex>& lock);
  // turn_ is held, mutex_ is not:
  Told touch(std::optional<milliseconds> ttl);
  void judge(const Told& told, bool by_us);
  void end_as(Lease::State state);
  [[noreturn]] void expire(const std::vector<Document>& left, const char* why);
  Told remove(const std::vector<Document>& documents);
  std::exception_ptr take_back(const std::vector<Document>& documents);

  const LeasePlace place_;
  const std::string id_;
  const pid_t pid_;
  std::mutex turn_;  // one call to the store at a time; owned before mutex_, and with it the next three
  milliseconds ttl_;
  bool confirm_asked_ = false;  // of the store, which may have done it; then time alone ends nothing
  bool cancel_asked_ = false;
  mutable std::mutex mutex_;  // of the rest; never held while the store is asked
  std::vector<Document> documents_;
  Lease::State state_ = Lease::State::kGranted;
  bool doubt_of_confirm_ = false;  // kInDoubt, and it is not cancelling alone that is in doubt
  TimeMs valid_until_;
};

}  // namespace holdfast
