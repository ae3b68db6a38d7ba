// Rows of the command table: sets.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

constexpr Command kRows[] = {
    {"sadd", cmd_sadd, -3, kWrite | kDenyOom | kFast, 1, 1, 1, "set", "1.0.0",
     "O(1) for each element added, so O(N) to add N elements when the command is called with multiple "
     "arguments.",
     "Add one or more members to a set.", "key member [member ...]"},
    {"scard", cmd_scard, 2, kReadOnly | kFast, 1, 1, 1, "set", "1.0.0", "O(1)",
     "Get the number of members in a set.", "key"},
    {"sismember", cmd_sismember, 3, kReadOnly | kFast, 1, 1, 1, "set", "1.0.0", "O(1)",
     "Determine if a given value is a member of a set.", "key member"},
    {"smembers", cmd_smembers, 2, kReadOnly, 1, 1, 1, "set", "1.0.0",
     "O(N) where N is the set cardinality.", "Get all the members in a set.", "key"},
    {"srem", cmd_srem, -3, kWrite | kRelease | kFast, 1, 1, 1, "set", "1.0.0",
     "O(N) where N is the number of members to be removed.", "Remove one or more members from a set.",
     "key member [member ...]"},
};

}  // namespace

std::span<const Command> set_commands() { return kRows; }

}  // namespace holdfast
