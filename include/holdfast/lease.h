// Leases: several documents at once, all or none. A lease stores a document under each of several free
// keys, for a limited time. Then confirm() makes the documents permanent, or cancel() removes them.
//
//   holdfast::Leases leases(client);
//   if (auto lease = leases.lease({{"seat/12", "alice"}, {"seat/13", "alice"}})) {
//     pay();
//     if (!lease->confirm()) refund();
//   }  // an unconfirmed lease ends here: both seats are free again
//
// All functions wait for the store's answer, except those that read the state and the destructor of Lease.
// With a Holdfast server, the functions that wait throw std::logic_error on the client's own thread. After
// fork() a child process must not use the objects of its parent: calls there throw std::logic_error, and
// destroying them there does nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/client.h"

namespace holdfast {

// A key and its value. The etag names the stored version of the document.
struct Document {
  std::string key;    // any bytes
  std::string value;  // any bytes
  uint64_t etag = 0;  // of the stored version; 0: unknown. A Holdfast server uses the lease's token for all
};

// The storage of leases: the interface for a store of your own. Etags say which document belongs to which
// lease; a lease never removes a document with another etag.
//
// Each function returns one answer for each document, in the order of the documents. If a store cannot
// reach some of its keys, it answers kFailed for these and the real verdict for the others. If it throws,
// the result is unknown for all documents. The lease then reports kUnreachable, or the outcome of the Error
// (result.h) that was thrown; Status::cause has the exception.
//
// Thread safety: the threads that use the leases call the store. Calls for one lease come one after the
// other; calls for different leases are concurrent.
class LeaseStore {
 public:
  // The result for one document.
  enum class Verdict : uint8_t {
    kDone,
    kExists,   // insert: the key is not free; the store left its value unchanged
    kMissing,  // touch, remove: the document does not exist any more
    kChanged,  // touch, remove: the document has another etag; the store left it unchanged
    kFailed,   // the result is unknown; `cause` may have the reason
    kSkipped,  // insert: the store did not insert it, because another key of the call is not free
    // For touch and remove, by stores that remember leases:
    kConfirmed,  // the lease was confirmed before
    kCancelled,  // the lease was cancelled before
    kForgotten,  // the store does not know the lease, or does not know any more how it ended
  };
  struct Answer {
    Verdict verdict = Verdict::kFailed;
    uint64_t etag = 0;              // after kDone: of insert never 0; of touch the new etag, 0: unchanged
    std::exception_ptr cause = {};  // for kFailed; may be null
  };

  virtual ~LeaseStore() = default;
  LeaseStore() = default;
  LeaseStore(const LeaseStore&) = delete;
  LeaseStore& operator=(const LeaseStore&) = delete;

  // Inserts each document whose key is free. The document expires after `ttl` ms. Each inserted document
  // gets a new etag, also if its key had one before. `lease` names the lease in all its calls, and no other
  // lease ever has this name. A store that can insert all or none does so: it answers kExists for each key
  // that is not free, and kSkipped for the other documents. If a store inserts some documents in spite of a
  // collision, the lease removes them again.
  virtual std::vector<Answer> insert(const std::string& lease, const std::vector<Document>& documents,
                                     milliseconds ttl) = 0;
  // Sets the time to live of each document that has its etag: `ttl` ms from now; nullopt: no expiry. Must
  // be idempotent.
  virtual std::vector<Answer> touch(const std::string& lease, const std::vector<Document>& documents,
                                    std::optional<milliseconds> ttl) = 0;
  // Removes each document that has its etag. Etag 0: it is unknown whether insert() stored the document. A
  // store that knows the documents of each lease then removes it. Any other store answers kMissing, and the
  // document expires.
  virtual std::vector<Answer> remove(const std::string& lease, const std::vector<Document>& documents) = 0;
};

class LeaseCore;

// A granted lease. The destructor cancels it unless it was confirmed or cancelled. On a Holdfast server the
// destructor does not wait for the answer; if that is lost, the client retries for at most 10 s, as long as
// the client exists. On another store the destructor calls LeaseStore::remove and ignores its exceptions.
// If the cancellation fails, or the client was destroyed before, the documents expire with their TTL.
//
// Thread safety: any thread may call any function at any time, except moving and destroying. confirm(),
// renew() and cancel() run one after the other. The functions that read the state never wait for them. A
// Lease that was moved from may only be destroyed or assigned to; other calls throw std::logic_error.
class [[nodiscard]] Lease {
 public:
  enum class State : uint8_t {
    kGranted,
    kConfirmed,
    kCancelled,
    kExpired,
    // confirm() or cancel() is running, or got no answer: then call it again. After a confirm() without an
    // answer only the store knows whether the documents are permanent.
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
  bool is_expired() const { return state() == State::kExpired; }  // by the store, or by the local clock
  // Returns for how many more milliseconds the documents certainly exist, unless another client changes
  // them; 0 if the lease is not granted any more. Counts from before the request for them, minus 1 % and
  // 2 ms for clock drift.
  milliseconds validity() const;
  // Returns the documents as they were given, with the etags of their stored versions.
  std::vector<Document> documents() const;

  // The outcomes of the next three functions beside kOk:
  // - kUnreachable, kRefused: the store did not answer, or rejected the request. `message` has its error
  // and
  //   the present state of the lease.
  // - kExpired: the TTL is over, or another client removed or overwrote a document. The library removes the
  //   remaining documents of the lease.
  // - kLeaseConfirmed, kLeaseCancelled: the lease was confirmed or cancelled before.
  // - kCancelled: as kUnreachable, because the client was destroyed.
  // After kExpired, kLeaseConfirmed and kLeaseCancelled the lease has that state.

  // Makes the documents permanent. Returns their etags, in the order of the documents. After kUnreachable
  // and kRefused the state is kInDoubt: call confirm() again, which succeeds if an earlier call took
  // effect, or cancel().
  Result<std::vector<uint64_t>> confirm();

  // Renews the lease: its time starts again, with `ttl` ms; nullopt: with the last TTL. After kUnreachable
  // and kRefused the lease is granted as before, for the shorter of the old and the new time; or it is
  // kInDoubt as before. Throws std::invalid_argument if `ttl` is not kShortestTtl to kLongestTtl of
  // LockOptions.
  Status renew(std::optional<milliseconds> ttl = {});

  // Removes the documents; of an expired lease, those that remain. After kUnreachable and kRefused the
  // state is kInDoubt: documents that were not removed expire with their TTL, unless a confirm() was in
  // doubt before. From then on the lease can only be cancelled.
  Status cancel();

 private:
  LeaseCore& core() const;
  std::unique_ptr<LeaseCore> core_;
};

// Returns the state in words, as in "granted" or "in doubt".
std::string_view name_of(Lease::State state);

class ServerLeases;

// Grants leases. Thread safety: any thread may call any function at any time.
class Leases {
 public:
  static constexpr milliseconds kDefaultTtl{5000};

  // Keeps the documents in the one server of `client`, as strings. All documents of a lease appear and
  // disappear there at the same moment. Throws std::invalid_argument if the client has several servers: one
  // server must have all keys of a lease. After the client is destroyed, calls return kCancelled.
  explicit Leases(Client& client);
  // Keeps the documents in a store of your own. It is not owned and must outlive this object and its
  // leases.
  explicit Leases(LeaseStore& store);

  // Stores the documents, all or none, and returns the lease. `ttl` is in ms, kShortestTtl to kLongestTtl
  // of LockOptions. Returns
  // - kOk: with the lease.
  // - kBusy: some of the keys are not free. Status::keys has all of them, in the order of the documents.
  // - kUnreachable, kRefused: the store did not answer, or rejected the request. The library removes
  //   documents that may have been stored, if it reaches the store; otherwise they expire with their TTL.
  // - kExpired: the answer took longer than the TTL. The library removes the documents in the same way.
  // - kCancelled: the client was destroyed.
  // Throws std::invalid_argument: no documents, a key twice, or a TTL out of range.
  Result<Lease> lease(std::vector<Document> documents, milliseconds ttl = kDefaultTtl);

 private:
  std::shared_ptr<LeaseStore> store_;
  std::shared_ptr<ServerLeases> server_;  // the same object if the store is a Holdfast server; else null
};

}  // namespace holdfast
