#include "client/algorithm/lease_core.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "client/base/random.h"
#include "client/base/validity.h"
#include "core/base/parse.h"

namespace holdfast {

namespace {

// The client retries the cancellation of an abandoned lease for so long while the answers are lost.
constexpr milliseconds kTakeBackAtMost{10000};

const char* const kLost =
    "the lease has expired: a document was removed or overwritten, or the ttl is over";
const char* const kLate = "the lease has expired: its ttl is over";

std::string fresh_id() {
  std::array<uint8_t, 16> bytes{};
  client::fill_random(bytes);
  std::string id;
  append_hex(id, bytes);
  return id;
}

std::exception_ptr fault_of_store(const char* what) {
  return std::make_exception_ptr(std::runtime_error(what));
}

// The store may throw an Error; any other exception says only that its answer is unknown.
Status of_store(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const Error& error) {
    return error.status();
  } catch (const std::exception& e) {
    return {Outcome::kUnreachable, e.what()};
  } catch (...) {
    return {Outcome::kUnreachable, "an exception that is not a std::exception"};
  }
}

Status store_failed(const std::exception_ptr& cause, const std::string& what_now) {
  Status status = of_store(cause);
  status.message = "the store failed: " + status.message + "; " + what_now;
  status.cause = cause;
  return status;
}

Status ended(Outcome outcome, const char* message, const std::exception_ptr& cause = nullptr) {
  Status status{outcome, message};
  status.cause = cause;
  return status;
}

Status success() { return {Outcome::kOk, ""}; }

Status check_ended(Lease::State state) {
  if (state == Lease::State::kConfirmed)
    return ended(Outcome::kLeaseConfirmed, "the lease was confirmed before");
  if (state == Lease::State::kCancelled)
    return ended(Outcome::kLeaseCancelled, "the lease was cancelled before");
  return success();
}

}  // namespace

struct LeaseCore::Answers {
  std::vector<LeaseStore::Answer> answers;  // one for each document
  std::exception_ptr cause;                 // the reason of the first failure
  bool threw = false;                       // the store threw: all documents failed

  bool has(Verdict verdict) const {
    return std::ranges::any_of(answers, [&](const auto& answer) { return answer.verdict == verdict; });
  }

  void fail(LeaseStore::Answer& answer, const char* why) {
    answer.verdict = Verdict::kFailed;
    if (!answer.cause) answer.cause = fault_of_store(why);
    if (!cause) cause = answer.cause;
  }

  // Calls `ask` for n documents and returns its answers. An exception, and a verdict not in `allowed`,
  // count as kFailed.
  template <class Ask>
  static Answers of(size_t n, std::initializer_list<Verdict> allowed, const Ask& ask) {
    Answers result;
    try {
      result.answers = ask();
      if (result.answers.size() != n) throw std::runtime_error("it did not answer for each document");
    } catch (...) {
      result.threw = true;
      result.cause = std::current_exception();
      result.answers.assign(n, {Verdict::kFailed, 0, result.cause});
    }
    for (LeaseStore::Answer& answer : result.answers) {
      if (answer.verdict == Verdict::kFailed) result.fail(answer, "it gave no reason");
      if (std::ranges::find(allowed, answer.verdict) == allowed.end())
        result.fail(answer, "its answer does not fit the call");
    }
    return result;
  }
};

LeaseCore::LeaseCore(LeaseBackend place, std::vector<Document> documents, milliseconds ttl)
    : backend_(std::move(place)),
      id_(fresh_id()),
      pid_(getpid()),
      ttl_(ttl),
      documents_(std::move(documents)) {
  forbid_to_wait();
}

LeaseCore::~LeaseCore() {
  if (getpid() != pid_) return;
  if (state_ != Lease::State::kGranted && state_ != Lease::State::kInDoubt) return;
  try {
    roll_back(documents_);
  } catch (...) {  // no memory: the documents expire with their TTL
  }
}

void LeaseCore::forbid_after_fork() const {
  if (getpid() != pid_) throw std::logic_error("this holdfast::Lease belongs to the parent process");
}

void LeaseCore::forbid_to_wait() const {
  forbid_after_fork();
  if (backend_.server) backend_.server->forbid_to_wait();
}

// --- the state ---

// Returns the state at this moment. While a confirm() is in doubt the documents may be permanent, so time
// does not make the lease expire.
Lease::State LeaseCore::state_now() const {
  const bool timed =
      state_ == Lease::State::kGranted || (state_ == Lease::State::kInDoubt && !doubt_of_confirm_);
  return timed && is_due(valid_until_, backend_.clock()) ? Lease::State::kExpired : state_;
}

Lease::State LeaseCore::state() const {
  forbid_after_fork();
  const std::lock_guard lock(mutex_);
  return state_now();
}

milliseconds LeaseCore::validity() const {
  forbid_after_fork();
  const std::lock_guard lock(mutex_);
  if (state_ != Lease::State::kGranted) return milliseconds(0);
  return milliseconds(std::max<int64_t>(0, (valid_until_ - backend_.clock()).count));
}

std::vector<Document> LeaseCore::documents() const {
  forbid_after_fork();
  const std::lock_guard lock(mutex_);
  return documents_;
}

void LeaseCore::end_as(Lease::State state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
}

// --- grant ---

Status LeaseCore::grant() {
  const TimeMs from = backend_.clock();
  Answers result = Answers::of(documents_.size(),
                               {Verdict::kDone, Verdict::kExists, Verdict::kSkipped, Verdict::kFailed},
                               [&] { return backend_.store->insert(id_, documents_, ttl_); });
  for (LeaseStore::Answer& answer : result.answers) {
    if (answer.verdict == Verdict::kDone && answer.etag == 0)
      result.fail(answer, "it stored a document without an etag");
  }
  for (size_t i = 0; i < documents_.size(); ++i) documents_[i].etag = result.answers[i].etag;
  if (result.cause || result.has(Verdict::kExists) || result.has(Verdict::kSkipped))
    return refuse_grant(result);
  valid_until_ = client::end_of_validity(from, {ttl_.count()});
  if (is_due(valid_until_, backend_.clock()))
    return ended(Outcome::kExpired, "the store's answer took longer than the ttl", roll_back(documents_));
  state_ = Lease::State::kGranted;
  return success();
}

// Removes the documents that the store may have inserted. Returns the reason why no lease is granted.
Status LeaseCore::refuse_grant(const Answers& result) {
  std::vector<Document> put;
  std::vector<std::string> colliding;
  for (size_t i = 0; i < documents_.size(); ++i) {
    const Verdict verdict = result.answers[i].verdict;
    if (verdict == Verdict::kDone || verdict == Verdict::kFailed) put.push_back(documents_[i]);
    if (verdict == Verdict::kFailed) put.back().etag = 0;
    if (verdict == Verdict::kExists) colliding.push_back(documents_[i].key);
  }
  const std::exception_ptr left = put.empty() ? nullptr : roll_back(put);
  if (result.cause || colliding.empty()) {
    return store_failed(
        result.cause ? result.cause : fault_of_store("it skipped documents although no key collides"),
        left ? "the documents that it may have stored could not be removed; they expire with their ttl"
             : "no document is leased");
  }
  Status busy = ended(Outcome::kBusy, "", left);
  busy.message = colliding.size() == 1
                     ? "a key is not free: " + colliding.front()
                     : std::to_string(colliding.size()) + " keys are not free, first " + colliding.front();
  busy.keys = std::move(colliding);
  return busy;
}

// --- confirm, renew, cancel ---

// Touches all documents in the store and takes over their new etags. Returns the answers.
LeaseCore::Answers LeaseCore::touch(std::optional<milliseconds> ttl) {
  const std::vector<Document> documents = this->documents();
  Answers result = Answers::of(documents.size(),
                               {Verdict::kDone, Verdict::kMissing, Verdict::kChanged, Verdict::kFailed,
                                Verdict::kConfirmed, Verdict::kCancelled, Verdict::kForgotten},
                               [&] { return backend_.store->touch(id_, documents, ttl); });
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < documents_.size(); ++i) {
    const LeaseStore::Answer& answer = result.answers[i];
    if (answer.verdict == Verdict::kDone && answer.etag != 0) documents_[i].etag = answer.etag;
  }
  return result;
}

// Returns kOk unless a document is lost, or another client has ended the lease. `by_us`: an earlier
// confirm() of this object may have confirmed it.
Status LeaseCore::judge(const Answers& result, bool by_us) {
  std::vector<Document> left;
  for (size_t i = 0; i < documents_.size(); ++i) {
    const Verdict verdict = result.answers[i].verdict;
    if (verdict != Verdict::kMissing && verdict != Verdict::kChanged && verdict != Verdict::kForgotten)
      left.push_back(documents_[i]);
  }
  if (result.has(Verdict::kMissing) || result.has(Verdict::kChanged) || result.has(Verdict::kForgotten))
    return expire(left, kLost);
  if (result.has(Verdict::kCancelled)) {
    end_as(Lease::State::kCancelled);
    return ended(Outcome::kLeaseCancelled, "the lease was cancelled by another client");
  }
  if (result.has(Verdict::kConfirmed) && !by_us) {
    end_as(Lease::State::kConfirmed);
    return ended(Outcome::kLeaseConfirmed, "the lease was confirmed by another client");
  }
  return success();
}

// Removes `left`, the documents that may still be in the store, and returns kExpired. If they may be
// permanent and the removal failed, returns the store's failure, so that the caller cancels the lease
// again.
Status LeaseCore::expire(const std::vector<Document>& left, const char* why) {
  const std::exception_ptr cause = left.empty() ? nullptr : roll_back(left);
  if (cause && confirm_asked_) {
    cancel_asked_ = true;
    return store_failed(cause,
                        "some documents are lost, and the rest may stay for ever: call cancel() again");
  }
  end_as(Lease::State::kExpired);
  return ended(Outcome::kExpired, why, cause);
}

// Returns kOk unless the lease has ended or is being cancelled. `lock` holds mutex_; the caller must not
// rely on it after another outcome.
Status LeaseCore::check_open(std::unique_lock<std::mutex>& lock) {
  const Lease::State state = state_now();
  if (Status status = check_ended(state); !status) return status;
  if (state == Lease::State::kExpired) {
    const bool was_reported = state_ == Lease::State::kExpired;
    lock.unlock();
    return expire(was_reported ? std::vector<Document>{} : documents_, kLate);
  }
  if (cancel_asked_)
    return ended(Outcome::kLeaseCancelled, "a cancel() of the lease is in doubt: call cancel() again");
  return success();
}

Result<std::vector<uint64_t>> LeaseCore::confirm() {
  forbid_to_wait();
  const std::lock_guard turn(turn_);
  std::unique_lock lock(mutex_);
  if (Status status = check_open(lock); !status) return status;
  state_ = Lease::State::kInDoubt;
  doubt_of_confirm_ = true;
  lock.unlock();
  const bool again = std::exchange(confirm_asked_, true);
  const Answers result = touch(std::nullopt);
  if (again && result.has(Verdict::kForgotten))
    return store_failed(fault_of_store("it no longer knows the lease"),
                        "whether the lease was confirmed is unknown");
  if (Status status = judge(result, again); !status) return status;
  if (result.cause)
    return store_failed(result.cause, "whether the lease is confirmed is in doubt: call confirm() again");
  end_as(Lease::State::kConfirmed);
  std::vector<uint64_t> etags;
  for (const Document& document : documents_) etags.push_back(document.etag);
  return {success(), std::move(etags)};
}

Status LeaseCore::renew(std::optional<milliseconds> ttl) {
  forbid_to_wait();
  const std::lock_guard turn(turn_);
  const milliseconds wanted = ttl.value_or(ttl_);
  std::unique_lock lock(mutex_);
  if (Status status = check_open(lock); !status) return status;
  if (state_ == Lease::State::kInDoubt) {
    return store_failed(fault_of_store("it did not answer confirm()"),
                        "only confirm() or cancel() can end the doubt");
  }
  const TimeMs until = client::end_of_validity(backend_.clock(), {wanted.count()});
  valid_until_ = std::min(valid_until_, until);  // the store may have a shorter TTL already
  lock.unlock();
  const Answers result = touch(wanted);
  if (Status status = judge(result, false); !status) return status;
  if (result.cause)
    return store_failed(result.cause, "whether the lease is renewed is unknown: call renew() again");
  lock.lock();
  // state() may have reported kExpired meanwhile: the lease must not become valid again.
  if (state_now() == Lease::State::kExpired) {
    lock.unlock();
    return expire(documents_, kLate);
  }
  valid_until_ = until;
  ttl_ = wanted;
  return success();
}

Status LeaseCore::cancel() {
  forbid_to_wait();
  const std::lock_guard turn(turn_);
  std::unique_lock lock(mutex_);
  if (state_ == Lease::State::kExpired) return success();
  if (Status status = check_ended(state_); !status) return status;
  const bool late = state_now() == Lease::State::kExpired;
  state_ = Lease::State::kInDoubt;
  doubt_of_confirm_ = confirm_asked_;
  lock.unlock();
  const bool again = std::exchange(cancel_asked_, true);
  const Answers result = remove(documents_);
  if (result.has(Verdict::kConfirmed)) {
    end_as(Lease::State::kConfirmed);
    return ended(Outcome::kLeaseConfirmed, "the lease was confirmed before");
  }
  if (result.cause) {
    return store_failed(result.cause,
                        confirm_asked_
                            ? "whether the lease is confirmed or cancelled is in doubt: call cancel() again"
                            : "the remaining documents expire with their ttl");
  }
  if (confirm_asked_ && result.has(Verdict::kForgotten))
    return store_failed(fault_of_store("it no longer knows the lease"),
                        "whether the lease was confirmed is unknown");
  end_as(late ? Lease::State::kExpired : Lease::State::kCancelled);
  if (!again && !late && result.has(Verdict::kCancelled))
    return ended(Outcome::kLeaseCancelled, "the lease was cancelled by another client");
  return success();
}

// --- removal ---

// Removes the documents and returns the answers. If the store throws for all of
// them, removes each document by a call of its own. So one bad document does not keep the others in the
// store.
LeaseCore::Answers LeaseCore::remove(const std::vector<Document>& documents) {
  const auto ask = [&](const std::vector<Document>& some) {
    return Answers::of(some.size(),
                       {Verdict::kDone, Verdict::kMissing, Verdict::kChanged, Verdict::kFailed,
                        Verdict::kConfirmed, Verdict::kCancelled, Verdict::kForgotten},
                       [&] { return backend_.store->remove(id_, some); });
  };
  Answers result = ask(documents);
  if (!result.threw || documents.size() == 1 || backend_.server) return result;
  result = {};
  for (const Document& document : documents) {
    const Answers one = ask({document});
    result.answers.push_back(one.answers.front());
    if (!result.cause) result.cause = one.cause;
  }
  return result;
}

// Cancels the lease on a server without waiting, or removes the documents from another store. Returns the
// store's exception; null if it did not fail or is not known.
std::exception_ptr LeaseCore::roll_back(const std::vector<Document>& documents) {
  if (!backend_.server) return remove(documents).cause;
  backend_.server->cancel_later(id_, std::min(ttl_, kTakeBackAtMost));
  return nullptr;
}

}  // namespace holdfast
