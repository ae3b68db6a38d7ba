// Members of sorted sets: ZADD ZINCRBY ZREM ZSCORE ZMSCORE ZCARD ZRANK ZREVRANK ZSCAN. The commands on
// ranges are in cmd_zset_range.cc, those that pop in cmd_zset_pop.cc, those on several keys in
// cmd_zset_combine.cc.
#include <deque>
#include <string>
#include <vector>

#include "core/base/score.h"
#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/body_access.h"
#include "core/handlers/element_scan.h"
#include "core/handlers/zset_access.h"
#include "core/handlers/zset_range.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/values/body_changes.h"
#include "core/values/zset_changes.h"

namespace holdfast {

namespace {

constexpr std::string_view kNotAFloat = "ERR value is not a valid float";

struct ZaddOptions {
  ScoreRules rules;
  bool count_changed = false;  // CH
  size_t first = 2;            // the argument of the first score
};

bool read_zadd_option(std::string_view word, ZaddOptions& o) {
  struct Option {
    std::string_view name;
    bool* set;
  };
  const Option options[] = {{"NX", &o.rules.only_new},     {"XX", &o.rules.only_existing},
                            {"GT", &o.rules.only_greater}, {"LT", &o.rules.only_less},
                            {"INCR", &o.rules.increment},  {"CH", &o.count_changed}};
  for (const Option& option : options) {
    if (equals_ignore_case(word, option.name)) return *option.set = true;
  }
  return false;
}

// Reads the options and checks their combination. Writes an error and returns nullopt if it is invalid.
std::optional<ZaddOptions> read_zadd_options(Request& r) {
  ZaddOptions o;
  while (o.first < r.argc() && read_zadd_option(r.arg(o.first), o)) ++o.first;
  const size_t words = r.argc() - o.first;
  const ScoreRules& rules = o.rules;
  if (words == 0 || words % 2 != 0) return reply_syntax_error(r), std::nullopt;
  std::string_view conflict;
  if (rules.only_new && rules.only_existing) {
    conflict = "ERR XX and NX options at the same time are not compatible";
  } else if (rules.only_greater + rules.only_less + rules.only_new > 1) {
    conflict = "ERR GT, LT, and/or NX options at the same time are not compatible";
  } else if (rules.increment && words > 2) {
    conflict = "ERR INCR option supports a single increment-element pair";
  }
  if (conflict.empty()) return o;
  r.reply.error(conflict);
  return std::nullopt;
}

// Sets the scores and publishes the event; nullopt after an error.
std::optional<PutScores> put(Request& r, const ScoreRules& rules, std::span<const MemberScore> scores) {
  auto target = find_body_to_write<ZsetBody>(r, r.arg(1));
  if (!target) return std::nullopt;
  if (target->body == nullptr && rules.only_existing) return PutScores{};
  const PutScores done = put_scores(r.ctx, {r.c.db, target->f}, target->key, scores, rules, r.c.id);
  if (done.nan) return r.reply.error("ERR resulting score is not a number (NaN)"), std::nullopt;
  if (done.added + done.updated > 0)
    notify(r.ctx, kNotifyZset, rules.increment ? "zincr" : "zadd", r.c.db, r.arg(1));
  return done;
}

void reply_score(Request& r, std::optional<double> score) {
  score ? r.reply.number(*score) : r.reply.null();
}

// With WITHSCORE (Redis 7.2) also the score.
void reply_rank(Request& r, bool reverse) {
  const bool with_score = r.argc() == 4;
  if (r.argc() > 4) return reply_wrong_arity(r);
  if (with_score && !equals_ignore_case(r.arg(3), "WITHSCORE")) return reply_syntax_error(r);
  const auto zset = find_body_to_read<ZsetBody>(r, r.arg(1));
  if (!zset) return;
  const auto score = *zset == nullptr ? std::nullopt : (*zset)->find(r.arg(2));
  if (!score) return with_score ? r.reply.null_array() : r.reply.null();
  const size_t rank = (*zset)->rank(r.arg(2), *score);
  if (with_score) r.reply.array(2);
  r.reply.integer(static_cast<int64_t>(reverse ? (*zset)->size() - 1 - rank : rank));
  if (with_score) r.reply.number(*score);
}

}  // namespace

void cmd_zadd(Request& r) {
  const auto o = read_zadd_options(r);
  if (!o) return;
  std::vector<MemberScore> scores;
  for (size_t i = o->first; i < r.argc(); i += 2) {
    const auto score = parse_score(r.arg(i));
    if (!score) return r.reply.error(kNotAFloat);
    scores.push_back({r.arg(i + 1), *score});
  }
  const auto done = put(r, o->rules, scores);
  if (!done) return;
  if (o->rules.increment) return reply_score(r, done->score);
  r.reply.integer(static_cast<int64_t>(done->added + (o->count_changed ? done->updated : 0)));
}

void cmd_zincrby(Request& r) {
  auto o = read_zadd_options(r);  // as in Redis, an increment that is the word of an option is an error
  if (!o) return;
  o->rules.increment = true;
  const auto increment = parse_score(r.arg(2));
  if (!increment) return r.reply.error(kNotAFloat);
  const MemberScore given[] = {{r.arg(3), *increment}};
  if (const auto done = put(r, o->rules, given)) reply_score(r, done->score);
}

void cmd_zrem(Request& r) {
  auto target = find_body_to_write<ZsetBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr) return r.reply.integer(0);
  const size_t removed = remove_members<ZsetBody>(r.ctx, {r.c.db, target->f}, r.argv.subspan(2), r.c.id);
  if (removed > 0) notify_removal(r.ctx, r.c.db, target->key, "zrem");
  r.reply.integer(static_cast<int64_t>(removed));
}

void cmd_zscore(Request& r) {
  const auto zset = find_body_to_read<ZsetBody>(r, r.arg(1));
  if (zset) reply_score(r, *zset == nullptr ? std::nullopt : (*zset)->find(r.arg(2)));
}

void cmd_zmscore(Request& r) {
  const auto zset = find_body_to_read<ZsetBody>(r, r.arg(1));
  if (!zset) return;
  r.reply.array(r.argc() - 2);
  for (const std::string_view member : r.argv.subspan(2))
    reply_score(r, *zset == nullptr ? std::nullopt : (*zset)->find(member));
}

void cmd_zcard(Request& r) {
  const auto zset = find_body_to_read<ZsetBody>(r, r.arg(1));
  if (zset) r.reply.integer(*zset == nullptr ? 0 : static_cast<int64_t>((*zset)->size()));
}

void cmd_zrank(Request& r) { reply_rank(r, false); }
void cmd_zrevrank(Request& r) { reply_rank(r, true); }

void cmd_zscan(Request& r) {
  if (!check_element_cursor(r)) return;
  const auto zset = find_body_to_read<ZsetBody>(r, r.arg(1));
  if (!zset) return;
  const size_t size = *zset == nullptr ? 0 : (*zset)->size();
  std::deque<std::string> scores;  // the page refers to them
  const auto format = size > 0 && (*zset)->packed() ? format_packed_score : format_score;
  reply_element_page(r, size, [&](uint64_t cursor, const size_t& count, auto visit) {
    if (size == 0) return uint64_t{0};
    return (*zset)->scan(cursor, count, [&](std::string_view member, double score) {
      visit(member, std::string_view(scores.emplace_back(format(score))));
    });
  });
}

}  // namespace holdfast
