#include "client/algorithm/ballot.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace holdfast::client {

namespace {

constexpr DurationUs kGranularityUs{kGranularityMs * 1000};

DurationUs share_of(DurationUs span, double part) {
  return {static_cast<int64_t>(std::ceil(static_cast<double>(span.count) * part))};
}

}  // namespace

TimeUs not_after(const Pulse::Pair& pair, TimeMs since, double drift) {
  const DurationUs span{(since - pair.server).count * 1000};
  const DurationUs uneven = share_of({span.count < 0 ? -span.count : span.count}, drift);
  return pair.client + DurationUs{span.count - uneven.count};
}

TimeUs valid_until(TimeUs base, DurationUs life, double drift) {
  if (life >= kForeverUs) return kNeverUs;
  return base + DurationUs{life.count - share_of(life, drift).count - kGranularityUs.count};
}

Ballot::Ballot(const BallotRules& rules)
    : rules_(rules), votes_(rules.servers), yielded_(rules.servers, 0) {}

void Ballot::record(size_t server, uint64_t token, TimeUs base) {
  std::optional<Vote>& vote = votes_[server];
  if (vote && vote->token == token) base = std::max(base, vote->base);
  vote = {token, base};
}

void Ballot::supersede(size_t server, uint64_t token) {
  std::optional<Vote>& vote = votes_[server];
  if (vote) vote->token = std::max(vote->token, token);
}

void Ballot::yield(size_t server, uint64_t token) {
  yielded_[server] = std::max({yielded_[server], token, this->token(server)});
  drop(server);
}

bool Ballot::empty() const {
  return std::none_of(votes_.begin(), votes_.end(), [](const auto& vote) { return vote.has_value(); });
}

TimeUs Ballot::counts_until(size_t server) const {
  const std::optional<Vote>& vote = votes_[server];
  if (!vote) return kLongAgoUs;
  return valid_until(vote->base, rules_.life, rules_.drift) - share_of(rules_.life, kLeft);
}

size_t Ballot::counting(TimeUs now) const {
  size_t n = 0;
  for (size_t server = 0; server < votes_.size(); ++server) n += counts(server, now) ? 1 : 0;
  return n;
}

// At most one token can have a majority. For a smaller quorum, of readers, any such token is good.
std::optional<Ballot::Win> Ballot::win(TimeUs now) const {
  for (size_t first = 0; first < votes_.size(); ++first) {
    if (!counts(first, now)) continue;
    std::vector<TimeUs> bases;
    for (size_t server = 0; server < votes_.size(); ++server) {
      if (counts(server, now) && token(server) == token(first)) bases.push_back(votes_[server]->base);
    }
    if (bases.size() < rules_.quorum) continue;
    std::sort(bases.begin(), bases.end(), std::greater<>());
    return Win{token(first), valid_until(bases[rules_.quorum - 1], rules_.life, rules_.drift)};
  }
  return std::nullopt;
}

std::optional<uint64_t> Ballot::reachable_token(TimeUs now) const {
  std::vector<uint64_t> tokens;
  for (size_t server = 0; server < votes_.size(); ++server) {
    if (counts(server, now)) tokens.push_back(token(server));
  }
  if (tokens.size() < rules_.quorum) return std::nullopt;
  std::sort(tokens.begin(), tokens.end());
  return tokens[rules_.quorum - 1];
}

}  // namespace holdfast::client
