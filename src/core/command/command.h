// The command table: one row per command. A new command needs two edits: its row in a table_*.cc and its
// handler. All replies of COMMAND come from the rows.
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

enum CommandFlag : uint32_t {
  kWrite = 1U << 0U,
  kReadOnly = 1U << 1U,
  kDenyOom = 1U << 2U,  // may allocate memory: rejected beyond the limit
  kAdmin = 1U << 3U,
  kPubSub = 1U << 4U,
  kNoScript = 1U << 5U,  // a script may not call it
  kBlocking = 1U << 6U,
  kLoading = 1U << 7U,       // runs while the server loads data
  kStale = 1U << 8U,         // runs on a replica that lost its master: there are no replicas here
  kSkipMonitor = 1U << 9U,   // MONITOR does not show it
  kSkipSlowlog = 1U << 10U,  // SLOWLOG does not keep it
  kFast = 1U << 11U,         // O(1) or O(log n)
  kNoAuth = 1U << 12U,       // runs before authentication
  kMovableKeys = 1U << 13U,  // an argument tells the number of its keys
  kNoMandatoryKeys = 1U << 14U,
  kAllowBusy = 1U << 15U,   // runs while a script exceeds its time limit
  kInMulti = 1U << 16U,     // run, not queued, between MULTI and EXEC
  kConnection = 1U << 17U,  // the ACL category of commands on the connection itself
  kDangerous = 1U << 18U,   // the ACL category of commands that an application should not run
  kKeyspace = 1U << 19U,    // the ACL category of commands on keys of any type
  kNoMulti = 1U << 20U,     // not allowed in a transaction
  kRelease = 1U << 21U,     // ends holds and frees memory only: runs while the disk cannot store grants
  kRename = 1U << 22U,      // gives a hold another name, as a grant does: rejected during the recovery wait
  kScript = 1U << 23U,      // runs a script
  kCompiles = 1U << 24U,    // compiles a script or a library
};

using Handler = void (*)(Request&);

struct Command {
  std::string_view name;  // lower-case; for a subcommand: "locks|info"
  Handler handler;        // null for a container, whose subcommands do the work
  int arity;              // as Redis counts: includes the name(s); negative: a minimum
  uint32_t flags;
  int first_key, last_key, key_step;  // 0: none; last_key -1: to the end
  std::string_view group;
  std::string_view since;
  std::string_view complexity;
  std::string_view summary;
  std::string_view syntax;  // see syntax.h

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
