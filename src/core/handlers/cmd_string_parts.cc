// Reads and changes parts of strings, several strings at once, and strings as numbers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/string_access.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/acquire.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

struct Range {
  size_t begin = 0, size = 0;
};

// Redis's range: both ends are included, and negative ones count from the end of the string.
Range range_of(int64_t first, int64_t last, size_t size) {
  const auto end = static_cast<int64_t>(size);
  if (first < 0 && last < 0 && first > last) return {};
  if (first < 0) first = std::max<int64_t>(first + end, 0);
  if (last < 0) last = std::max<int64_t>(last + end, 0);
  last = std::min(last, end - 1);
  if (first > last || size == 0) return {};
  return {static_cast<size_t>(first), static_cast<size_t>(last - first + 1)};
}

bool all_free(Request& r) {
  for (size_t i = 1; i < r.argc(); i += 2) {
    if (!is_free(r.ctx, r.c.db, find_any(r.ctx, r.c.db, r.keys().key(r.arg(i))))) return false;
  }
  return true;
}

void set_all(Request& r) {
  for (size_t i = 1; i < r.argc(); i += 2) {
    const Key key = r.keys().key(r.arg(i));
    Keyspace::Found f = find_any(r.ctx, r.c.db, key);
    set_string(r, key, f, r.arg(i + 1), kNever);
  }
}

void change_by(Request& r, int64_t increment) {
  StringAt s = find_string(r, r.arg(1));
  if (!s.fits) return;
  const auto value = s.live ? parse_int(s.value) : std::optional<int64_t>(0);
  if (!value) return reply_not_an_integer(r);
  int64_t sum = 0;
  if (__builtin_add_overflow(*value, increment, &sum)) {
    return r.reply.error("ERR increment or decrement would overflow");
  }
  char digits[24];
  const char* end = std::to_chars(digits, digits + sizeof digits, sum).ptr;
  change_string(r, s, {digits, static_cast<size_t>(end - digits)}, "incrby");
  r.reply.integer(sum);
}

}  // namespace

void cmd_strlen(Request& r) {
  const Keyspace::Found f = find_to_read(r, r.arg(1));
  if (!f) return r.reply.integer(0);
  if (type_of(*f) != EntryType::kString) return reply_wrong_type(r);
  r.reply.integer(static_cast<int64_t>(value_of(*f).size()));
}

void cmd_getrange(Request& r) {
  const auto first = parse_int(r.arg(2));
  const auto last = parse_int(r.arg(3));
  if (!first || !last) return reply_not_an_integer(r);
  const Keyspace::Found f = find_to_read(r, r.arg(1));
  if (!f) return r.reply.bulk("");
  if (type_of(*f) != EntryType::kString) return reply_wrong_type(r);
  const Range range = range_of(*first, *last, value_of(*f).size());
  r.reply.bulk(value_of(*f).substr(range.begin, range.size));
}

void cmd_substr(Request& r) { cmd_getrange(r); }

void cmd_setrange(Request& r) {
  const auto offset = parse_int(r.arg(2));
  if (!offset) return reply_not_an_integer(r);
  if (*offset < 0) return r.reply.error("ERR offset is out of range");
  StringAt s = find_string(r, r.arg(1));
  if (!s.fits) return;
  const std::string_view part = r.arg(3);
  if (part.empty()) return r.reply.integer(static_cast<int64_t>(s.value.size()));
  const auto at = static_cast<size_t>(*offset);
  if (!check_string_size(r, at + part.size())) return;
  change_string_part(r, s, at, part, "setrange");
  r.reply.integer(static_cast<int64_t>(value_of(*s.found).size()));
}

void cmd_append(Request& r) {
  StringAt s = find_string(r, r.arg(1));
  if (!s.fits || !check_string_size(r, s.value.size() + r.arg(2).size())) return;
  change_string_part(r, s, s.value.size(), r.arg(2), "append");
  r.reply.integer(static_cast<int64_t>(value_of(*s.found).size()));
}

void cmd_mget(Request& r) {
  r.reply.array(r.argc() - 1);
  for (size_t i = 1; i < r.argc(); ++i) {
    const Keyspace::Found f = find_to_read(r, r.arg(i));
    f&& type_of(*f) == EntryType::kString ? r.reply.bulk(value_of(*f)) : r.reply.null();
  }
}

void cmd_mset(Request& r) {
  if (r.argc() % 2 == 0) return reply_wrong_arity(r);
  set_all(r);
  r.reply.ok();
}

void cmd_msetnx(Request& r) {
  if (r.argc() % 2 == 0) return reply_wrong_arity(r);
  const bool free = all_free(r);
  if (free) set_all(r);
  r.reply.integer(free ? 1 : 0);
}

void cmd_incr(Request& r) { change_by(r, 1); }
void cmd_decr(Request& r) { change_by(r, -1); }

void cmd_incrby(Request& r) {
  const auto increment = parse_int(r.arg(2));
  if (!increment) return reply_not_an_integer(r);
  change_by(r, *increment);
}

void cmd_decrby(Request& r) {
  const auto decrement = parse_int(r.arg(2));
  if (!decrement) return reply_not_an_integer(r);
  if (*decrement == std::numeric_limits<int64_t>::min()) {
    return r.reply.error("ERR decrement would overflow");
  }
  change_by(r, -*decrement);
}

void cmd_incrbyfloat(Request& r) {
  StringAt s = find_string(r, r.arg(1));
  if (!s.fits) return;
  const auto value = s.live ? parse_float(s.value) : std::optional<long double>(0);
  const auto increment = parse_float(r.arg(2));
  if (!value || !increment) return r.reply.error("ERR value is not a valid float");
  const long double sum = *value + *increment;
  if (!std::isfinite(sum)) return r.reply.error("ERR increment would produce NaN or Infinity");
  const std::string text = format_float(sum);
  change_string(r, s, text, "incrbyfloat");
  r.reply.bulk(text);
}

}  // namespace holdfast
