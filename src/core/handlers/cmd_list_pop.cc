// Lists: LPOP RPOP LMPOP LMOVE RPOPLPUSH, and those that wait: BLPOP BRPOP BLMPOP BLMOVE BRPOPLPUSH.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/blocking.h"
#include "core/handlers/body_access.h"
#include "core/handlers/list_access.h"
#include "core/keyspace/list_body.h"
#include "core/values/list_changes.h"

namespace holdfast {

namespace {

using Target = BodyTarget<ListBody>;

ListEnd end_of(const PopTerms& terms) { return terms.last ? ListEnd::kTail : ListEnd::kHead; }

// Removes elements from an end of an existing list.
void remove_from_end(Request& r, Target& target, ListEnd end, size_t count) {
  const size_t first = end == ListEnd::kHead ? 0 : target.body->size() - count;
  erase_elements(r.ctx, {r.c.db, target.f}, first, count, r.c.id);
  notify(r.ctx, kNotifyList, end == ListEnd::kHead ? "lpop" : "rpop", r.c.db, target.key.bytes);
  notify_if_removed(r, target.key);
}

void pop_one(Request& r, Target& target, ListEnd end) {
  auto at = target.body->at(end == ListEnd::kHead ? 0 : target.body->size() - 1);
  r.reply.bulk(at.get());
  remove_from_end(r, target, end, 1);
}

void pop_many(Request& r, Target& target, ListEnd end, int64_t most) {
  const size_t size = target.body->size();
  const size_t count = std::min(size, static_cast<size_t>(most));
  const bool tail = end == ListEnd::kTail;
  reply_elements(r, *target.body, {tail ? size - count : 0, count}, tail);
  if (count > 0) remove_from_end(r, target, end, count);
}

// The reply of BLPOP and BLMPOP. `key` must hold a list.
void pop_from(Request& r, const PopTerms& terms, const Key& key) {
  Target target{key, find_live(r.ctx, r.c.db, key)};
  target.body = &body_of<ListBody>(*target.f);
  r.reply.array(2);
  r.reply.bulk(key.bytes);
  if (terms.count) {
    pop_many(r, target, end_of(terms), *terms.count);
  } else {
    pop_one(r, target, end_of(terms));
  }
}

// LMOVE and BLMOVE. The list gets the element before it loses it, so that a list of one element that is
// also the target does not end. `source` must hold a list.
void move_from(Request& r, const PopTerms& terms, const Key& source) {
  auto target = find_body_to_write<ListBody>(r, *terms.target);
  if (!target) return;
  Keyspace::Found from = find_live(r.ctx, r.c.db, source);
  const ListBody& list = body_of<ListBody>(*from);
  size_t index = terms.last ? list.size() - 1 : 0;
  auto at = list.at(index);
  const std::string element(at.get());
  const ListEnd end = terms.target_tail ? ListEnd::kTail : ListEnd::kHead;
  const std::string_view elements[] = {element};
  push_elements(r.ctx, {r.c.db, target->f}, target->key, end, elements, r.c.id);
  notify(r.ctx, kNotifyList, terms.target_tail ? "rpush" : "lpush", r.c.db, target->key.bytes);
  r.reply.bulk(element);
  if (source.bytes == target->key.bytes && !terms.target_tail) ++index;
  from = find_live(r.ctx, r.c.db, source);
  erase_elements(r.ctx, {r.c.db, from}, index, 1, r.c.id);
  notify(r.ctx, kNotifyList, terms.last ? "rpop" : "lpop", r.c.db, source.bytes);
  notify_if_removed(r, source);
}

void pop(Request& r, ListEnd end) {
  if (r.argc() > 3) return reply_wrong_arity(r);
  const bool counted = r.argc() == 3;
  const auto count = counted ? parse_int_in(r.arg(2), 0, INT64_MAX) : 1;
  if (!count) return r.reply.error("ERR value is out of range, must be positive");
  auto target = find_body_to_write<ListBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr) return counted ? r.reply.null_array() : r.reply.null();
  counted ? pop_many(r, *target, end, *count) : pop_one(r, *target, end);
}

PopTerms pop_terms(ListEnd end) {
  PopTerms terms;
  terms.last = end == ListEnd::kTail;
  return terms;
}

PopTerms move_terms(std::string_view target, ListEnd from, ListEnd to) {
  PopTerms terms = pop_terms(from);
  terms.target = target;
  terms.target_tail = to == ListEnd::kTail;
  return terms;
}

void blocking_pop(Request& r, ListEnd end) {
  const auto timeout = read_timeout(r, r.argc() - 1);
  if (!timeout) return;
  pop_or_wait(r, pop_terms(end), pop_from, r.argv.subspan(1, r.argc() - 2), *timeout);
}

std::optional<PopTerms> read_pop_terms(Request& r, size_t i) {
  const auto end = read_list_end(r, i);
  return end ? std::optional(pop_terms(*end)) : std::nullopt;
}

void move_now(Request& r, ListEnd from, ListEnd to) {
  const std::string_view source[] = {r.arg(1)};
  if (!pop_now(r, move_terms(r.arg(2), from, to), move_from, source)) r.reply.null();
}

void blocking_move(Request& r, ListEnd from, ListEnd to) {
  const auto timeout = read_timeout(r, r.argc() - 1);
  if (timeout) pop_or_wait(r, move_terms(r.arg(2), from, to), move_from, r.argv.subspan(1, 1), *timeout);
}

}  // namespace

void cmd_lpop(Request& r) { pop(r, ListEnd::kHead); }
void cmd_rpop(Request& r) { pop(r, ListEnd::kTail); }
void cmd_blpop(Request& r) { blocking_pop(r, ListEnd::kHead); }
void cmd_brpop(Request& r) { blocking_pop(r, ListEnd::kTail); }
void cmd_lmpop(Request& r) { pop_from_first(r, 1, false, read_pop_terms, pop_from); }
void cmd_blmpop(Request& r) { pop_from_first(r, 2, true, read_pop_terms, pop_from); }

void cmd_lmove(Request& r) {
  const auto from = read_list_end(r, 3);
  const auto to = from ? read_list_end(r, 4) : std::nullopt;
  if (to) move_now(r, *from, *to);
}
void cmd_blmove(Request& r) {
  const auto from = read_list_end(r, 3);
  const auto to = from ? read_list_end(r, 4) : std::nullopt;
  if (to) blocking_move(r, *from, *to);
}
void cmd_rpoplpush(Request& r) { move_now(r, ListEnd::kTail, ListEnd::kHead); }
void cmd_brpoplpush(Request& r) { blocking_move(r, ListEnd::kTail, ListEnd::kHead); }

}  // namespace holdfast
