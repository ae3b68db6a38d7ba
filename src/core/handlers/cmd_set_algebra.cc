// Several sets: SINTER SUNION SDIFF, their STORE forms, and SINTERCARD.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/parse.h"
#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/body_access.h"
#include "core/keyspace/set_body.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/values/set_changes.h"

namespace holdfast {

namespace {

using Sets = std::vector<const SetBody*>;  // null: no such key
using CombineSets = std::unique_ptr<SetBody> (*)(const EngineState&, const Sets&);

// The sets of the keys. Writes an error and returns nullopt if a key has another type.
std::optional<Sets> find_sets(Request& r, std::span<const std::string_view> keys) {
  Sets sets;
  for (const std::string_view key : keys) {
    const auto set = find_body_to_read<SetBody>(r, key);
    if (!set) return std::nullopt;
    sets.push_back(*set);
  }
  return sets;
}

// Calls `f(member)` for the members that all sets have, until `f` returns false. The smallest set decides
// the cost, so it goes first. It may be given twice. A missing key is an empty set.
template <class F>
void for_each_common(Sets sets, F f) {
  if (std::ranges::find(sets, nullptr) != sets.end()) return;
  std::ranges::stable_sort(sets, {}, &SetBody::size);
  const SetBody* const first = sets[0];
  std::erase(sets, first);
  first->for_each_while([&](std::string_view member) {
    const auto has = [&](const SetBody* set) { return set->contains(member); };
    return !std::ranges::all_of(sets, has) || f(member);
  });
}

std::unique_ptr<SetBody> intersect(const EngineState& s, const Sets& sets) {
  std::unique_ptr<SetBody> result = new_set(s);
  for_each_common(sets, [&](std::string_view member) {
    result->add(member);
    return true;
  });
  return result;
}

std::unique_ptr<SetBody> unite(const EngineState& s, const Sets& sets) {
  std::unique_ptr<SetBody> result = new_set(s);
  for (const SetBody* set : sets) {
    if (set != nullptr) set->for_each([&](std::string_view member) { result->add(member); });
  }
  return result;
}

// The members of the first set that no other set has.
std::unique_ptr<SetBody> subtract(const EngineState& s, const Sets& sets) {
  std::unique_ptr<SetBody> result = new_set(s);
  if (sets[0] == nullptr || std::find(sets.begin() + 1, sets.end(), sets[0]) != sets.end()) return result;
  sets[0]->for_each([&](std::string_view member) {
    const auto has = [&](const SetBody* set) { return set != nullptr && set->contains(member); };
    if (std::none_of(sets.begin() + 1, sets.end(), has)) result->add(member);
  });
  return result;
}

void reply_combined(Request& r, CombineSets combine) {
  const auto sets = find_sets(r, r.argv.subspan(1));
  if (!sets) return;
  const std::unique_ptr<SetBody> result = combine(r.s(), *sets);
  r.reply.set(result->size());
  result->for_each([&](std::string_view member) { r.reply.bulk(member); });
}

// Replaces the first key, whatever it was. An empty result removes it.
void store_combined(Request& r, CombineSets combine, std::string_view event) {
  const auto sets = find_sets(r, r.argv.subspan(2));
  if (!sets) return;
  store_body(r, EntryType::kSet, combine(r.s(), *sets), kNotifySet, event);
}

struct CardArguments {
  std::span<const std::string_view> keys;
  uint64_t limit = 0;  // 0: none
};

// Reads "numkeys key [key ...] [LIMIT limit]". Writes the error and returns nullopt if it is invalid.
std::optional<CardArguments> read_card_arguments(Request& r) {
  const auto refuse = [&](std::string_view why) {
    r.reply.error(why);
    return std::nullopt;
  };
  const auto count = parse_int(r.arg(1));
  if (!count || *count < 1) return refuse("ERR numkeys should be greater than 0");
  const auto keys = static_cast<uint64_t>(*count);
  if (keys > r.argc() - 2) return refuse("ERR Number of keys can't be greater than number of args");
  CardArguments given{r.argv.subspan(2, keys)};
  for (size_t i = 2 + keys; i < r.argc(); i += 2) {
    if (!equals_ignore_case(r.arg(i), "LIMIT") || i + 1 == r.argc()) return refuse("ERR syntax error");
    const auto limit = parse_int(r.arg(i + 1));
    if (!limit || *limit < 0) return refuse("ERR LIMIT can't be negative");
    given.limit = static_cast<uint64_t>(*limit);
  }
  return given;
}

}  // namespace

void cmd_sinter(Request& r) { reply_combined(r, intersect); }
void cmd_sunion(Request& r) { reply_combined(r, unite); }
void cmd_sdiff(Request& r) { reply_combined(r, subtract); }
void cmd_sinterstore(Request& r) { store_combined(r, intersect, "sinterstore"); }
void cmd_sunionstore(Request& r) { store_combined(r, unite, "sunionstore"); }
void cmd_sdiffstore(Request& r) { store_combined(r, subtract, "sdiffstore"); }

void cmd_sintercard(Request& r) {
  const auto given = read_card_arguments(r);
  if (!given) return;
  const auto sets = find_sets(r, given->keys);
  if (!sets) return;
  uint64_t n = 0;
  for_each_common(*sets, [&](std::string_view) { return ++n != given->limit; });
  r.reply.integer(static_cast<int64_t>(n));
}

}  // namespace holdfast
