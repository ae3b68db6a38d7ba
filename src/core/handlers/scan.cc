// The arguments and pages of SCAN.
#include "core/handlers/scan.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "core/keyspace/hash_body.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

// Reads a cursor as strtoul() does, which Redis uses: an empty text is 0, and "-1" is the largest number.
std::optional<uint64_t> parse_cursor(std::string_view text) {
  const std::string copy(text);
  if (!copy.empty() && std::isspace(static_cast<unsigned char>(copy[0])) != 0) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const uint64_t value = std::strtoull(copy.c_str(), &end, 10);
  if (*end != '\0' || errno == ERANGE) return std::nullopt;
  return value;
}

bool read_scan_option(Request& r, size_t i, bool with_type, ScanArguments& scan) {
  if (i + 1 < r.argc()) {
    const std::string_view word = r.arg(i);
    if (equals_ignore_case(word, "MATCH")) {
      if (r.arg(i + 1) != "*") scan.match = r.arg(i + 1);
      return true;
    }
    if (equals_ignore_case(word, "COUNT")) {
      const auto count = parse_int(r.arg(i + 1));
      if (!count) return reply_not_an_integer(r), false;
      if (*count < 1) return reply_syntax_error(r), false;
      scan.count = static_cast<size_t>(*count);
      return true;
    }
    if (with_type && equals_ignore_case(word, "TYPE")) {
      scan.type = r.arg(i + 1);
      return true;
    }
  }
  reply_syntax_error(r);
  return false;
}

}  // namespace

bool is_shown(const Entry& e, const ScanArguments& scan, TimeMs now, GlobSteps& steps) {
  const bool over =
      is_due(deadline_of(e), now) && (is_due(key_deadline(e), now) || has_only_due_fields(e, now));
  return type_of(e) != EntryType::kNone && !over && (!scan.holds_only || is_hold(e)) &&
         (!scan.type || equals_ignore_case(*scan.type, type_name(type_of(e)))) &&
         (!scan.match || glob_match(*scan.match, key_of(e), steps));
}

std::optional<ScanArguments> read_scan_arguments(Request& r, size_t at, bool with_type) {
  ScanArguments scan;
  const auto cursor = parse_cursor(r.arg(at));
  if (!cursor) {
    r.reply.error("ERR invalid cursor");
    return std::nullopt;
  }
  scan.cursor = std::min(*cursor, (uint64_t{1} << Keyspace::kCursorBits) - 1);
  for (size_t i = at + 1; i < r.argc(); i += 2) {
    if (!read_scan_option(r, i, with_type, scan)) return std::nullopt;
  }
  return scan;
}

ScanPage scan_page(Request& r, const ScanArguments& scan) {
  ScanPage page;
  size_t count = scan.count;
  GlobSteps steps;
  page.next = r.keys().scan(scan.cursor, count, [&](const Entry& e) {
    if (is_shown(e, scan, r.now(), steps)) page.keys.emplace_back(key_of(e));
    if (steps.taken >= kPageSteps) count = 0;
  });
  return page;
}

}  // namespace holdfast
