// HSCAN and its like: one page of the elements of a value.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/glob.h"
#include "core/handlers/scan.h"
#include "core/state/request.h"

namespace holdfast {

// Whether argument 2 is a valid cursor; writes an error if not. Redis checks it before the key's type, and
// the options only if the key has elements.
inline bool check_element_cursor(Request& r) {
  Request head = r;
  head.argv = r.argv.first(3);
  return read_scan_arguments(head, 2, false).has_value();
}

// Replies with the page of "key cursor [MATCH pattern] [COUNT count]" of a value with `size` elements.
// `scan(cursor, count, visit)` calls `visit(name, others...)` for each element, as HashBody::scan() does;
// MATCH applies to `name`.
template <class Scan>
void reply_element_page(Request& r, size_t size, Scan scan) {
  ScanArguments given;
  if (size > 0) {
    const auto read = read_scan_arguments(r, 2, false);
    if (!read) return;
    given = *read;
  }
  std::vector<std::string_view> page;
  GlobSteps steps;
  const uint64_t next = scan(given.cursor, given.count, [&](std::string_view name, auto... others) {
    if (steps.taken >= kPageSteps) given.count = steps.allowed = 0;  // a packed value has one page only
    if (given.match && !glob_match(*given.match, name, steps)) return;
    page.push_back(name);
    (page.push_back(others), ...);
  });
  r.reply.array(2);
  r.reply.bulk_integer(static_cast<int64_t>(next));
  r.reply.array(page.size());
  for (const std::string_view text : page) r.reply.bulk(text);
}

}  // namespace holdfast
