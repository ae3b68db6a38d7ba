// The arguments of lock commands: the options of LOCK, and the bounds of owners and tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/state/request.h"
#include "core/state/ticket.h"

namespace holdfast {

// The option words of LOCK, in any order, each at most once, except OVER.
struct LockWords {
  bool shared = false;
  std::optional<int64_t> limit, wait_ms, delay_ms, token;
  bool session = false;
  bool async = false;
  std::optional<std::string_view> note;
  std::optional<int64_t> ticket, has, seen_ms;  // with TICKET: a request by ticket
  bool provisional = false;
  std::vector<Attempt> over;
};

// Reads all options. Writes an error and returns false if one is invalid.
bool read_lock_options(Request& r, LockWords& o);

// Returns whether a client may name the token for a new hold of the key. Writes an error with the code if
// not.
bool check_new_token(Request& r, const Key& key, uint64_t token, std::string_view code);
// The same for a token that raises that of a hold. With permission for LOCKS RAISE it may exceed
// max-token-lead, to catch up with another server whose tokens are ahead.
bool check_raised_token(Request& r, const Key& key, uint64_t token, std::string_view code);
// The same for the time of a ticket.
bool check_ticket_time(Request& r, const Key& key, uint64_t time);
bool check_owner(Request& r, std::string_view owner);

// The hold that RENEW, UNLOCK and FENCE refer to. `held`: false if the owner has none.
struct OwnHold {
  bool held = false;
  Keyspace::Found entry;
  const Holder* holder = nullptr;  // null: the exclusive hold of a string
};
OwnHold find_own_hold(Request& r, const Key& key, std::string_view owner);
// The reply if the owner has no hold.
void reply_not_held(Request& r, const OwnHold& own);

}  // namespace holdfast
