// Rows of the command table: keys of any type.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr Command kGenericRows[] = {
    {"copy", cmd_copy, -3, kWrite | kDenyOom | kKeyspace, 1, 2, 1, kCopies, "generic", "6.2.0",
     "O(N) worst case for collections, where N is the number of nested items", "Copy a key.",
     "source destination [DB destination-db] [REPLACE]"},
    {"del", cmd_del, -2, kWrite | kRelease | kKeyspace, 1, -1, 1, kDeletes, "generic", "1.0.0",
     "O(N) where N is the number of keys",
     "Deletes one or more keys; the next waiters acquire their locks.", "key [key ...]"},
    {"dump", cmd_dump, 2, kReadOnly | kKeyspace, 1, 1, 1, kGets, "generic", "2.6.0",
     "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis objects "
     "composing the value and M their average size.",
     "Return a serialized version of the value stored at the specified key.", "key"},
    {"exists", cmd_exists, -2, kReadOnly | kFast | kKeyspace, 1, -1, 1, kInspects, "generic", "1.0.0",
     "O(N) where N is the number of keys", "Determines whether one or more keys exist.", "key [key ...]"},
    {"expire", cmd_expire, -3, kWrite | kFast | kKeyspace, 1, 1, 1, kUpdates, "generic", "1.0.0", "O(1)",
     "Sets the expiration time of a key in seconds.", "key seconds [NX | XX | GT | LT]"},
    {"expireat", cmd_expireat, -3, kWrite | kFast | kKeyspace, 1, 1, 1, kUpdates, "generic", "1.2.0",
     "O(1)", "Set the expiration for a key as a UNIX timestamp.",
     "key unix-time-seconds [NX | XX | GT | LT]"},
    {"expiretime", cmd_expiretime, 2, kReadOnly | kFast | kKeyspace, 1, 1, 1, kGets, "generic", "7.0.0",
     "O(1)", "Get the expiration Unix timestamp for a key.", "key"},
    {"keys", cmd_keys, 2, kReadOnly | kDangerous | kKeyspace, 0, 0, 0, kNoKeys, "generic", "1.0.0",
     "O(N) where N is the number of keys", "Returns all key names that match a pattern.", "pattern"},
    {"object", nullptr, -2, kSubcommands, 0, 0, 0, kNoKeys, "generic", "2.2.3", "Depends on subcommand.",
     "A container for object introspection commands.", ""},
    {"object|encoding", cmd_object_encoding, 3, kReadOnly | kKeyspace, 2, 2, 1, kInspects, "generic",
     "2.2.3", "O(1)", "Inspect the internal encoding of a Redis object.", "key"},
    {"object|freq", cmd_object_freq, 3, kReadOnly | kKeyspace, 2, 2, 1, kInspects, "generic", "4.0.0",
     "O(1)", "Get the logarithmic access frequency counter of a Redis object.", "key"},
    {"object|help", cmd_object_help, 2, kLoading | kStale | kKeyspace, 0, 0, 0, kNoKeys, "generic", "6.2.0",
     "O(1)", "Show helpful text about the different subcommands.", ""},
    {"object|idletime", cmd_object_idletime, 3, kReadOnly | kKeyspace, 2, 2, 1, kInspects, "generic",
     "2.2.3", "O(1)", "Get the time since a Redis object was last accessed.", "key"},
    {"object|refcount", cmd_object_refcount, 3, kReadOnly | kKeyspace, 2, 2, 1, kInspects, "generic",
     "2.2.3", "O(1)", "Get the number of references to the value of the key.", "key"},
    {"persist", cmd_persist, 2, kWrite | kFast | kKeyspace, 1, 1, 1, kUpdates, "generic", "2.2.0", "O(1)",
     "Removes the expiration time of a key.", "key"},
    {"pexpire", cmd_pexpire, -3, kWrite | kFast | kKeyspace, 1, 1, 1, kUpdates, "generic", "2.6.0", "O(1)",
     "Sets the expiration time of a key in milliseconds.", "key milliseconds [NX | XX | GT | LT]"},
    {"pexpireat", cmd_pexpireat, -3, kWrite | kFast | kKeyspace, 1, 1, 1, kUpdates, "generic", "2.6.0",
     "O(1)", "Set the expiration for a key as a UNIX timestamp specified in milliseconds.",
     "key unix-time-milliseconds [NX | XX | GT | LT]"},
    {"pexpiretime", cmd_pexpiretime, 2, kReadOnly | kFast | kKeyspace, 1, 1, 1, kGets, "generic", "7.0.0",
     "O(1)", "Get the expiration Unix timestamp for a key in milliseconds.", "key"},
    {"pttl", cmd_pttl, 2, kReadOnly | kFast | kKeyspace, 1, 1, 1, kGets, "generic", "2.6.0", "O(1)",
     "Returns the expiration time in milliseconds of a key.", "key"},
    {"randomkey", cmd_randomkey, 1, kReadOnly | kKeyspace, 0, 0, 0, kNoKeys, "generic", "1.0.0", "O(1)",
     "Return a random key from the keyspace.", ""},
    {"rename", cmd_rename, 3, kWrite | kKeyspace | kRename, 1, 2, 1, kRenames, "generic", "1.0.0", "O(1)",
     "Rename a key.", "key newkey"},
    {"renamenx", cmd_renamenx, 3, kWrite | kFast | kKeyspace | kRename, 1, 2, 1, kRenamesToNew, "generic",
     "1.0.0", "O(1)", "Rename a key, only if the new key does not exist.", "key newkey"},
    {"restore", cmd_restore, -4, kWrite | kDenyOom | kDangerous | kKeyspace, 1, 1, 1, kStores, "generic",
     "2.6.0",
     "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the "
     "number of Redis objects composing the value and M their average size.",
     "Create a key using the provided serialized value, previously obtained using DUMP.",
     "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]"},
    {"scan", cmd_scan, -2, kReadOnly | kKeyspace, 0, 0, 0, kNoKeys, "generic", "2.8.0",
     "O(1) a call; O(N) for all, with N keys", "Iterates over the key names in the database.",
     "cursor [MATCH pattern] [COUNT count] [TYPE type]"},
    {"touch", cmd_touch, -2, kReadOnly | kFast | kKeyspace, 1, -1, 1, kInspects, "generic", "3.2.1",
     "O(N) where N is the number of keys that will be touched.",
     "Alters the last access time of a key(s). Returns the number of existing keys specified.",
     "key [key ...]"},
    {"ttl", cmd_ttl, 2, kReadOnly | kFast | kKeyspace, 1, 1, 1, kGets, "generic", "1.0.0", "O(1)",
     "Returns the expiration time in seconds of a key.", "key"},
    {"type", cmd_type, 2, kReadOnly | kFast | kKeyspace, 1, 1, 1, kInspects, "generic", "1.0.0", "O(1)",
     "Determines the type of the value stored at a key.", "key"},
    {"unlink", cmd_del, -2, kWrite | kRelease | kFast | kKeyspace, 1, -1, 1, kDeletes, "generic", "4.0.0",
     "O(N) where N is the number of keys", "Deletes one or more keys; the same as DEL.", "key [key ...]"},
    {"wait", cmd_wait, 3, kNoScript | kConnection, 0, 0, 0, kNoKeys, "generic", "3.0.0", "O(1)",
     "Wait for the synchronous replication of all the write commands sent in the context of the current "
     "connection.",
     "numreplicas timeout"},
};

}  // namespace

std::span<const Command> generic_commands() { return kGenericRows; }

}  // namespace holdfast
