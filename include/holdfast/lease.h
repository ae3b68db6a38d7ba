// Leases: several documents at once, all or none. A lease puts a document under each of several free keys,
// for a while; then it is confirmed, and they stay for ever, or cancelled, and they go.
//
//   holdfast::Leases leases(client);
//   holdfast::Lease lease = leases.lease({{"seat/12", "alice"}, {"seat/13", "alice"}});
//   pay();
//   lease.confirm();  // otherwise both seats are free again, at the latest when the time is over
//
// Everything waits for its answer, but for what tells a state and for the end of a Lease. After fork() a
// child must not use what its parent made: every call there throws std::logic_error, and destroying it
// there does nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "holdfast/client.h"

namespace holdfast {

struct Document {
  std::string key;    // any bytes
  std::string value;  // any bytes
  uint64_t etag = 0;  // of what is stored; 0: not known. Holdfast gives all of one lease its token
};

// Where leases keep their documents: for stores of your own. What belongs to which lease is told by etags;
// a lease never removes what has another one.
//
// Each function answers for each document, in their order. A store that could not reach all of its keys
// says kFailed of those, and not less of the others; or it throws, and then nothing is known of any. Calls
// for one lease follow one another, those for several come at once, from the threads that use the leases.
class LeaseStore {
 public:
  enum class Verdict : uint8_t {
    kDone,
    kExists,   // insert: something is under the key, and was left as it is
    kMissing,  // touch, remove: nothing is there any more
    kChanged,  // touch, remove: it has another etag; it was left as it is
    kFailed,   // what became of it is not known; `cause` may say why
    kSkipped,  // insert: nothing was put, as another key of the call is not free
    // Of touch and remove, for stores that remember leases:
    kConfirmed,  // the lease was confirmed before
    kCancelled,  // it was cancelled before
    kForgotten,  // there is no such lease, or nobody knows any more how it ended
  };
  struct Answer {
    Verdict verdict = Verdict::kFailed;
    uint64_t etag = 0;              // of kDone by insert: never 0. By touch: the new one; 0: as before
    std::exception_ptr cause = {};  // of kFailed
  };

  virtual ~LeaseStore() = default;
  LeaseStore() = default;
  LeaseStore(const LeaseStore&) = delete;
  LeaseStore& operator=(const LeaseStore&) = delete;

  // Puts each document whose key is free; it goes by itself after `ttl`. Each time that something is put it
  // has another etag. `lease` names the lease in all its calls, and is never used twice. A store that can
  // put all or none does so, with kExists for all that stand in the way and kSkipped for the others; what
  // another puts in spite of a collision is removed again by the lease.
  virtual std::vector<Answer> insert(const std::string& lease, const std::vector<Document>& documents,
                                     milliseconds ttl) = 0;
  // Lets each that has its etag live for `ttl` from now; nullopt: for ever. To do it twice is no mistake.
  virtual std::vector<Answer> touch(const std::string& lease, const std::vector<Document>& documents,
                                    std::optional<milliseconds> ttl) = 0;
  // Removes each that has its etag. Etag 0: it is not known whether the insert put it; a store that knows
  // which lease put what removes it then, another says kMissing, and it goes by itself.
  virtual std::vector<Answer> remove(const std::string& lease, const std::vector<Document>& documents) = 0;
};

// Why a lease was not granted, or could not be confirmed, renewed or cancelled.
class LeaseError : public std::runtime_error {
 public:
  LeaseError(const std::string& text, std::exception_ptr cause);
  // What the store failed with. Of a StoreError why it is one; of the others why something was left behind
  // that goes by itself when its ttl is over. Null: nothing failed.
  const std::exception_ptr& cause() const { return cause_; }

 private:
  std::exception_ptr cause_;
};

// Some keys are not free: nothing was leased.
class Collision : public LeaseError {
 public:
  Collision(std::vector<std::string> keys, std::exception_ptr cause);
  const std::vector<std::string>& keys() const { return keys_; }  // all of them, in the order given

 private:
  std::vector<std::string> keys_;
};

// Its time is over, or a document was removed or overwritten by others; what was left of the lease is
// removed.
class Expired : public LeaseError {
  using LeaseError::LeaseError;
};

// The lease was cancelled before.
class Cancelled : public LeaseError {
  using LeaseError::LeaseError;
};

// The lease was confirmed before.
class Confirmed : public LeaseError {
  using LeaseError::LeaseError;
};

// The store failed, or there was no answer; the text has what the store said, and what became of the lease.
class StoreError : public LeaseError {
  using LeaseError::LeaseError;
};

class LeaseCore;

// A lease that was granted. Where it is destroyed without having been confirmed or cancelled it is
// cancelled: with Holdfast without waiting for the answer (asked again for at most 10 s if that is lost,
// and as long as the client lives), with another store by LeaseStore::remove, and what that throws is
// dropped. Where that fails, or the client was destroyed before, its documents go when the ttl is over.
//
// Any thread may call any function at any time, but for moving and destroying; confirm(), renew() and
// cancel() then follow one another. What tells a state never waits for them. One that was moved from may
// only be destroyed or be given another.
class Lease {
 public:
  enum class State : uint8_t {
    kGranted,
    kConfirmed,
    kCancelled,
    kExpired,
    // confirm() or cancel() is under way, or had no answer: call it again. After a confirm() only the
    // store knows whether the documents will stay.
    kInDoubt,
  };

  explicit Lease(std::unique_ptr<LeaseCore> core);
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  State state() const;
  bool is_granted() const { return state() == State::kGranted; }
  bool is_confirmed() const { return state() == State::kConfirmed; }
  bool is_cancelled() const { return state() == State::kCancelled; }
  bool is_expired() const { return state() == State::kExpired; }  // known here, or by the time alone
  // How much longer the documents are there for sure while nobody else touches them: counts from before
  // they were asked for, less 1 % and 2 ms for clocks that run unevenly. 0: not granted any more.
  milliseconds validity() const;
  // As they were given, with the etags of what is stored.
  std::vector<Document> documents() const;

  // Makes the documents stay for ever, and returns their etags, in their order. Throws
  // - StoreError: in doubt; confirm() may be called again, and succeeds where an earlier one had done it;
  //   or cancel().
  // - Expired, Cancelled, Confirmed: so it is now.
  std::vector<uint64_t> confirm();

  // Lets the time start anew: for `ttl`, or for what it was last given. Throws
  // - StoreError: granted as before, for the shorter of the old and the new time; or in doubt as before.
  // - Expired, Cancelled, Confirmed: so it is now.
  void renew(std::optional<milliseconds> ttl = {});

  // Removes the documents; of an expired lease what is left of them, if anything. Throws
  // - StoreError: in doubt; what was not removed goes with its ttl, unless a confirm() was in doubt before.
  //   It can only be cancelled from now on.
  // - Cancelled, Confirmed: so it is now.
  void cancel();

 private:
  LeaseCore& core() const;
  std::unique_ptr<LeaseCore> core_;
};

class ServerLeases;

// Grants leases. Any thread may call any function at any time.
class Leases {
 public:
  static constexpr milliseconds kDefaultTtl{5000};

  // In the one server of `client`, whose documents all come and go at the same moment. They are strings
  // there. Throws std::invalid_argument where it has several: what puts several keys at once needs one
  // server that has them all. A client that is destroyed answers with StoreError.
  explicit Leases(Client& client);
  // In a store of your own, which must outlive this and the leases.
  explicit Leases(LeaseStore& store);

  // Puts the documents, all or none, for `ttl`, which is at least LockOptions::kShortestTtl. Throws
  // - Collision: some of the keys are not free.
  // - StoreError: nothing is leased. What may have been put is removed, as far as the store can be reached,
  //   or goes when its ttl is over.
  // - Expired: the answer took longer than the ttl; as for StoreError.
  // - std::invalid_argument: no documents, a key twice, a ttl out of range.
  Lease lease(std::vector<Document> documents, milliseconds ttl = kDefaultTtl);

 private:
  std::shared_ptr<LeaseStore> store_;
  std::shared_ptr<ServerLeases> server_;  // the same, where it is Holdfast's
};

}  // namespace holdfast
