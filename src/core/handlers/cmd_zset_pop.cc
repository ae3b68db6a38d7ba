// Sorted sets: ZPOPMIN ZPOPMAX ZMPOP, and those that wait: BZPOPMIN BZPOPMAX BZMPOP.
#include <optional>

#include "core/command/handlers.h"
#include "core/handlers/blocking.h"
#include "core/handlers/body_access.h"
#include "core/handlers/zset_access.h"
#include "core/handlers/zset_range.h"
#include "core/keyspace/zset_body.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

ZsetEnd end_of(const PopTerms& terms) { return terms.last ? ZsetEnd::kMax : ZsetEnd::kMin; }

// ZPOPMIN and ZPOPMAX. Without a count, RESP3 has no pair for the one member.
void pop(Request& r, ZsetEnd end) {
  if (r.argc() > 3) return reply_syntax_error(r);
  const bool counted = r.argc() == 3;
  const auto count = counted ? parse_int_in(r.arg(2), 0, INT64_MAX) : 1;
  if (!count) return r.reply.error("ERR value is out of range, must be positive");
  auto target = find_body_to_write<ZsetBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr || *count == 0) return reply_no_members(r);
  const Ranks ranks = end_ranks(*target->body, end, static_cast<size_t>(*count));
  if (counted) {
    reply_members(r, *target->body, ranks, end == ZsetEnd::kMax, true);
  } else {
    r.reply.array(2);
    for_each_member(*target->body, ranks, false, [&](std::string_view member, double score) {
      r.reply.bulk(member);
      r.reply.number(score);
    });
  }
  pop_ranks(r.ctx, {r.c.db, target->f}, ranks, end, r.c.id);
}

// The reply of BZPOPMIN, or of ZMPOP, which has a pair for each member also in RESP2. `key` must hold a
// sorted set.
void pop_from(Request& r, const PopTerms& terms, const Key& key) {
  Keyspace::Found f = find_live(r.ctx, r.c.db, key);
  const auto& zset = body_of<ZsetBody>(*f);
  const Ranks ranks = end_ranks(zset, end_of(terms), static_cast<size_t>(terms.count.value_or(1)));
  r.reply.array(terms.count ? 2 : 3);
  r.reply.bulk(key.bytes);
  if (terms.count) r.reply.array(ranks.count);
  for_each_member(zset, ranks, terms.last, [&](std::string_view member, double score) {
    if (terms.count) r.reply.array(2);
    r.reply.bulk(member);
    r.reply.number(score);
  });
  pop_ranks(r.ctx, {r.c.db, f}, ranks, end_of(terms), r.c.id);
}

PopTerms pop_terms(ZsetEnd end) {
  PopTerms terms;
  terms.type = EntryType::kZset;
  terms.last = end == ZsetEnd::kMax;
  return terms;
}

void blocking_pop(Request& r, ZsetEnd end) {
  const auto timeout = read_timeout(r, r.argc() - 1);
  if (timeout) pop_or_wait(r, pop_terms(end), pop_from, r.argv.subspan(1, r.argc() - 2), *timeout);
}

std::optional<PopTerms> read_pop_terms(Request& r, size_t i) {
  if (equals_ignore_case(r.arg(i), "MIN")) return pop_terms(ZsetEnd::kMin);
  if (equals_ignore_case(r.arg(i), "MAX")) return pop_terms(ZsetEnd::kMax);
  reply_syntax_error(r);
  return std::nullopt;
}

}  // namespace

void cmd_zpopmin(Request& r) { pop(r, ZsetEnd::kMin); }
void cmd_zpopmax(Request& r) { pop(r, ZsetEnd::kMax); }
void cmd_bzpopmin(Request& r) { blocking_pop(r, ZsetEnd::kMin); }
void cmd_bzpopmax(Request& r) { blocking_pop(r, ZsetEnd::kMax); }
void cmd_zmpop(Request& r) { pop_from_first(r, 1, false, read_pop_terms, pop_from); }
void cmd_bzmpop(Request& r) { pop_from_first(r, 2, true, read_pop_terms, pop_from); }

}  // namespace holdfast
