// OBJECT and MEMORY USAGE: show how a key is stored.
#include <string>

#include "core/command/handlers.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/keyspace/value_body.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr size_t kEmbeddedBytes = 44;       // the longest string that Redis embeds in its object
constexpr int64_t kSharedIntegers = 10000;  // Redis shares the objects of smaller integers
constexpr int64_t kSharedCount = 2147483647;

// Finds the key in argument 2, without counting a hit or a miss. Replies null if there is none.
Keyspace::Found find_object(Request& r) {
  const Keyspace::Found f = find_live(r.ctx, r.c.db, r.keys().key(r.arg(2)));
  if (!f) r.reply.null();
  return f;
}

// Returns Redis's name of the encoding, derived from the value. The server does not store how a value was
// made: a result of APPEND or SETRANGE is "raw" in Redis, and an integer from INCRBYFLOAT is "embstr".
std::string_view encoding_of(const Entry& e) {
  switch (type_of(e)) {
    case EntryType::kString:
      if (parse_int(value_of(e))) return "int";
      return value_of(e).size() <= kEmbeddedBytes ? "embstr" : "raw";
    case EntryType::kHash:
      return "listpack";
    case EntryType::kBigHash:
    case EntryType::kList:
    case EntryType::kSet:
    case EntryType::kZset:
      return value_body_of(e)->encoding();
    case EntryType::kLock:
    case EntryType::kNone:
      break;
  }
  return "holders";
}

uint64_t bytes_of(const Entry& e) {
  uint64_t bytes = Keyspace::entry_bytes(e);
  if (has_value_body(e)) bytes += value_body_of(e)->bytes();
  if (type_of(e) == EntryType::kLock) bytes += lock_body_of(e)->bytes();
  return bytes;
}

}  // namespace

void cmd_object_encoding(Request& r) {
  if (const auto f = find_object(r)) r.reply.bulk(encoding_of(*f));
}

void cmd_object_refcount(Request& r) {
  const auto f = find_object(r);
  if (!f) return;
  const auto number = type_of(*f) == EntryType::kString ? parse_int(value_of(*f)) : std::nullopt;
  r.reply.integer(number && *number >= 0 && *number < kSharedIntegers ? kSharedCount : 1);
}

// The server does not store when a key was last read. The idle time counts from the last set or renewal.
void cmd_object_idletime(Request& r) {
  const auto f = find_object(r);
  if (f) r.reply.integer(std::max<int64_t>((r.now() - renewed_at(*f)).count, 0) / 1000);
}

void cmd_object_freq(Request& r) {
  if (!find_object(r)) return;
  r.reply.error(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when "
      "switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

void cmd_object_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "ENCODING <key>",
      "    Return the kind of internal representation used in order to store the value",
      "    associated with a <key>.",
      "FREQ <key>",
      "    Return the access frequency index of the <key>. The returned integer is",
      "    proportional to the logarithm of the recent access frequency of the key.",
      "IDLETIME <key>",
      "    Return the idle time of the <key>, that is the approximated number of",
      "    seconds elapsed since the last access to the key.",
      "REFCOUNT <key>",
      "    Return the number of references of the value associated with the specified",
      "    <key>.",
  };
  reply_help(r, kLines);
}

void cmd_memory_usage(Request& r) {
  for (size_t i = 3; i < r.argc(); i += 2) {
    if (!equals_ignore_case(r.arg(i), "SAMPLES") || i + 1 >= r.argc()) return reply_syntax_error(r);
    const auto samples = parse_int(r.arg(i + 1));
    if (!samples) return reply_not_an_integer(r);
    if (*samples < 0) return reply_syntax_error(r);
  }
  if (const auto f = find_object(r)) r.reply.integer(static_cast<int64_t>(bytes_of(*f)));
}

}  // namespace holdfast
