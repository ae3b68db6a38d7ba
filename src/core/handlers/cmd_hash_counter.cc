// HINCRBY and HINCRBYFLOAT.
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "core/base/parse.h"
#include "core/command/handlers.h"
#include "core/handlers/hash_access.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

void put_counter(Request& r, HashTarget& target, std::string_view value, std::string_view event) {
  const std::array<std::string_view, 2> pair{r.arg(2), value};
  put_fields(r, target, pair, event, true);
}

}  // namespace

void cmd_hincrby(Request& r) {
  const auto increment = parse_int(r.arg(3));
  if (!increment) return reply_not_an_integer(r);
  auto target = find_hash_to_write(r);
  if (!target) return;
  const auto present = target->hash.find(r.arg(2));
  const auto value = present ? parse_int(*present) : 0;
  if (!value) return r.reply.error("ERR hash value is not an integer");
  int64_t sum = 0;
  if (__builtin_add_overflow(*value, *increment, &sum)) {
    return r.reply.error("ERR increment or decrement would overflow");
  }
  char digits[20];
  const char* const end = std::to_chars(digits, digits + sizeof digits, sum).ptr;
  put_counter(r, *target, {digits, static_cast<size_t>(end - digits)}, "hincrby");
  r.reply.integer(sum);
}

void cmd_hincrbyfloat(Request& r) {
  const auto increment = parse_float(r.arg(3));
  if (!increment) return r.reply.error("ERR value is not a valid float");
  if (std::isinf(*increment)) return r.reply.error("ERR value is NaN or Infinity");
  auto target = find_hash_to_write(r);
  if (!target) return;
  const auto present = target->hash.find(r.arg(2));
  const auto value = present ? parse_float(*present) : 0;
  if (!value) return r.reply.error("ERR hash value is not a float");
  const long double sum = *value + *increment;
  if (!std::isfinite(sum)) return r.reply.error("ERR increment would produce NaN or Infinity");
  const std::string text = format_float(sum);
  put_counter(r, *target, text, "hincrbyfloat");
  r.reply.bulk(text);
}

}  // namespace holdfast
