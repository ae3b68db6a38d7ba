// The command table: one row per command. A new command needs two edits: its row in a table_*.cc and its
// handler. What sets a command apart from others stands in its row, so no other code names a handler
// (tests/lint/command_rows.py). All replies of COMMAND come from the rows.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/parse.h"
#include "core/codec/reply.h"

namespace holdfast {

struct Request;

enum CommandFlag : uint64_t {
  kWrite = 1ULL << 0U,
  kReadOnly = 1ULL << 1U,
  kDenyOom = 1ULL << 2U,  // may allocate memory: rejected beyond the limit
  kAdmin = 1ULL << 3U,
  kPubSub = 1ULL << 4U,
  kNoScript = 1ULL << 5U,  // a script may not call it
  kBlocking = 1ULL << 6U,
  kLoading = 1ULL << 7U,       // runs while the server loads data
  kStale = 1ULL << 8U,         // runs on a replica that lost its master: there are no replicas here
  kSkipMonitor = 1ULL << 9U,   // MONITOR does not show it
  kSkipSlowlog = 1ULL << 10U,  // SLOWLOG does not keep it
  kFast = 1ULL << 11U,         // O(1) or O(log n)
  kNoAuth = 1ULL << 12U,       // runs before authentication
  kMovableKeys = 1ULL << 13U,  // an argument tells the number of its keys
  kNoMandatoryKeys = 1ULL << 14U,
  kAllowBusy = 1ULL << 15U,   // runs while a script exceeds its time limit
  kInMulti = 1ULL << 16U,     // run, not queued, between MULTI and EXEC
  kConnection = 1ULL << 17U,  // the ACL category of commands on the connection itself
  kDangerous = 1ULL << 18U,   // the ACL category of commands that an application should not run
  kKeyspace = 1ULL << 19U,    // the ACL category of commands on keys of any type
  kNoMulti = 1ULL << 20U,     // not allowed in a transaction
  kRelease = 1ULL << 21U,     // ends holds and frees memory only: runs while the disk cannot store grants
  kRename = 1ULL << 22U,    // gives a hold another name, as a grant does: rejected during the recovery wait
  kScript = 1ULL << 23U,    // runs a script
  kCompiles = 1ULL << 24U,  // compiles a script or a library
  kExec = 1ULL << 25U,      // runs the queued requests of a transaction
  kEndsMulti = 1ULL << 26U,  // ends a transaction or the connection: runs beyond the memory limit
  // Its names stay in memory: keys that a connection watches, channels that it subscribes to.
  kKeepsNames = 1ULL << 27U,
  kForSubscribers = 1ULL << 28U,  // a RESP2 subscriber may use it
  kAcquire = 1ULL << 29U,         // asks for a lock: its rejections count as refusals of locks
  kNamesLease = 1ULL << 30U,      // an argument is the id of a lease, whose keys it uses
  kPublishes = 1ULL << 31U,       // to the channel in its first argument. Redis counts it as a write
  kSubscribes = 1ULL << 32U,      // its arguments are channels
  kPatterns = 1ULL << 33U,        // with kSubscribes: they are patterns of channels
  kAdminCategory = 1ULL << 34U,   // has kAdmin's category, but not its flag, as in Redis
  kCountsPairs = 1ULL << 35U,     // with kMovableKeys: a value follows each key
  kScriptText = 1ULL << 36U,      // with kScript: an argument is the script itself
  kFunctionName = 1ULL << 37U,    // with kScript: an argument is the name of a function
  kSubcommands = 1ULL << 38U,     // its second word names a subcommand
  kKeepsCaching = 1ULL << 39U,    // CLIENT CACHING applies to the command after it
};

// The access of a command to its keys; key_access.cc has the flags that COMMAND shows for each.
enum class KeyUse : uint8_t {
  kNoKeys,
  kInspects,        // without their values
  kGets,            // reads values
  kGetsAndUpdates,  // reads and changes them
  kUpdates,         // changes a part of them
  kInserts,         // only adds
  kErases,          // only removes parts
  kDeletes,         // removes the keys
  kDeletesIf,       // DELEX: the same; with a condition it also changes nothing
  kPops,            // reads and removes
  kSets,            // SET: depends on its options
  kStores,          // overwrites all keys without reading them
  kStoresNew,       // the same, but only keys without a value
  // The first key differs from the others:
  kCopies,        // reads the first, overwrites the second
  kRenames,       // moves the first over the second
  kRenamesToNew,  // moves the first to the second, which has no value
  kMoves,         // moves an element from the first to the second
  kStoresFrom,    // overwrites the first by what it reads from the others
  kUpdatesFrom,   // the same, as Redis describes SINTERSTORE
  kChannelNames,  // they are no keys, but channels
};

// The arguments that are passwords, or may be.
enum class Secrets : uint8_t {
  kNone,
  kAll,           // AUTH
  kAfterAuth,     // HELLO: the two after the word AUTH
  kUserRules,     // ACL SETUSER: the rules that are or may be a password
  kOptionValues,  // CONFIG SET: the values of options that contain a password
  kOfRequestAt2,  // those of the request that begins in the argument with this number
  kOfRequestAt3,
};

using Handler = void (*)(Request&);

struct Command {
  std::string_view name;  // lower-case; for a subcommand: "locks|info"
  Handler handler;        // null for a container, whose subcommands do the work
  int arity;              // as Redis counts: includes the name(s); negative: a minimum
  uint64_t flags;
  int first_key, last_key, key_step;  // 0: none; last_key -1: to the end
  KeyUse key_use;
  std::string_view group;
  std::string_view since;
  std::string_view complexity;
  std::string_view summary;
  std::string_view syntax;  // see syntax.h
  Secrets secrets = Secrets::kNone;

  bool has(uint64_t any_of) const { return (flags & any_of) != 0; }
  bool is_subcommand() const { return name.find('|') != std::string_view::npos; }
  std::string_view container() const { return name.substr(0, name.find('|')); }
};

// The rows by group, one table_*.cc per group.
std::span<const Command> acl_commands();
std::span<const Command> connection_commands();
std::span<const Command> generic_commands();
std::span<const Command> hash_commands();
std::span<const Command> list_commands();
std::span<const Command> lock_commands();
std::span<const Command> pubsub_commands();
std::span<const Command> scripting_commands();
std::span<const Command> server_commands();
std::span<const Command> set_commands();
std::span<const Command> string_commands();
std::span<const Command> zset_commands();

// All rows, sorted by name.
std::span<const Command> all_commands();
// Returns the row; ignores case. Returns null if there is none. `name` may be "locks|info".
const Command* find_command(std::string_view name);
// The same for a request, whose second word may name a subcommand. Returns null if that is unknown, and for
// a container without a subcommand.
const Command* find_row(std::span<const std::string_view> argv);
bool arity_fits(const Command& command, size_t argc);

// Returns the row that runs a request; for a container that of the subcommand. Returns null and writes an
// error if there is none or the number of arguments is wrong.
const Command* resolve_command(std::span<const std::string_view> argv, Reply& reply);

// The error text for a wrong number of arguments.
std::string wrong_arity_text(const Command& command);
// The name in upper case, as the texts of HELP show it.
std::string upper_case(std::string_view name);

// Where a request with kMovableKeys has the number of its keys. The keys follow, one in `step` arguments.
struct KeyCount {
  size_t at;
  size_t step;
};
KeyCount key_count_of(const Command& command);

// Returns the indexes of the keys in `argv`. The command must be resolved and the arity must fit. Returns
// nullopt if the request's count of keys is invalid.
std::optional<std::vector<size_t>> key_positions(const Command& command,
                                                 std::span<const std::string_view> argv);

}  // namespace holdfast
