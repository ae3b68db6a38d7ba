#include "proxy/key_state.h"

#include <algorithm>

namespace holdfast::proxy {

using client::Value;

namespace {

// The place of the first answer with this hold in `holds`, or a new one.
QuorumHold& hold_of(std::vector<QuorumHold>& holds, const SeenHold& seen, size_t servers) {
  const auto known = std::ranges::find(holds, seen.owner, &QuorumHold::owner);
  if (known != holds.end()) return *known;
  holds.push_back({seen.owner, 0, seen.mode, std::nullopt, std::vector<bool>(servers)});
  return holds.back();
}

// What the servers say about one hold.
struct Votes {
  std::vector<std::optional<DurationMs>> lefts;
  std::vector<uint64_t> tokens;
};

// For how long a quorum has the hold: the quorum-th of the longest times.
std::optional<DurationMs> shared_time(std::vector<std::optional<DurationMs>> lefts, size_t quorum) {
  const auto longer = [](const auto& a, const auto& b) {
    return !a ? b.has_value() : b.has_value() && a->count > b->count;  // nullopt is the longest
  };
  std::ranges::sort(lefts, longer);
  return lefts[quorum - 1];
}

// A server that got the hold by a repair may have given it a larger token.
uint64_t shared_token(std::vector<uint64_t> tokens, size_t quorum) {
  std::ranges::sort(tokens, std::ranges::greater());
  return tokens[quorum - 1];
}

size_t count_of(const std::vector<bool>& servers) {
  return static_cast<size_t>(std::ranges::count(servers, true));
}

}  // namespace

SeenKey read_info(const Value& answer) {
  SeenKey seen;
  if (answer.kind == Value::Kind::kLost || answer.kind == Value::Kind::kError) {
    const bool other = answer.text.starts_with("WRONGTYPE");
    seen.kind = other ? SeenKey::Kind::kOtherType : SeenKey::Kind::kNoAnswer;
    seen.why = answer.text;
    return seen;
  }
  seen.kind = SeenKey::Kind::kKey;
  seen.delayed = client::field(answer, "delay").integer > 0;
  for (const Value& holder : client::field(answer, "holders").elements) {
    const int64_t left = client::field(holder, "ttl").integer;
    seen.holds.push_back(
        {client::field(holder, "owner").text, static_cast<uint64_t>(client::field(holder, "token").integer),
         client::field(holder, "mode").text, left < 0 ? std::nullopt : std::optional(DurationMs{left})});
  }
  return seen;
}

KeyState judge(std::span<const std::optional<SeenKey>> seen, size_t quorum) {
  std::vector<QuorumHold> holds;
  std::vector<Votes> votes;  // for `holds`
  size_t open = 0;
  size_t delayed = 0;
  size_t other_type = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const bool answered = seen[i] && seen[i]->kind != SeenKey::Kind::kNoAnswer;
    if (!answered) ++open;
    if (!answered) continue;
    if (seen[i]->delayed) ++delayed;
    if (seen[i]->kind == SeenKey::Kind::kOtherType) ++other_type;
    for (const SeenHold& hold : seen[i]->holds) {
      QuorumHold& all = hold_of(holds, hold, seen.size());
      const auto at = static_cast<size_t>(&all - holds.data());
      if (at == votes.size()) votes.emplace_back();
      all.servers[i] = true;
      votes[at].tokens.push_back(hold.token);
      votes[at].lefts.push_back(hold.left);
    }
  }
  KeyState state;
  bool may_be_held = other_type + open >= quorum && other_type > 0;
  for (size_t at = 0; at < holds.size(); ++at) {
    const size_t count = count_of(holds[at].servers);
    may_be_held = may_be_held || count + open >= quorum;
    if (count < quorum) continue;
    holds[at].left = shared_time(std::move(votes[at].lefts), quorum);
    holds[at].token = shared_token(std::move(votes[at].tokens), quorum);
    state.holds.push_back(holds[at]);
  }
  if (!state.holds.empty()) {
    state.kind = KeyState::Kind::kHeld;
  } else if (other_type >= quorum) {
    state.kind = KeyState::Kind::kOtherType;
  } else if (!may_be_held && open < quorum) {
    state.kind = KeyState::Kind::kFree;
    state.delayed = delayed + quorum > seen.size();
  }
  return state;
}

}  // namespace holdfast::proxy
