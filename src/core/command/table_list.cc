// Rows of the command table: lists.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr std::string_view kEachAdded =
    "O(1) for each element added, so O(N) to add N elements when the command is called with multiple "
    "arguments.";
constexpr std::string_view kKeysAndElements =
    "O(N+M) where N is the number of provided keys and M is the number of elements returned.";
constexpr std::string_view kMoveOrBlock =
    "Pop an element from a list, push it to another list and return it; or block until one is available";

constexpr Command kListRows[] = {
    {"blmove", cmd_blmove, 6, kWrite | kDenyOom | kNoScript | kBlocking, 1, 2, 1, kMoves, "list", "6.2.0",
     "O(1)", kMoveOrBlock, "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout"},
    {"blmpop", cmd_blmpop, -5, kWrite | kBlocking | kMovableKeys, 0, 0, 0, kPops, "list", "7.0.0",
     kKeysAndElements, "Pop elements from a list, or block until one is available",
     "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]"},
    {"blpop", cmd_blpop, -3, kWrite | kNoScript | kBlocking, 1, -2, 1, kPops, "list", "2.0.0",
     "O(N) where N is the number of provided keys.",
     "Remove and get the first element in a list, or block until one is available",
     "key [key ...] timeout"},
    {"brpop", cmd_brpop, -3, kWrite | kNoScript | kBlocking, 1, -2, 1, kPops, "list", "2.0.0",
     "O(N) where N is the number of provided keys.",
     "Remove and get the last element in a list, or block until one is available", "key [key ...] timeout"},
    {"brpoplpush", cmd_brpoplpush, 4, kWrite | kDenyOom | kNoScript | kBlocking, 1, 2, 1, kMoves, "list",
     "2.2.0", "O(1)", kMoveOrBlock, "source destination timeout"},
    {"lindex", cmd_lindex, 3, kReadOnly, 1, 1, 1, kGets, "list", "1.0.0",
     "O(N) where N is the number of elements to traverse to get to the element at index. This makes asking "
     "for the first or the last element of the list O(1).",
     "Get an element from a list by its index", "key index"},
    {"linsert", cmd_linsert, 5, kWrite | kDenyOom, 1, 1, 1, kInserts, "list", "2.2.0",
     "O(N) where N is the number of elements to traverse before seeing the value pivot. This means that "
     "inserting somewhere on the left end on the list (head) can be considered O(1) and inserting "
     "somewhere "
     "on the right end (tail) is O(N).",
     "Insert an element before or after another element in a list", "key <BEFORE | AFTER> pivot element"},
    {"llen", cmd_llen, 2, kReadOnly | kFast, 1, 1, 1, kInspects, "list", "1.0.0", "O(1)",
     "Get the length of a list", "key"},
    {"lmove", cmd_lmove, 5, kWrite | kDenyOom, 1, 2, 1, kMoves, "list", "6.2.0", "O(1)",
     "Pop an element from a list, push it to another list and return it",
     "source destination <LEFT | RIGHT> <LEFT | RIGHT>"},
    {"lmpop", cmd_lmpop, -4, kWrite | kMovableKeys, 0, 0, 0, kPops, "list", "7.0.0", kKeysAndElements,
     "Pop elements from a list", "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]"},
    {"lpop", cmd_lpop, -2, kWrite | kFast, 1, 1, 1, kPops, "list", "1.0.0",
     "O(N) where N is the number of elements returned", "Remove and get the first elements in a list",
     "key [count]"},
    {"lpos", cmd_lpos, -3, kReadOnly, 1, 1, 1, kGets, "list", "6.0.6",
     "O(N) where N is the number of elements in the list, for the average case. When searching for "
     "elements "
     "near the head or the tail of the list, or when the MAXLEN option is provided, the command may run in "
     "constant time.",
     "Return the index of matching elements on a list",
     "key element [RANK rank] [COUNT num-matches] [MAXLEN len]"},
    {"lpush", cmd_lpush, -3, kWrite | kDenyOom | kFast, 1, 1, 1, kInserts, "list", "1.0.0", kEachAdded,
     "Prepend one or multiple elements to a list", "key element [element ...]"},
    {"lpushx", cmd_lpushx, -3, kWrite | kDenyOom | kFast, 1, 1, 1, kInserts, "list", "2.2.0", kEachAdded,
     "Prepend an element to a list, only if the list exists", "key element [element ...]"},
    {"lrange", cmd_lrange, 4, kReadOnly, 1, 1, 1, kGets, "list", "1.0.0",
     "O(S+N) where S is the distance of start offset from HEAD for small lists, from nearest end (HEAD or "
     "TAIL) for large lists; and N is the number of elements in the specified range.",
     "Get a range of elements from a list", "key start stop"},
    {"lrem", cmd_lrem, 4, kWrite, 1, 1, 1, kErases, "list", "1.0.0",
     "O(N+M) where N is the length of the list and M is the number of elements removed.",
     "Remove elements from a list", "key count element"},
    {"lset", cmd_lset, 4, kWrite | kDenyOom, 1, 1, 1, kUpdates, "list", "1.0.0",
     "O(N) where N is the length of the list. Setting either the first or the last element of the list is "
     "O(1).",
     "Set the value of an element in a list by its index", "key index element"},
    {"ltrim", cmd_ltrim, 4, kWrite, 1, 1, 1, kErases, "list", "1.0.0",
     "O(N) where N is the number of elements to be removed by the operation.",
     "Trim a list to the specified range", "key start stop"},
    {"rpop", cmd_rpop, -2, kWrite | kFast, 1, 1, 1, kPops, "list", "1.0.0",
     "O(N) where N is the number of elements returned", "Remove and get the last elements in a list",
     "key [count]"},
    {"rpoplpush", cmd_rpoplpush, 3, kWrite | kDenyOom, 1, 2, 1, kMoves, "list", "1.2.0", "O(1)",
     "Remove the last element in a list, prepend it to another list and return it", "source destination"},
    {"rpush", cmd_rpush, -3, kWrite | kDenyOom | kFast, 1, 1, 1, kInserts, "list", "1.0.0", kEachAdded,
     "Append one or multiple elements to a list", "key element [element ...]"},
    {"rpushx", cmd_rpushx, -3, kWrite | kDenyOom | kFast, 1, 1, 1, kInserts, "list", "2.2.0", kEachAdded,
     "Append an element to a list, only if the list exists", "key element [element ...]"},
};

}  // namespace

std::span<const Command> list_commands() { return kListRows; }

}  // namespace holdfast
