// Lists: LPUSH RPUSH LPUSHX RPUSHX LLEN LINDEX LRANGE LPOS LSET LINSERT LREM LTRIM.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/body_access.h"
#include "core/handlers/list_access.h"
#include "core/keyspace/list_body.h"
#include "core/values/list_changes.h"

namespace holdfast {

namespace {

void push(Request& r, ListEnd end, bool only_if_exists) {
  auto target = find_body_to_write<ListBody>(r, r.arg(1));
  if (!target) return;
  if (only_if_exists && target->body == nullptr) return r.reply.integer(0);
  push_elements(r.ctx, {r.c.db, target->f}, target->key, end, r.argv.subspan(2), r.c.id);
  notify(r.ctx, kNotifyList, end == ListEnd::kHead ? "lpush" : "rpush", r.c.db, r.arg(1));
  r.reply.integer(static_cast<int64_t>(body_of<ListBody>(*target->f).size()));
}

// The options of LPOS.
struct Search {
  int64_t rank = 1;  // counts matches from 1; negative: from the tail
  std::optional<int64_t> count;
  int64_t most_compared = 0;  // 0: all
};

std::optional<int64_t> read_not_negative(Request& r, size_t i, std::string_view error) {
  const auto n = parse_int_in(r.arg(i), 0, INT64_MAX);
  if (!n) r.reply.error(error);
  return n;
}

// Returns false after an error reply.
bool read_search(Request& r, Search& s) {
  for (size_t i = 3; i < r.argc(); i += 2) {
    if (i + 1 == r.argc()) return reply_syntax_error(r), false;
    if (equals_ignore_case(r.arg(i), "RANK")) {
      const auto rank = parse_int(r.arg(i + 1));
      if (!rank) return reply_not_an_integer(r), false;
      s.rank = *rank == INT64_MIN ? -1 : *rank;  // Redis 7.0 negates the least number to itself
      if (s.rank == 0) {
        r.reply.error(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
            "or use negative to start from the end of the list");
        return false;
      }
    } else if (equals_ignore_case(r.arg(i), "COUNT")) {
      s.count = read_not_negative(r, i + 1, "ERR COUNT can't be negative");
      if (!s.count) return false;
    } else if (equals_ignore_case(r.arg(i), "MAXLEN")) {
      const auto most = read_not_negative(r, i + 1, "ERR MAXLEN can't be negative");
      if (!most) return false;
      s.most_compared = *most;
    } else {
      return reply_syntax_error(r), false;
    }
  }
  return true;
}

// Returns the indexes of the matches that the search is for, in its direction.
std::vector<size_t> find_matches(const ListBody& list, std::string_view element, const Search& s) {
  const PackedElement wanted(element);
  const bool forward = s.rank > 0;
  int64_t to_skip = (forward ? s.rank : -s.rank) - 1;
  const size_t size = list.size();
  const size_t most = s.most_compared == 0 ? size : std::min(size, static_cast<size_t>(s.most_compared));
  const size_t count = s.count.value_or(1) == 0 ? size : static_cast<size_t>(s.count.value_or(1));
  std::vector<size_t> found;
  auto at = list.at(forward ? 0 : size - 1);
  for (size_t i = 0; i < most; ++i, forward ? at.next() : at.previous()) {
    if (!at.equals(wanted) || to_skip-- > 0) continue;
    found.push_back(forward ? i : size - 1 - i);
    if (found.size() == count) break;
  }
  return found;
}

// The range of LRANGE and LTRIM in a list, or an empty one.
ListRange read_range(int64_t first, int64_t last, size_t size) {
  const auto n = static_cast<int64_t>(size);
  if (first < 0) first = std::max<int64_t>(first + n, 0);
  if (last < 0) last += n;
  last = std::min(last, n - 1);
  if (first > last || first >= n) return {0, 0};
  return {static_cast<size_t>(first), static_cast<size_t>(last - first + 1)};
}

std::optional<std::pair<int64_t, int64_t>> read_bounds(Request& r) {
  const auto first = parse_int(r.arg(2));
  const auto last = parse_int(r.arg(3));
  if (first && last) return std::pair(*first, *last);
  reply_not_an_integer(r);
  return std::nullopt;
}

// Returns the index of an existing element; a negative number counts from the tail.
std::optional<size_t> index_in(int64_t index, size_t size) {
  const auto n = static_cast<int64_t>(size);
  if (index < 0) index += n;
  if (index < 0 || index >= n) return std::nullopt;
  return static_cast<size_t>(index);
}

}  // namespace

void cmd_lpush(Request& r) { push(r, ListEnd::kHead, false); }
void cmd_rpush(Request& r) { push(r, ListEnd::kTail, false); }
void cmd_lpushx(Request& r) { push(r, ListEnd::kHead, true); }
void cmd_rpushx(Request& r) { push(r, ListEnd::kTail, true); }

void cmd_llen(Request& r) {
  const auto list = find_body_to_read<ListBody>(r, r.arg(1));
  if (list) r.reply.integer(*list == nullptr ? 0 : static_cast<int64_t>((*list)->size()));
}

void cmd_lindex(Request& r) {
  const auto list = find_body_to_read<ListBody>(r, r.arg(1));
  if (!list) return;
  if (*list == nullptr) return r.reply.null();
  const auto number = parse_int(r.arg(2));
  if (!number) return reply_not_an_integer(r);
  const auto index = index_in(*number, (*list)->size());
  if (!index) return r.reply.null();
  auto at = (*list)->at(*index);
  r.reply.bulk(at.get());
}

void cmd_lrange(Request& r) {
  const auto bounds = read_bounds(r);
  if (!bounds) return;
  const auto list = find_body_to_read<ListBody>(r, r.arg(1));
  if (!list) return;
  if (*list == nullptr) return r.reply.array(0);
  reply_elements(r, **list, read_range(bounds->first, bounds->second, (*list)->size()));
}

void cmd_lpos(Request& r) {
  Search search;
  if (!read_search(r, search)) return;
  const auto list = find_body_to_read<ListBody>(r, r.arg(1));
  if (!list) return;
  std::vector<size_t> found;
  if (*list != nullptr) found = find_matches(**list, r.arg(2), search);
  if (search.count) {
    r.reply.array(found.size());
  } else if (found.empty()) {
    return r.reply.null();
  }
  for (const size_t index : found) r.reply.integer(static_cast<int64_t>(index));
}

void cmd_lset(Request& r) {
  auto target = find_body_to_write<ListBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr) return r.reply.error("ERR no such key");
  const auto number = parse_int(r.arg(2));
  if (!number) return reply_not_an_integer(r);
  const auto index = index_in(*number, target->body->size());
  if (!index) return r.reply.error("ERR index out of range");
  set_element(r.ctx, {r.c.db, target->f}, *index, r.arg(3), r.c.id);
  notify(r.ctx, kNotifyList, "lset", r.c.db, r.arg(1));
  r.reply.ok();
}

void cmd_linsert(Request& r) {
  const bool after = equals_ignore_case(r.arg(2), "AFTER");
  if (!after && !equals_ignore_case(r.arg(2), "BEFORE")) return reply_syntax_error(r);
  auto target = find_body_to_write<ListBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr) return r.reply.integer(0);
  const auto found = find_matches(*target->body, r.arg(3), {});
  if (found.empty()) return r.reply.integer(-1);
  insert_element(r.ctx, {r.c.db, target->f}, found[0] + (after ? 1 : 0), r.arg(4), r.c.id);
  notify(r.ctx, kNotifyList, "linsert", r.c.db, r.arg(1));
  r.reply.integer(static_cast<int64_t>(body_of<ListBody>(*target->f).size()));
}

void cmd_lrem(Request& r) {
  const auto count = parse_int(r.arg(2));
  if (!count) return reply_not_an_integer(r);
  auto target = find_body_to_write<ListBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr) return r.reply.integer(0);
  const auto given = static_cast<size_t>(*count);
  const size_t most = *count == 0 ? SIZE_MAX : *count < 0 ? 0 - given : given;
  const size_t erased = erase_equal_elements(
      r.ctx, {r.c.db, target->f}, *count < 0 ? ListEnd::kTail : ListEnd::kHead, most, r.arg(3), r.c.id);
  if (erased > 0) notify(r.ctx, kNotifyList, "lrem", r.c.db, r.arg(1));
  if (erased > 0) notify_if_removed(r, target->key);
  r.reply.integer(static_cast<int64_t>(erased));
}

void cmd_ltrim(Request& r) {
  const auto bounds = read_bounds(r);
  if (!bounds) return;
  auto target = find_body_to_write<ListBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr) return r.reply.ok();
  const size_t size = target->body->size();
  const ListRange kept = read_range(bounds->first, bounds->second, size);
  const KeyRef k{r.c.db, target->f};
  const size_t behind = size - kept.first - kept.count;
  // As in Redis, EXEC sees a change even if nothing was removed.
  if (kept.count == size) record_part_change(r.ctx, k, r.c.id);
  if (behind > 0) erase_elements(r.ctx, k, kept.first + kept.count, behind, r.c.id);
  if (kept.first > 0) erase_elements(r.ctx, k, 0, kept.first, r.c.id);
  notify(r.ctx, kNotifyList, "ltrim", r.c.db, r.arg(1));
  notify_if_removed(r, target->key);
  r.reply.ok();
}

}  // namespace holdfast
