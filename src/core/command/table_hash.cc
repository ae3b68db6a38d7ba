// Rows of the command table: hashes.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr Command kHashRows[] = {
    {"hdel", cmd_hdel, -3, kWrite | kRelease | kFast, 1, 1, 1, kErases, "hash", "2.0.0",
     "O(N) where N is the number of fields to be removed.", "Delete one or more hash fields.",
     "key field [field ...]"},
    {"hexists", cmd_hexists, 3, kReadOnly | kFast, 1, 1, 1, kInspects, "hash", "2.0.0", "O(1)",
     "Determine if a hash field exists.", "key field"},
    {"hexpire", cmd_hexpire, -6, kWrite | kDenyOom | kFast, 1, 1, 1, kUpdates, "hash", "7.4.0",
     "O(N) where N is the number of specified fields",
     "Set expiry for hash field using relative time to expire (seconds)",
     "key seconds [NX | XX | GT | LT] FIELDS <numfields field [field ...]>"},
    {"hexpireat", cmd_hexpireat, -6, kWrite | kDenyOom | kFast, 1, 1, 1, kUpdates, "hash", "7.4.0",
     "O(N) where N is the number of specified fields",
     "Set expiry for hash field using an absolute Unix timestamp (seconds)",
     "key unix-time-seconds [NX | XX | GT | LT] FIELDS <numfields field [field ...]>"},
    {"hexpiretime", cmd_hexpiretime, -5, kReadOnly | kFast, 1, 1, 1, kGets, "hash", "7.4.0",
     "O(N) where N is the number of specified fields",
     "Returns the expiration time of a hash field as a Unix timestamp, in seconds.",
     "key FIELDS <numfields field [field ...]>"},
    {"hget", cmd_hget, 3, kReadOnly | kFast, 1, 1, 1, kGets, "hash", "2.0.0", "O(1)",
     "Get the value of a hash field.", "key field"},
    {"hgetall", cmd_hgetall, 2, kReadOnly, 1, 1, 1, kGets, "hash", "2.0.0",
     "O(N) where N is the size of the hash.", "Get all the fields and values in a hash.", "key"},
    {"hgetdel", cmd_hgetdel, -5, kWrite | kRelease | kFast, 1, 1, 1, kPops, "hash", "8.0.0",
     "O(N) where N is the number of specified fields",
     "Returns the value of a field and deletes it from the hash.",
     "key FIELDS <numfields field [field ...]>"},
    {"hgetex", cmd_hgetex, -5, kWrite | kFast, 1, 1, 1, kGetsAndUpdates, "hash", "8.0.0",
     "O(N) where N is the number of specified fields",
     "Get the value of one or more fields of a given hash key, and optionally set their expiration.",
     "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] "
     "FIELDS <numfields field [field ...]>"},
    {"hincrby", cmd_hincrby, 4, kWrite | kDenyOom | kFast, 1, 1, 1, kGetsAndUpdates, "hash", "2.0.0",
     "O(1)", "Increment the integer value of a hash field by the given number.", "key field increment"},
    {"hincrbyfloat", cmd_hincrbyfloat, 4, kWrite | kDenyOom | kFast, 1, 1, 1, kGetsAndUpdates, "hash",
     "2.6.0", "O(1)", "Increment the float value of a hash field by the given amount.",
     "key field increment"},
    {"hkeys", cmd_hkeys, 2, kReadOnly, 1, 1, 1, kGets, "hash", "2.0.0",
     "O(N) where N is the size of the hash.", "Get all the fields in a hash.", "key"},
    {"hlen", cmd_hlen, 2, kReadOnly | kFast, 1, 1, 1, kInspects, "hash", "2.0.0", "O(1)",
     "Get the number of fields in a hash.", "key"},
    {"hmget", cmd_hmget, -3, kReadOnly | kFast, 1, 1, 1, kGets, "hash", "2.0.0",
     "O(N) where N is the number of fields being requested.",
     "Get the values of all the given hash fields.", "key field [field ...]"},
    {"hmset", cmd_hmset, -4, kWrite | kDenyOom | kFast, 1, 1, 1, kUpdates, "hash", "2.0.0",
     "O(N) where N is the number of fields being set.", "Set multiple hash fields to multiple values.",
     "key field value [field value ...]"},
    {"hpersist", cmd_hpersist, -5, kWrite | kFast, 1, 1, 1, kUpdates, "hash", "7.4.0",
     "O(N) where N is the number of specified fields",
     "Removes the expiration time for each specified field", "key FIELDS <numfields field [field ...]>"},
    {"hpexpire", cmd_hpexpire, -6, kWrite | kDenyOom | kFast, 1, 1, 1, kUpdates, "hash", "7.4.0",
     "O(N) where N is the number of specified fields",
     "Set expiry for hash field using relative time to expire (milliseconds)",
     "key milliseconds [NX | XX | GT | LT] FIELDS <numfields field [field ...]>"},
    {"hpexpireat", cmd_hpexpireat, -6, kWrite | kDenyOom | kFast, 1, 1, 1, kUpdates, "hash", "7.4.0",
     "O(N) where N is the number of specified fields",
     "Set expiry for hash field using an absolute Unix timestamp (milliseconds)",
     "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS <numfields field [field ...]>"},
    {"hpexpiretime", cmd_hpexpiretime, -5, kReadOnly | kFast, 1, 1, 1, kGets, "hash", "7.4.0",
     "O(N) where N is the number of specified fields",
     "Returns the expiration time of a hash field as a Unix timestamp, in msec.",
     "key FIELDS <numfields field [field ...]>"},
    {"hpttl", cmd_hpttl, -5, kReadOnly | kFast, 1, 1, 1, kGets, "hash", "7.4.0",
     "O(N) where N is the number of specified fields", "Returns the TTL in milliseconds of a hash field.",
     "key FIELDS <numfields field [field ...]>"},
    {"hrandfield", cmd_hrandfield, -2, kReadOnly, 1, 1, 1, kGets, "hash", "6.2.0",
     "O(N) where N is the number of fields returned", "Get one or multiple random fields from a hash",
     "key [count [WITHVALUES]]"},
    {"hscan", cmd_hscan, -3, kReadOnly, 1, 1, 1, kGets, "hash", "2.8.0", "O(1) for every call",
     "Incrementally iterate hash fields and associated values.",
     "key cursor [MATCH pattern] [COUNT count]"},
    {"hset", cmd_hset, -4, kWrite | kDenyOom | kFast, 1, 1, 1, kUpdates, "hash", "2.0.0",
     "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called "
     "with multiple field/value pairs",
     "Set the string value of a hash field.", "key field value [field value ...]"},
    {"hsetex", cmd_hsetex, -6, kWrite | kDenyOom | kFast, 1, 1, 1, kUpdates, "hash", "8.0.0",
     "O(N) where N is the number of fields being set.",
     "Set the value of one or more fields of a given hash key, and optionally set their expiration.",
     "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds "
     "| "
     "KEEPTTL] FIELDS <numfields field value [field value ...]>"},
    {"hsetnx", cmd_hsetnx, 4, kWrite | kDenyOom | kFast, 1, 1, 1, kInserts, "hash", "2.0.0", "O(1)",
     "Set the value of a hash field, only if the field does not exist.", "key field value"},
    {"hstrlen", cmd_hstrlen, 3, kReadOnly | kFast, 1, 1, 1, kInspects, "hash", "3.2.0", "O(1)",
     "Get the length of the value of a hash field.", "key field"},
    {"httl", cmd_httl, -5, kReadOnly | kFast, 1, 1, 1, kGets, "hash", "7.4.0",
     "O(N) where N is the number of specified fields", "Returns the TTL in seconds of a hash field.",
     "key FIELDS <numfields field [field ...]>"},
    {"hvals", cmd_hvals, 2, kReadOnly, 1, 1, 1, kGets, "hash", "2.0.0",
     "O(N) where N is the size of the hash.", "Get all the values in a hash.", "key"},
};

}  // namespace

std::span<const Command> hash_commands() { return kHashRows; }

}  // namespace holdfast
