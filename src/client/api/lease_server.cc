#include "client/api/lease_server.h"

#include <algorithm>
#include <future>
#include <stdexcept>
#include <utility>

#include "client/api/client_core.h"
#include "client/base/server_error.h"

namespace holdfast {

namespace {

using client::Loop;
using client::Value;
using Answer = LeaseStore::Answer;
using Verdict = LeaseStore::Verdict;

// The pause between two attempts to cancel a lease.
constexpr DurationMs kPause{100};
constexpr const char* kBadAnswer = "an answer of an unknown form";

std::vector<Answer> all(size_t n, Verdict verdict, uint64_t etag = 0) {
  return std::vector<Answer>(n, Answer{verdict, etag, {}});
}

Error client_destroyed() { return Error({Outcome::kCancelled, "the client was destroyed"}); }

// Returns the lease outcome that an error reports; null if the error says nothing about the lease.
std::optional<Verdict> outcome_in(const Value& value) {
  switch (client::server_error_of(value)) {
    case ServerError::kLeaseExpired:
      return Verdict::kMissing;
    case ServerError::kLeaseConfirmed:
      return Verdict::kConfirmed;
    case ServerError::kLeaseCancelled:
      return Verdict::kCancelled;
    case ServerError::kNoLease:
      return Verdict::kForgotten;
    default:
      return std::nullopt;
  }
}

// Cancels a lease and retries while answers are lost. Its own requests and its timer keep it alive, on the
// loop's thread.
class LeaseCancellation : public std::enable_shared_from_this<LeaseCancellation> {
 public:
  LeaseCancellation(std::shared_ptr<ClientCore> client, std::string lease, TimeMs until)
      : client_(std::move(client)), argv_{"LEASE", "CANCEL", std::move(lease)}, until_(until) {}

  void ask() {
    client_->ask(0, argv_, [self = shared_from_this()](const Value& value) { self->receive(value); });
  }

 private:
  void receive(const Value& value) {
    const TimeMs now = Loop::now();
    if (value.kind != Value::Kind::kLost || client_->is_closing() || is_due(until_, now)) return;
    client_->begin_work();
    timer_ = std::make_unique<client::LoopTimer>(client_->loop(), [self = shared_from_this()]() mutable {
      const auto last = std::move(self);  // reset() below destroys this lambda
      last->timer_.reset();
      last->ask();
      last->client_->end_work();
    });
    timer_->set(now + kPause);
  }

  const std::shared_ptr<ClientCore> client_;
  const std::vector<std::string> argv_;
  const TimeMs until_;
  std::unique_ptr<client::LoopTimer> timer_;
};

}  // namespace

ServerLeases::ServerLeases(std::shared_ptr<ClientCore> client) : client_(std::move(client)) {
  if (client_->config().servers.size() > 1) {
    throw std::invalid_argument(
        "leases need one server that has all keys of a lease: make a Client of holdfast://host:port");
  }
}

void ServerLeases::forbid_to_wait() const { client_->forbid_to_wait(); }

Value ServerLeases::ask(std::vector<std::string> argv) const {
  const auto answer = std::make_shared<std::promise<Value>>();
  const bool posted = client_->post([client = client_, argv = std::move(argv), answer] {
    if (client->is_closing()) return answer->set_exception(std::make_exception_ptr(client_destroyed()));
    client->ask(0, argv, [answer](const Value& value) { answer->set_value(value); });
  });
  if (!posted) throw client_destroyed();
  return answer->get_future().get();
}

void ServerLeases::refuse(const Value& value) const {
  const bool lost = value.kind == Value::Kind::kLost;
  const bool has_text = lost || value.kind == Value::Kind::kError;
  const Outcome outcome = lost ? Outcome::kUnreachable : Outcome::kRefused;
  ServerReport report{client_->config().names().front(), outcome, 0, kBadAnswer,
                      client::server_error_of(value)};
  if (has_text) report.text = value.text;
  throw Error({outcome, report.server + ": " + report.text, {report}});
}

std::vector<Answer> ServerLeases::insert(const std::string& lease, const std::vector<Document>& documents,
                                         milliseconds ttl) {
  std::vector<std::string> argv{"LEASE", "GRANT", lease, std::to_string(ttl.count())};
  for (const Document& document : documents) {
    argv.push_back(document.key);
    argv.push_back(document.value);
  }
  const Value value = ask(std::move(argv));
  if (value.kind != Value::Kind::kArray || value.elements.size() != 2) refuse(value);
  const Value& second = value.elements[1];
  if (second.kind == Value::Kind::kInteger)
    return all(documents.size(), Verdict::kDone, static_cast<uint64_t>(second.integer));
  std::vector<Answer> answers = all(documents.size(), Verdict::kSkipped);
  for (size_t i = 0; i < documents.size(); ++i) {
    const auto is_it = [&](const Value& key) { return key.text == documents[i].key; };
    if (std::ranges::any_of(second.elements, is_it)) answers[i].verdict = Verdict::kExists;
  }
  return answers;
}

std::vector<Answer> ServerLeases::touch(const std::string& lease, const std::vector<Document>& documents,
                                        std::optional<milliseconds> ttl) {
  std::vector<std::string> argv{"LEASE", ttl ? "RENEW" : "CONFIRM", lease};
  if (ttl) argv.push_back(std::to_string(ttl->count()));
  const Value value = ask(std::move(argv));
  if (value.kind == Value::Kind::kInteger) return all(documents.size(), Verdict::kDone);
  const auto outcome = outcome_in(value);
  if (!outcome) refuse(value);
  return all(documents.size(), *outcome);
}

std::vector<Answer> ServerLeases::remove(const std::string& lease, const std::vector<Document>& documents) {
  const Value value = ask({"LEASE", "CANCEL", lease});
  if (value.kind == Value::Kind::kStatus) return all(documents.size(), Verdict::kDone);
  const auto outcome = outcome_in(value);
  if (!outcome) refuse(value);
  return all(documents.size(), *outcome);
}

void ServerLeases::cancel_later(const std::string& lease, milliseconds at_most) {
  const TimeMs until = Loop::now() + DurationMs{at_most.count()};
  client_->post(
      [cancellation = std::make_shared<LeaseCancellation>(client_, lease, until)] { cancellation->ask(); });
}

}  // namespace holdfast
