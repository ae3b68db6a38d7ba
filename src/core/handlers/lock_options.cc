// Reads and checks the arguments of lock commands.
#include "core/handlers/lock_options.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/config.h"
#include "core/command/command.h"
#include "core/events/acl_check.h"
#include "core/lock/keys.h"
#include "core/state/tickets.h"
#include "core/state/tokens.h"

namespace holdfast {

namespace {

bool set_flag(bool& flag) { return !std::exchange(flag, true); }

// Writes an error and returns false if the note is too long.
bool read_note(Request& r, std::string_view note, LockWords& o) {
  o.note = note;
  if (note.size() <= kMaxNoteBytes) return true;
  r.reply.error("ERR NOTE must be at most " + std::to_string(kMaxNoteBytes) + " bytes");
  return false;
}

bool read_over(Request& r, std::string_view owner, LockWords& o) {
  const auto attempt = read_attempt(owner);
  if (!attempt) {
    r.reply.error("ERR OVER must be an owner of the form <slot>.<number>");
    return false;
  }
  o.over.push_back(*attempt);
  return true;
}

// Sets the option that is a single word. Returns false if there is none, or if it is given twice.
bool read_flag(std::string_view word, LockWords& o) {
  const std::pair<std::string_view, bool&> flags[] = {
      {"SHARED", o.shared}, {"SESSION", o.session}, {"ASYNC", o.async}, {"PROVISIONAL", o.provisional}};
  for (const auto& [name, flag] : flags) {
    if (equals_ignore_case(word, name)) return set_flag(flag);
  }
  return false;
}

// Reads the option at `i`, and moves `i` to its last argument. Writes an error and returns false if it is
// invalid.
bool read_lock_option(Request& r, size_t& i, LockWords& o) {
  struct Numbered {
    std::string_view word;
    std::optional<int64_t>& value;
    int64_t lowest, highest;
  };
  constexpr auto kMostToken = static_cast<int64_t>(kMaxToken);
  const Numbered numbered[] = {{"WAIT", o.wait_ms, 0, kMaxTtlMs},   {"LIMIT", o.limit, 1, INT32_MAX},
                               {"DELAY", o.delay_ms, 0, kMaxTtlMs}, {"TOKEN", o.token, 0, kMostToken},
                               {"TICKET", o.ticket, 0, kMostToken}, {"HAS", o.has, 0, kMostToken},
                               {"SEEN", o.seen_ms, 0, kMaxTtlMs}};
  const std::string_view word = r.arg(i);
  for (const Numbered& n : numbered) {
    if (!equals_ignore_case(word, n.word)) continue;
    if (n.value || i + 1 >= r.argc()) break;
    n.value = read_number(r, ++i, n.word, n.lowest, n.highest);
    return n.value.has_value();
  }
  if (read_flag(word, o)) return true;
  const bool has_value = i + 1 < r.argc();
  if (equals_ignore_case(word, "NOTE") && !o.note && has_value) return read_note(r, r.arg(++i), o);
  if (equals_ignore_case(word, "OVER") && has_value && o.over.size() < kMostOverNamed)
    return read_over(r, r.arg(++i), o);
  reply_syntax_error(r);
  return false;
}

// Whether the options can be together.
bool fit_together(const LockWords& o) {
  if (o.shared && o.limit) return false;
  if (o.async && !o.wait_ms) return false;
  if (o.ticket) return !o.wait_ms && !o.session;
  return !o.provisional && !o.has && !o.seen_ms && o.over.empty();
}

// The largest clock value that a client may name (max-token-lead). It derives from values that clients
// cannot change, so that repeated requests do not raise it.
constexpr uint64_t kMostTicketLeadUs = 31'536'000'000'000;  // 365 days

uint64_t wall_us(const Request& r) {
  return static_cast<uint64_t>(std::max<int64_t>(r.ctx.now.wall_us, 0));
}

uint64_t furthest_time(const Request& r) {
  const Config& config = r.s().config;
  return std::max(wall_us(r), config.token_floor) +
         static_cast<uint64_t>(config.max_token_lead.count) * 1000;
}

// Whether the user has permission for LOCKS RAISE, and so may exceed that limit.
bool may_raise(const Request& r, const Key& key) {
  const std::string_view argv[] = {"locks", "raise", key.bytes, "0"};
  return check_permission(r.s(), *r.c.user, *find_row(argv), argv).allowed();
}

bool check_token(Request& r, const Key& key, uint64_t token, std::string_view code, bool raises) {
  const bool far = token > std::max(furthest_time(r), r.s().tokens.last(key) + 1);
  if (token > kLastNamedToken || (far && !(raises && may_raise(r, key)))) {
    r.reply.error(std::string(code) + " token is further ahead than max-token-lead allows");
    return false;
  }
  if (far || r.s().tokens.fits(key, token, near_token(r.s().config, r.ctx.now))) return true;
  if (code == "ERR") {
    reply_too_many_ahead(r);
  } else {
    r.reply.error(std::string(code) + " too many keys have tokens ahead of the clock");
  }
  return false;
}

}  // namespace

bool read_lock_options(Request& r, LockWords& o) {
  for (size_t i = 4; i < r.argc(); ++i) {
    if (!read_lock_option(r, i, o)) return false;
  }
  if (!fit_together(o)) {
    reply_syntax_error(r);
    return false;
  }
  if (r.c.protocol >= 3 || (!o.ticket && !o.async)) return true;
  r.reply.error(std::string("ERR ") + (o.ticket ? "TICKET" : "ASYNC") + " needs RESP3: send HELLO 3 first");
  return false;
}

bool check_new_token(Request& r, const Key& key, uint64_t token, std::string_view code) {
  return check_token(r, key, token, code, false);
}

bool check_raised_token(Request& r, const Key& key, uint64_t token, std::string_view code) {
  return check_token(r, key, token, code, true);
}

// Not max-token-lead: clocks of servers differ by hours. A ticket that only some servers accept would raise
// the floor there, and each later ticket would be too far ahead for the others.
bool check_ticket_time(Request& r, const Key& key, uint64_t time) {
  if (time <= std::max(wall_us(r) + kMostTicketLeadUs, r.s().tickets.floors.of(key) + 1)) return true;
  r.reply.error("AHEAD ticket is more than a year ahead of the server's clock");
  return false;
}

bool check_owner(Request& r, std::string_view owner) {
  const uint32_t most = r.s().config.limits.owner_bytes;
  if (!owner.empty() && owner.size() <= most) return true;
  r.reply.error("ERR owner must be 1 to " + std::to_string(most) + " bytes");
  return false;
}

OwnHold find_own_hold(Request& r, const Key& key, std::string_view owner) {
  OwnHold own;
  own.entry = find_live(r.ctx, r.c.db, key);
  if (!own.entry) return own;
  const auto hold = hold_of(*own.entry, owner);
  own.held = hold.has_value();
  if (hold) own.holder = hold->holder;
  return own;
}

void reply_not_held(Request& r, const OwnHold& own) {
  if (!own.entry) return r.reply.integer(0);
  if (is_collection(*own.entry)) return reply_wrong_type(r);
  r.reply.integer(-1);
}

}  // namespace holdfast
