// Rows of the command table: locks and leases.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr Command kLockRows[] = {
    {"fence", cmd_fence, 4, kWrite | kFast, 1, 1, 1, kUpdates, "lock", "0.1.0",
     "O(1); O(log N) with N holders", "Raises the fencing token of a hold to at least the given token.",
     "key owner token"},
    {"lease", nullptr, -2, kSubcommands, 0, 0, 0, kNoKeys, "lock", "0.1.0", "Depends on subcommand.",
     "A container for lease commands: several keys at once, all or none.", ""},
    {"lease|cancel", cmd_lease_cancel, 3, kWrite | kRelease | kNamesLease, 0, 0, 0, kNoKeys, "lock",
     "0.1.0", "O(N) with N keys of the lease", "Cancels a lease and deletes its keys.", "id"},
    {"lease|confirm", cmd_lease_confirm, 3, kWrite | kNamesLease, 0, 0, 0, kNoKeys, "lock", "0.1.0",
     "O(N) with N keys of the lease", "Makes the keys of a lease permanent.", "id"},
    {"lease|grant", cmd_lease_grant, -6, kWrite | kDenyOom, 4, -1, 2, kStoresNew, "lock", "0.1.0",
     "O(N) with N keys", "Sets several free keys to values with a TTL, all or none.",
     "id ttl key value [key value ...]"},
    {"lease|help", cmd_lease_help, 2, 0, 0, 0, 0, kNoKeys, "lock", "0.1.0", "O(1)",
     "Returns helpful text about the different subcommands.", ""},
    {"lease|info", cmd_lease_info, 3, kReadOnly | kNamesLease, 0, 0, 0, kNoKeys, "lock", "0.1.0",
     "O(N) with N keys of the lease", "Returns the state, TTL, token and keys of a lease.", "id"},
    {"lease|renew", cmd_lease_renew, -3, kWrite | kNamesLease, 0, 0, 0, kNoKeys, "lock", "0.1.0",
     "O(N) with N keys of the lease", "Resets the TTL of a lease.", "id [ttl]"},
    {"lock", cmd_lock, -4, kWrite | kDenyOom | kFast | kBlocking | kAcquire, 1, 1, 1, kUpdates, "lock",
     "0.1.0", "O(1); O(log N) with N holders or waiters",
     "Acquires a lock, or waits for it; returns owner and fencing token, or null.",
     "key owner ttl [SHARED | LIMIT limit] [WAIT milliseconds [ASYNC] | TICKET time "
     "[PROVISIONAL] [HAS token] [SEEN milliseconds] [OVER owner [OVER owner ...]]] [SESSION] "
     "[DELAY milliseconds] [TOKEN hint] [NOTE text]"},
    {"locks", nullptr, -2, kSubcommands, 0, 0, 0, kNoKeys, "lock", "0.1.0", "Depends on subcommand.",
     "A container for commands that inspect locks or release them by force.", ""},
    {"locks|break", cmd_locks_break, 3, kWrite | kRelease | kDangerous, 2, 2, 1, kErases, "lock", "0.1.0",
     "O(N) with N holders", "Releases all holds of a key by force; returns their number.", "key"},
    {"locks|check", cmd_locks_check, 4, kReadOnly | kFast, 2, 2, 1, kGets, "lock", "0.1.0",
     "O(1); O(log N) with N holders", "Returns whether a current holder of the key has the token.",
     "key token"},
    {"locks|heartbeat", cmd_locks_heartbeat, -2, kFast, 0, 0, 0, kNoKeys, "lock", "0.2.0", "O(1)",
     "Tells the server that the client waits by ticket; returns the server's run id and time.",
     "[milliseconds]"},
    {"locks|help", cmd_locks_help, 2, 0, 0, 0, 0, kNoKeys, "lock", "0.1.0", "O(1)",
     "Returns helpful text about the different subcommands.", ""},
    {"locks|history", cmd_locks_history, -2, kReadOnly, 0, 0, 0, kNoKeys, "lock", "0.1.0",
     "O(N) with N kept events", "Returns the last events of locks, the newest first.",
     "[key] [COUNT count] [SINCE unix-time-milliseconds]"},
    {"locks|info", cmd_locks_info, 3, kReadOnly, 2, 2, 1, kGets, "lock", "0.1.0",
     "O(N) with N holders and waiters", "Returns the holders and waiters of a key.", "key"},
    {"locks|list", cmd_locks_list, -3, kReadOnly, 0, 0, 0, kNoKeys, "lock", "0.1.0",
     "O(1) a call; O(N) for all, with N keys", "Returns the held keys, page by page.",
     "cursor [MATCH pattern] [COUNT count]"},
    {"locks|owned", cmd_locks_owned, 3, kReadOnly | kDangerous, 0, 0, 0, kNoKeys, "lock", "0.1.0",
     "O(N) with N keys", "Returns all holds of an owner.", "owner"},
    {"locks|raise", cmd_locks_raise, 4, kWrite | kFast | kDangerous, 2, 2, 1, kUpdates, "lock", "0.1.0",
     "O(1)", "Raises the last token of a key to at least the given token; returns the last token.",
     "key token"},
    {"locks|revoke", cmd_locks_revoke, 3, kWrite | kRelease, 2, 2, 1, kUpdates, "lock", "0.1.0",
     "O(N) with N holders", "Asks the holders of a key to release it; returns the number of holders.",
     "key"},
    {"locks|top", cmd_locks_top, -2, kReadOnly, 0, 0, 0, kNoKeys, "lock", "0.1.0",
     "O(N log N) with at most 512 keys; BY waiters: O(N) with N returned keys",
     "Returns the keys that requests wait for most.", "[BY <waiters | wait | holds>] [COUNT count]"},
    {"locks|yield", cmd_locks_yield, 5, kWrite | kRelease | kFast, 2, 2, 1, kErases, "lock", "0.2.0",
     "O(log N) with N holders or waiters",
     "Gives back a vote, so that an older request gets it; returns 1 if done, else 0.", "key owner token"},
    {"renew", cmd_renew, -3, kWrite | kFast, 1, 1, 1, kUpdates, "lock", "0.1.0",
     "O(1); O(log N) with N holders",
     "Resets the TTL of a hold; returns 1 if done, 0 if the key is free, -1 if another owner holds it.",
     "key owner [ttl [TOKEN token]]"},
    {"unlock", cmd_unlock, -3, kWrite | kRelease | kFast, 1, 1, 1, kErases, "lock", "0.1.0",
     "O(1); O(log N) with N holders or waiters",
     "Releases a hold; returns 1 if done, 0 if the key is free, -1 if another owner holds it.",
     "key owner [WAITS]"},
};

}  // namespace

std::span<const Command> lock_commands() { return kLockRows; }

}  // namespace holdfast
