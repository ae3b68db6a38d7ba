// Checks by observation from outside.
#include "watcher.h"

#include <algorithm>
#include <set>

#include "frame.h"

namespace holdfast::simulation {
namespace {

// A RESP2 reply as a tree.
struct Value {
  std::string text;  // for a bulk string or a number
  std::vector<Value> items;

  // Returns the value of a name in a flat map.
  const Value& at(std::string_view name) const {
    static const Value kNothing;
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i].text == name) return items[i + 1];
    }
    return kNothing;
  }
  int64_t number() const { return text.empty() ? 0 : std::stoll(text); }
};

Value read_value(std::string_view& bytes) {
  Value out;
  const size_t end = bytes.find("\r\n");
  const char type = bytes[0];
  const std::string rest(bytes.substr(1, end - 1));
  bytes.remove_prefix(end + 2);
  if (type == '*') {
    for (int64_t n = std::stoll(rest); n > 0; --n) out.items.push_back(read_value(bytes));
  } else if (type == '$' && rest != "-1") {
    out.text = bytes.substr(0, std::stoul(rest));
    bytes.remove_prefix(out.text.size() + 2);
  } else if (type != '$') {
    out.text = rest;
  }
  return out;
}

bool contains(const auto& list, const auto& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool has_owner(const auto& list, const std::string& owner) {
  return std::any_of(list.begin(), list.end(), [&](const auto& item) { return item.owner == owner; });
}

}  // namespace

std::string Watcher::check_replies(Serial client, bool blocked) const {
  const int open = outstanding_.at(client);
  if (open == (blocked ? 1 : 0)) return "";
  return "connection " + std::to_string(client) + " has " + std::to_string(open) +
         " requests without a reply";
}

Watcher::Seen Watcher::parse(std::string_view info, int64_t now_ms) {
  Seen out;
  const Value value = read_value(info);
  for (const Value& holder : value.at("holders").items) {
    const auto token = static_cast<uint64_t>(holder.at("token").number());
    out.holders.push_back({holder.at("owner").text, token, holder.at("limit").number()});
  }
  for (const Value& waiter : value.at("waiters").items) {
    out.waiters.push_back({waiter.at("owner").text, waiter.at("limit").number(),
                           now_ms - waiter.at("waited").number(), waiter.at("client").number()});
  }
  return out;
}

std::string Watcher::judge(const Step& step, const std::map<KeyId, std::string>& infos, int64_t now_ms) {
  for (const auto& [id, info] : infos) {
    const Seen now = parse(info, now_ms);
    const Seen before = seen_[id];
    seen_[id] = now;
    std::string wrong = check_capacity(now);
    if (wrong.empty()) wrong = check_tokens(id, before, now);
    const std::set<std::string> again = may_return(id, before, now, now_ms);
    if (wrong.empty()) wrong = check_order(before, now, again);
    if (wrong.empty()) wrong = check_overtaking(step, before, now, again);
    if (!wrong.empty()) return "key " + command_line({id.second}) + ": " + wrong;
  }
  return "";
}

std::string Watcher::check_capacity(const Seen& now) {
  for (const Holder& holder : now.holders) {
    if (holder.limit == 0 || now.holders.size() <= static_cast<size_t>(holder.limit)) continue;
    return std::to_string(now.holders.size()) + " holders, but " + holder.owner + " admits fewer";
  }
  return "";
}

std::string Watcher::check_tokens(const KeyId& id, const Seen& before, const Seen& now) {
  uint64_t& largest = largest_token_[id];
  const uint64_t earlier = largest;
  for (const Holder& holder : now.holders) {
    largest = std::max(largest, holder.token);
    const auto old = std::find_if(before.holders.begin(), before.holders.end(),
                                  [&](const Holder& h) { return h.owner == holder.owner; });
    if (old != before.holders.end() && holder.token < old->token) return "a token went back";
    if (old == before.holders.end() && holder.token <= earlier) return "a new hold has an old token";
  }
  return "";
}

// The owners of which a wait ended within the last second: they may get a former place.
std::set<std::string> Watcher::may_return(const KeyId& id, const Seen& before, const Seen& now,
                                          int64_t now_ms) {
  constexpr int64_t kPlaceMs = 1000;
  std::map<std::string, int64_t>& left = left_ms_[id];
  for (const Waiter& waiter : before.waiters) {
    if (!contains(now.waiters, waiter)) left[waiter.owner] = now_ms;
  }
  std::erase_if(left, [&](const auto& one) { return one.second + kPlaceMs < now_ms; });
  std::set<std::string> owners;
  for (const auto& [owner, ms] : left) owners.insert(owner);
  return owners;
}

// Waiters that still wait keep their order, and new waiters are behind them. The check ignores holders,
// since their upgrade precedes other waiters. It also ignores requests that are equal.
std::string Watcher::check_order(const Seen& before, const Seen& now, const std::set<std::string>& again) {
  const auto counts = [&](const Waiter& waiter) {
    const bool twin = std::count(before.waiters.begin(), before.waiters.end(), waiter) > 1 ||
                      std::count(now.waiters.begin(), now.waiters.end(), waiter) > 1;
    return !twin && !has_owner(now.holders, waiter.owner) && !again.contains(waiter.owner);
  };
  std::vector<Waiter> stayed;
  std::vector<Waiter> still;
  for (const Waiter& waiter : before.waiters) {
    if (counts(waiter) && contains(now.waiters, waiter)) stayed.push_back(waiter);
  }
  bool is_newer = false;
  for (const Waiter& waiter : now.waiters) {
    if (!counts(waiter)) continue;
    const bool old = contains(before.waiters, waiter);
    if (old && is_newer) return "a newer waiter is before " + waiter.owner;
    if (old) still.push_back(waiter);
    is_newer = is_newer || !old;
  }
  return stayed == still ? "" : "the order of the waiters has changed";
}

std::string Watcher::check_overtaking(const Step& step, const Seen& before, const Seen& now,
                                      const std::set<std::string>& again) {
  static const std::set<std::string> kWriters = {"SET", "LEASE", "EXEC"};  // they ignore the queue
  if (step.kind == Step::Kind::kCommand && kWriters.contains(upper(step.args[0]))) return "";
  for (const Holder& holder : now.holders) {
    if (has_owner(before.holders, holder.owner) || again.contains(holder.owner)) continue;
    for (const Waiter& waiter : before.waiters) {
      if (waiter.owner == holder.owner) break;  // its place was before the others
      if (contains(now.waiters, waiter)) return holder.owner + " has overtaken " + waiter.owner;
    }
  }
  return "";
}

}  // namespace holdfast::simulation
