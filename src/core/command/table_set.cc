// Rows of the command table: sets.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr std::string_view kTotal = "O(N) where N is the total number of elements in all given sets.";
constexpr std::string_view kSmallest =
    "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.";

constexpr Command kSetRows[] = {
    {"sadd", cmd_sadd, -3, kWrite | kDenyOom | kFast, 1, 1, 1, kInserts, "set", "1.0.0",
     "O(1) for each element added, so O(N) to add N elements when the command is called with multiple "
     "arguments.",
     "Add one or more members to a set.", "key member [member ...]"},
    {"scard", cmd_scard, 2, kReadOnly | kFast, 1, 1, 1, kInspects, "set", "1.0.0", "O(1)",
     "Get the number of members in a set.", "key"},
    {"sdiff", cmd_sdiff, -2, kReadOnly, 1, -1, 1, kGets, "set", "1.0.0", kTotal, "Subtract multiple sets.",
     "key [key ...]"},
    {"sdiffstore", cmd_sdiffstore, -3, kWrite | kDenyOom, 1, -1, 1, kStoresFrom, "set", "1.0.0", kTotal,
     "Subtract multiple sets and store the resulting set in a key.", "destination key [key ...]"},
    {"sinter", cmd_sinter, -2, kReadOnly, 1, -1, 1, kGets, "set", "1.0.0", kSmallest,
     "Intersect multiple sets.", "key [key ...]"},
    {"sintercard", cmd_sintercard, -3, kReadOnly | kMovableKeys, 0, 0, 0, kGets, "set", "7.0.0", kSmallest,
     "Intersect multiple sets and return the cardinality of the result.",
     "numkeys key [key ...] [LIMIT limit]"},
    {"sinterstore", cmd_sinterstore, -3, kWrite | kDenyOom, 1, -1, 1, kUpdatesFrom, "set", "1.0.0",
     kSmallest, "Intersect multiple sets and store the resulting set in a key.",
     "destination key [key ...]"},
    {"sismember", cmd_sismember, 3, kReadOnly | kFast, 1, 1, 1, kInspects, "set", "1.0.0", "O(1)",
     "Determine if a given value is a member of a set.", "key member"},
    {"smembers", cmd_smembers, 2, kReadOnly, 1, 1, 1, kGets, "set", "1.0.0",
     "O(N) where N is the set cardinality.", "Get all the members in a set.", "key"},
    {"smismember", cmd_smismember, -3, kReadOnly | kFast, 1, 1, 1, kGets, "set", "6.2.0",
     "O(N) where N is the number of elements being checked for membership.",
     "Returns the membership associated with the given elements for a set.", "key member [member ...]"},
    {"smove", cmd_smove, 4, kWrite | kFast, 1, 2, 1, kMoves, "set", "1.0.0", "O(1)",
     "Move a member from one set to another.", "source destination member"},
    {"spop", cmd_spop, -2, kWrite | kRelease | kFast, 1, 1, 1, kPops, "set", "1.0.0",
     "Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
     "Remove and return one or multiple random members from a set.", "key [count]"},
    {"srandmember", cmd_srandmember, -2, kReadOnly, 1, 1, 1, kGets, "set", "1.0.0",
     "Without the count argument O(1), otherwise O(N) where N is the absolute value of the passed count.",
     "Get one or multiple random members from a set.", "key [count]"},
    {"srem", cmd_srem, -3, kWrite | kRelease | kFast, 1, 1, 1, kErases, "set", "1.0.0",
     "O(N) where N is the number of members to be removed.", "Remove one or more members from a set.",
     "key member [member ...]"},
    {"sscan", cmd_sscan, -3, kReadOnly, 1, 1, 1, kGets, "set", "2.8.0",
     "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to "
     "return back to 0. N is the number of elements inside the collection.",
     "Incrementally iterate Set elements.", "key cursor [MATCH pattern] [COUNT count]"},
    {"sunion", cmd_sunion, -2, kReadOnly, 1, -1, 1, kGets, "set", "1.0.0", kTotal, "Add multiple sets.",
     "key [key ...]"},
    {"sunionstore", cmd_sunionstore, -3, kWrite | kDenyOom, 1, -1, 1, kStoresFrom, "set", "1.0.0", kTotal,
     "Add multiple sets and store the resulting set in a key.", "destination key [key ...]"},
};

}  // namespace

std::span<const Command> set_commands() { return kSetRows; }

}  // namespace holdfast
