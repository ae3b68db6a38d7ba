// Unions, intersections and differences of sorted sets: ZUNION ZINTER ZDIFF, with STORE, and ZINTERCARD. A
// plain set counts as a sorted set whose scores are 1.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/score.h"
#include "core/command/handlers.h"
#include "core/handlers/body_access.h"
#include "core/handlers/zset_access.h"
#include "core/handlers/zset_range.h"
#include "core/keyspace/set_body.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/values/zset_changes.h"

namespace holdfast {

namespace {

enum class HowToCombine { kUnion, kInter, kDiff };
enum class Aggregate { kSum, kMin, kMax };

// One of the given keys. Both pointers are null if there is no such key.
struct Source {
  const ZsetBody* zset = nullptr;
  const SetBody* set = nullptr;
  double weight = 1;

  size_t size() const { return zset != nullptr ? zset->size() : set != nullptr ? set->size() : 0; }
  std::optional<double> find(std::string_view member) const {
    if (zset != nullptr) return zset->find(member);
    return set != nullptr && set->contains(member) ? std::optional(1.0) : std::nullopt;
  }
  // In any order, until `f` returns false.
  template <class F>
  void for_each_while(F f) const {
    if (zset != nullptr) zset->for_each_while(f);
    if (set != nullptr) set->for_each_while([&](std::string_view member) { return f(member, 1.0); });
  }
  bool is_same(const Source& other) const { return zset == other.zset && set == other.set; }
};

// Which command it is.
struct Form {
  HowToCombine combine;
  bool store = false;
  bool count_only = false;  // ZINTERCARD
};

struct Combination {
  std::vector<Source> sources;
  Aggregate aggregate = Aggregate::kSum;
  bool with_scores = false;
  uint64_t limit = 0;  // 0: none
};

std::optional<size_t> read_key_count(Request& r, size_t at) {
  const auto count = parse_int(r.arg(at));
  if (!count) return reply_not_an_integer(r), std::nullopt;
  if (*count < 1) {
    std::string text("ERR at least 1 input key is needed for '");
    r.reply.error(text.append(r.command.name).append("' command"));
    return std::nullopt;
  }
  if (static_cast<uint64_t>(*count) > r.argc() - at - 1) return reply_syntax_error(r), std::nullopt;
  return static_cast<size_t>(*count);
}

std::optional<Source> find_source(Request& r, std::string_view key) {
  Source source;
  const Keyspace::Found f = find_to_read(r, key);
  if (!f) return source;
  if (type_of(*f) == EntryType::kZset) {
    source.zset = &body_of<ZsetBody>(*f);
  } else if (type_of(*f) == EntryType::kSet) {
    source.set = &body_of<SetBody>(*f);
  } else {
    return reply_wrong_type(r), std::nullopt;
  }
  return source;
}

bool read_weights(Request& r, size_t at, Combination& c) {
  for (size_t i = 0; i < c.sources.size(); ++i) {
    const auto weight = parse_score(r.arg(at + i));
    if (!weight) return r.reply.error("ERR weight value is not a float"), false;
    c.sources[i].weight = *weight;
  }
  return true;
}

bool read_aggregate(Request& r, std::string_view word, Combination& c) {
  if (equals_ignore_case(word, "SUM")) {
    c.aggregate = Aggregate::kSum;
  } else if (equals_ignore_case(word, "MIN")) {
    c.aggregate = Aggregate::kMin;
  } else if (equals_ignore_case(word, "MAX")) {
    c.aggregate = Aggregate::kMax;
  } else {
    return reply_syntax_error(r), false;
  }
  return true;
}

// Reads the option at argument `i`, and moves `i` behind it. Returns false after writing an error.
bool read_option(Request& r, const Form& form, size_t& i, Combination& c) {
  const std::string_view word = r.arg(i);
  const size_t left = r.argc() - i;
  const bool weighted = form.combine != HowToCombine::kDiff && !form.count_only;
  if (weighted && left > c.sources.size() && equals_ignore_case(word, "WEIGHTS")) {
    i += 1 + c.sources.size();
    return read_weights(r, i - c.sources.size(), c);
  }
  if (weighted && left >= 2 && equals_ignore_case(word, "AGGREGATE")) {
    i += 2;
    return read_aggregate(r, r.arg(i - 1), c);
  }
  if (!form.store && !form.count_only && equals_ignore_case(word, "WITHSCORES")) {
    ++i;
    return c.with_scores = true;
  }
  if (form.count_only && left >= 2 && equals_ignore_case(word, "LIMIT")) {
    const auto limit = parse_int_in(r.arg(i + 1), 0, INT64_MAX);
    if (!limit) return r.reply.error("ERR LIMIT can't be negative"), false;
    c.limit = static_cast<uint64_t>(*limit);
    i += 2;
    return true;
  }
  return reply_syntax_error(r), false;
}

// Reads the request from the number of keys on, at argument `at`. Returns nullopt after writing an error.
std::optional<Combination> read_combination(Request& r, const Form& form, size_t at) {
  const auto count = read_key_count(r, at);
  if (!count) return std::nullopt;
  Combination c;
  for (size_t i = at + 1; i <= at + *count; ++i) {
    const auto source = find_source(r, r.arg(i));
    if (!source) return std::nullopt;
    c.sources.push_back(*source);
  }
  for (size_t i = at + 1 + *count; i < r.argc();) {
    if (!read_option(r, form, i, c)) return std::nullopt;
  }
  // The order decides how sums are rounded, so it is that of Redis. A difference depends on the first key.
  if (form.combine != HowToCombine::kDiff) std::ranges::stable_sort(c.sources, {}, &Source::size);
  return c;
}

double number_or_zero(double score) { return std::isnan(score) ? 0 : score; }

double aggregated(Aggregate how, double a, double b) {
  if (how == Aggregate::kSum) return number_or_zero(a + b);
  return how == Aggregate::kMin ? std::min(a, b) : std::max(a, b);
}

// Calls `f(member, score)` for each member that all sources have, until it returns false.
template <class F>
void for_each_common(const Combination& c, F f) {
  const Source& first = c.sources[0];
  first.for_each_while([&](std::string_view member, double score) {
    double sum = number_or_zero(score * first.weight);
    for (size_t i = 1; i < c.sources.size(); ++i) {
      const Source& other = c.sources[i];
      const auto found = other.is_same(first) ? std::optional(score) : other.find(member);
      if (!found) return true;
      sum = aggregated(c.aggregate, sum, *found * other.weight);
    }
    return f(member, sum);
  });
}

// Calls `f(member, score)` for each member of the first source that no other source has.
template <class F>
void for_each_missing(const Combination& c, F f) {
  const Source& first = c.sources[0];
  const std::span others = std::span(c.sources).subspan(1);
  if (std::ranges::any_of(others, [&](const Source& other) { return other.is_same(first); })) return;
  first.for_each_while([&](std::string_view member, double score) {
    const auto has = [&](const Source& other) { return other.find(member).has_value(); };
    if (std::ranges::none_of(others, has)) f(member, score);
    return true;
  });
}

std::unique_ptr<ZsetBody> combine(const EngineState& s, const Combination& c, HowToCombine how) {
  ZsetBuilder result(s.config.hash_seed);
  const auto add = [&](std::string_view member, double score) {
    result.add(member, score,
               [&](double old, double value) { return aggregated(c.aggregate, old, value); });
    return true;
  };
  if (how == HowToCombine::kInter) {
    for_each_common(c, add);
  } else if (how == HowToCombine::kUnion) {
    for (const Source& source : c.sources) {
      source.for_each_while([&](std::string_view member, double score) {
        return add(member, number_or_zero(score * source.weight));
      });
    }
  } else {
    for_each_missing(c, add);
  }
  return result.finish(loading_zset_limits(s));
}

void reply_combination(Request& r, HowToCombine how) {
  const auto c = read_combination(r, {how}, 1);
  if (!c) return;
  const auto result = combine(r.s(), *c, how);
  reply_members(r, *result, {0, result->size()}, false, c->with_scores);
}

void store_combination(Request& r, HowToCombine how, std::string_view event) {
  const auto c = read_combination(r, {how, true}, 2);
  if (c) store_zset(r, combine(r.s(), *c, how), event);
}

}  // namespace

void cmd_zunion(Request& r) { reply_combination(r, HowToCombine::kUnion); }
void cmd_zinter(Request& r) { reply_combination(r, HowToCombine::kInter); }
void cmd_zdiff(Request& r) { reply_combination(r, HowToCombine::kDiff); }
void cmd_zunionstore(Request& r) { store_combination(r, HowToCombine::kUnion, "zunionstore"); }
void cmd_zinterstore(Request& r) { store_combination(r, HowToCombine::kInter, "zinterstore"); }
void cmd_zdiffstore(Request& r) { store_combination(r, HowToCombine::kDiff, "zdiffstore"); }

void cmd_zintercard(Request& r) {
  const auto c = read_combination(r, {HowToCombine::kInter, false, true}, 1);
  if (!c) return;
  const Source& first = c->sources[0];
  const auto is_first = [&](const Source& other) { return other.is_same(first); };
  uint64_t count = 0;
  if (std::ranges::all_of(c->sources, is_first)) {
    count = c->limit == 0 ? first.size() : std::min<uint64_t>(c->limit, first.size());
  } else {
    for_each_common(*c, [&](std::string_view, double) { return ++count != c->limit; });
  }
  r.reply.integer(static_cast<int64_t>(count));
}

}  // namespace holdfast
