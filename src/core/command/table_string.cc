// Rows of the command table: strings.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr Command kStringRows[] = {
    {"append", cmd_append, 3, kWrite | kDenyOom | kFast, 1, 1, 1, kInserts, "string", "2.0.0", "O(1)",
     "Append a value to a key.", "key value"},
    {"cl.throttle", cmd_cl_throttle, -5, kWrite | kDenyOom | kFast, 1, 1, 1, kGetsAndUpdates, "string",
     "0.2.0", "O(1)",
     "Takes from a rate limiter; returns whether it was limited, the limit, the rest and two times.",
     "key max-burst count period [quantity]"},
    {"decr", cmd_decr, 2, kWrite | kDenyOom | kFast, 1, 1, 1, kGetsAndUpdates, "string", "1.0.0", "O(1)",
     "Decrement the integer value of a key by one.", "key"},
    {"decrby", cmd_decrby, 3, kWrite | kDenyOom | kFast, 1, 1, 1, kGetsAndUpdates, "string", "1.0.0",
     "O(1)", "Decrement the integer value of a key by the given number.", "key decrement"},
    {"delex", cmd_delex, -2, kWrite | kRelease | kFast, 1, 1, 1, kDeletesIf, "string", "8.4.0",
     "O(1); O(N) with IFDEQ or IFDNE, where N is the length of the string value.",
     "Deletes a key; with a condition only if its string or the digest of it is that one, or another.",
     "key [IFEQ comparison-value | IFNE comparison-value | IFDEQ comparison-digest | IFDNE "
     "comparison-digest]"},
    {"delifeq", cmd_delifeq, 3, kWrite | kRelease | kFast, 1, 1, 1, kErases, "string", "9.0.0", "O(1)",
     "Deletes a string if it equals the given value.", "key value"},
    {"digest", cmd_digest, 2, kReadOnly | kFast, 1, 1, 1, kGets, "string", "8.4.0",
     "O(N) where N is the length of the string value.", "Returns the XXH3 hash of a string value.", "key"},
    {"get", cmd_get, 2, kReadOnly | kFast, 1, 1, 1, kGets, "string", "1.0.0", "O(1)",
     "Returns the string value of a key; for an exclusive lock, its owner.", "key"},
    {"getdel", cmd_getdel, 2, kWrite | kRelease | kFast, 1, 1, 1, kPops, "string", "6.2.0", "O(1)",
     "Get the value of a key and delete the key.", "key"},
    {"getex", cmd_getex, -2, kWrite | kFast, 1, 1, 1, kGetsAndUpdates, "string", "6.2.0", "O(1)",
     "Get the value of a key and optionally set its expiration.",
     "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]"},
    {"getrange", cmd_getrange, 4, kReadOnly, 1, 1, 1, kGets, "string", "2.4.0",
     "O(N) where N is the length of the returned string", "Get a substring of the string stored at a key.",
     "key start end"},
    {"getset", cmd_getset, 3, kWrite | kDenyOom | kFast, 1, 1, 1, kGetsAndUpdates, "string", "1.0.0",
     "O(1)", "Set the string value of a key and return its old value.", "key value"},
    {"incr", cmd_incr, 2, kWrite | kDenyOom | kFast, 1, 1, 1, kGetsAndUpdates, "string", "1.0.0", "O(1)",
     "Increment the integer value of a key by one.", "key"},
    {"incrby", cmd_incrby, 3, kWrite | kDenyOom | kFast, 1, 1, 1, kGetsAndUpdates, "string", "1.0.0",
     "O(1)", "Increment the integer value of a key by the given amount.", "key increment"},
    {"incrbyfloat", cmd_incrbyfloat, 3, kWrite | kDenyOom | kFast, 1, 1, 1, kGetsAndUpdates, "string",
     "2.6.0", "O(1)", "Increment the float value of a key by the given amount.", "key increment"},
    {"mget", cmd_mget, -2, kReadOnly | kFast, 1, -1, 1, kGets, "string", "1.0.0",
     "O(N) where N is the number of keys to retrieve.", "Get the values of all the given keys.",
     "key [key ...]"},
    {"mset", cmd_mset, -3, kWrite | kDenyOom, 1, -1, 2, kStores, "string", "1.0.1",
     "O(N) where N is the number of keys to set.", "Set multiple keys to multiple values.",
     "key value [key value ...]"},
    {"msetex", cmd_msetex, -4, kWrite | kDenyOom | kMovableKeys | kCountsPairs, 0, 0, 0, kStores, "string",
     "8.4.0", "O(N) where N is the number of keys to set.",
     "Sets several keys to values with one expiry, all or none.",
     "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | "
     "PXAT unix-time-milliseconds | KEEPTTL]"},
    {"msetnx", cmd_msetnx, -3, kWrite | kDenyOom, 1, -1, 2, kStoresNew, "string", "1.0.1",
     "O(N) where N is the number of keys to set.",
     "Set multiple keys to multiple values, only if none of the keys exist.", "key value [key value ...]"},
    {"psetex", cmd_psetex, 4, kWrite | kDenyOom, 1, 1, 1, kStores, "string", "2.6.0", "O(1)",
     "Set the value and expiration in milliseconds of a key.", "key milliseconds value"},
    {"set", cmd_set, -3, kWrite | kDenyOom, 1, 1, 1, kSets, "string", "1.0.0",
     "O(1); O(N) with IFDEQ or IFDNE, where N is the length of the string value.",
     "Sets the string value of a key; with NX and an expiry, acquires an exclusive lock.",
     "key value [NX | XX | IFEQ comparison-value | IFNE comparison-value | IFDEQ comparison-digest | IFDNE "
     "comparison-digest] [GET] [EX seconds | PX milliseconds | EXAT "
     "unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]"},
    {"setex", cmd_setex, 4, kWrite | kDenyOom, 1, 1, 1, kStores, "string", "2.0.0", "O(1)",
     "Set the value and expiration of a key.", "key seconds value"},
    {"setnx", cmd_setnx, 3, kWrite | kDenyOom | kFast, 1, 1, 1, kStoresNew, "string", "1.0.0", "O(1)",
     "Set the value of a key, only if the key does not exist.", "key value"},
    {"setrange", cmd_setrange, 4, kWrite | kDenyOom, 1, 1, 1, kUpdates, "string", "2.2.0",
     "O(1), not counting the time taken to copy the new string in place",
     "Overwrite part of a string at key starting at the specified offset.", "key offset value"},
    {"strlen", cmd_strlen, 2, kReadOnly | kFast, 1, 1, 1, kInspects, "string", "2.2.0", "O(1)",
     "Get the length of the value stored in a key.", "key"},
    {"substr", cmd_substr, 4, kReadOnly, 1, 1, 1, kGets, "string", "1.0.0",
     "O(N) where N is the length of the returned string", "Get a substring of the string stored at a key.",
     "key start end"},
};

}  // namespace

std::span<const Command> string_commands() { return kStringRows; }

}  // namespace holdfast
