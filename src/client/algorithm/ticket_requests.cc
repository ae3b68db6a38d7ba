#include "client/algorithm/ticket_requests.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "client/base/server_error.h"

namespace holdfast::client {

namespace {

using Words = std::vector<std::string>;

template <class T>
std::string decimal(T number) {
  return std::to_string(number);
}

template <class... Word>
void add(Words& words, Word&&... more) {
  (words.emplace_back(std::forward<Word>(more)), ...);
}

Words words_of(const WaitRequest& r, const LockTerms& terms) {
  Words words;
  words.reserve(24);
  add(words, "LOCK", terms.key, r.owner, decimal(r.life.count), "TICKET", decimal(r.ticket));
  if (terms.mode == LockMode::kShared) add(words, "SHARED");
  if (terms.mode == LockMode::kCounted) add(words, "LIMIT", decimal(terms.limit));
  if (r.hint != 0) add(words, "TOKEN", decimal(r.hint));
  if (!terms.note.empty()) add(words, "NOTE", terms.note);
  if (terms.delay.count > 0) add(words, "DELAY", decimal(terms.delay.count));
  if (r.provisional) add(words, "PROVISIONAL");
  if (r.has != 0) add(words, "HAS", decimal(r.has));
  if (r.seen) add(words, "SEEN", decimal(r.seen->count));
  for (const std::string& owner : r.over) add(words, "OVER", owner);
  return words;
}

Words words_of(const YieldRequest& r, const LockTerms& terms) {
  return {"LOCKS", "YIELD", terms.key, r.owner, decimal(r.token)};
}

Words words_of(const RenewRequest& r, const LockTerms& terms) {
  Words words = {"RENEW", terms.key, r.owner, decimal(r.ttl.count)};
  if (r.token != 0) add(words, "TOKEN", decimal(r.token));
  return words;
}

Words words_of(const UnlockRequest& r, const LockTerms& terms) { return {"UNLOCK", terms.key, r.owner}; }

Words words_of(const HeartbeatRequest& r, const LockTerms& /*terms*/) {
  if (!r.seen) return {"LOCKS", "HEARTBEAT"};
  return {"LOCKS", "HEARTBEAT", decimal(r.seen->count)};
}

// --- answers ---

bool is_text(const Value& value) {
  return value.kind == Value::Kind::kBulk || value.kind == Value::Kind::kStatus;
}

bool is_count(const Value& value) { return value.kind == Value::Kind::kInteger && value.integer >= 0; }

std::optional<Words> owners_in(const Value& value) {
  if (value.kind != Value::Kind::kArray) return std::nullopt;
  Words owners;
  for (const Value& owner : value.elements) {
    if (!is_text(owner)) return std::nullopt;
    owners.push_back(owner.text);
  }
  return owners;
}

Refusal::Code code_of(ServerError error) {
  using Code = Refusal::Code;
  switch (error) {
    case ServerError::kFull:
      return Code::kFull;
    case ServerError::kAhead:
      return Code::kAhead;
    case ServerError::kOver:
      return Code::kOver;
    case ServerError::kRecovering:
      return Code::kRecovering;
    case ServerError::kDeadlock:
      return Code::kDeadlock;
    case ServerError::kSyntax:
    case ServerError::kNoCommand:
      return Code::kUnknown;
    default:
      return Code::kOther;
  }
}

Refusal refusal_of(const Value& value) {
  const ServerError error = server_error_of(value);
  return {code_of(error), value.text, error};
}

Answer bad() {
  return Refusal{Refusal::Code::kOther, "the answer is not one to this request", ServerError::kOther};
}

Answer read_wait(const Value& value) {
  if (value.kind != Value::Kind::kArray || value.elements.size() != 6) return bad();
  const std::vector<Value>& e = value.elements;
  using State = WaitAnswer::State;
  WaitAnswer answer;
  if (e[0].text == "vote") {
    answer.state = State::kVote;
  } else if (e[0].text == "held") {
    answer.state = State::kHeld;
  } else if (e[0].text != "queued") {
    return bad();
  }
  std::optional<Words> over = owners_in(e[5]);
  if (!over || !std::all_of(e.begin() + 1, e.begin() + 5, is_count)) return bad();
  if (answer.state != State::kQueued && e[1].integer == 0) return bad();
  answer.token = static_cast<uint64_t>(e[1].integer);
  answer.since = {e[2].integer};
  answer.now = {e[3].integer};
  answer.floor = static_cast<uint64_t>(e[4].integer);
  answer.over = std::move(*over);
  return answer;
}

Answer read_heartbeat(const Value& value) {
  if (value.kind != Value::Kind::kArray || value.elements.size() != 2) return bad();
  if (!is_text(value.elements[0]) || !is_count(value.elements[1])) return bad();
  return HeartbeatAnswer{value.elements[0].text, {value.elements[1].integer}};
}

std::optional<Push> read_vote(const std::vector<Value>& e) {
  if (e.size() != 9 || !std::all_of(e.begin() + 4, e.begin() + 8, is_count)) return std::nullopt;
  std::optional<Words> over = owners_in(e[8]);
  if (!over || e[4].integer == 0) return std::nullopt;
  return VotePush{e[3].text,      static_cast<uint64_t>(e[4].integer), {e[5].integer},
                  {e[6].integer}, static_cast<uint64_t>(e[7].integer), std::move(*over)};
}

}  // namespace

std::string owner_of(std::string_view slot, uint64_t attempt) {
  std::string owner(slot);
  owner += '.';
  owner += std::to_string(attempt);
  return owner;
}

std::string_view slot_of(std::string_view owner) {
  const size_t dot = owner.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : owner.substr(0, dot);
}

uint64_t attempt_of(std::string_view owner) {
  const size_t dot = owner.rfind('.');
  if (dot == std::string_view::npos) return 0;
  uint64_t attempt = 0;
  const auto [end, error] = std::from_chars(owner.data() + dot + 1, owner.data() + owner.size(), attempt);
  return error == std::errc() && end == owner.data() + owner.size() ? attempt : 0;
}

Outcome outcome_of(const Refusal& refusal) {
  if (refusal.code == Refusal::Code::kLost) return Outcome::kUnreachable;
  return refusal.code == Refusal::Code::kDeadlock ? Outcome::kDeadlock : Outcome::kRefused;
}

std::vector<std::string> encode(const TicketRequest& request, const LockTerms& terms) {
  return std::visit([&](const auto& r) { return words_of(r, terms); }, request);
}

Answer read_answer(const TicketRequest& request, const Value& value) {
  if (value.kind == Value::Kind::kLost)
    return Refusal{Refusal::Code::kLost, value.text, ServerError::kNone};
  if (value.kind == Value::Kind::kError) return refusal_of(value);
  if (std::holds_alternative<WaitRequest>(request)) return read_wait(value);
  if (std::holds_alternative<HeartbeatRequest>(request)) return read_heartbeat(value);
  return value.kind == Value::Kind::kInteger ? Answer(Count{value.integer}) : bad();
}

std::optional<KeyedPush> read_push(const Value& value) {
  const std::vector<Value>& e = value.elements;
  if (value.kind != Value::Kind::kPush || e.size() < 5 || e[0].text != "lock") return std::nullopt;
  if (!is_text(e[2]) || !is_text(e[3])) return std::nullopt;
  if (e[1].text == "vote") {
    std::optional<Push> vote = read_vote(e);
    return vote ? std::optional(KeyedPush{e[2].text, std::move(*vote)}) : std::nullopt;
  }
  if (e[1].text != "inquire" || e.size() != 5 || !is_count(e[4])) return std::nullopt;
  return KeyedPush{e[2].text, InquirePush{e[3].text, static_cast<uint64_t>(e[4].integer)}};
}

}  // namespace holdfast::client
