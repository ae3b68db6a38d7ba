// Rows of the command table: sorted sets.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr std::string_view kRangeCost =
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements "
    "returned.";
constexpr std::string_view kLimitedCost =
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being "
    "returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can "
    "consider it O(log(N)).";
constexpr std::string_view kRemovalCost =
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements "
    "removed by the operation.";
constexpr std::string_view kInterCost =
    "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input "
    "sorted sets and M being the number of elements in the resulting sorted set.";
constexpr std::string_view kUnionCost =
    "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number "
    "of elements in the resulting sorted set.";
constexpr std::string_view kDiffCost =
    "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size "
    "of the first set, and K is the size of the result set.";
constexpr std::string_view kZset = "sorted-set";
constexpr uint64_t kWriteFast = kWrite | kDenyOom | kFast;

constexpr std::string_view kPopCost =
    "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the "
    "sorted set, and M being the number of elements popped.";

constexpr Command kZsetRows[] = {
    {"bzmpop", cmd_bzmpop, -5, kWrite | kBlocking | kMovableKeys, 0, 0, 0, kPops, kZset, "7.0.0", kPopCost,
     "Remove and return members with scores in a sorted set or block until one is available",
     "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]"},
    {"bzpopmax", cmd_bzpopmax, -3, kWrite | kNoScript | kBlocking | kFast, 1, -2, 1, kPops, kZset, "5.0.0",
     "O(log(N)) with N being the number of elements in the sorted set.",
     "Remove and return the member with the highest score from one or more sorted sets, or block until one "
     "is available",
     "key [key ...] timeout"},
    {"bzpopmin", cmd_bzpopmin, -3, kWrite | kNoScript | kBlocking | kFast, 1, -2, 1, kPops, kZset, "5.0.0",
     "O(log(N)) with N being the number of elements in the sorted set.",
     "Remove and return the member with the lowest score from one or more sorted sets, or block until one "
     "is available",
     "key [key ...] timeout"},
    {"zadd", cmd_zadd, -4, kWriteFast, 1, 1, 1, kUpdates, kZset, "1.2.0",
     "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
     "Add one or more members to a sorted set, or update its score if it already exists.",
     "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]"},
    {"zcard", cmd_zcard, 2, kReadOnly | kFast, 1, 1, 1, kInspects, kZset, "1.2.0", "O(1)",
     "Get the number of members in a sorted set.", "key"},
    {"zcount", cmd_zcount, 4, kReadOnly | kFast, 1, 1, 1, kGets, kZset, "2.0.0",
     "O(log(N)) with N being the number of elements in the sorted set.",
     "Count the members in a sorted set with scores within the given values.", "key min max"},
    {"zdiff", cmd_zdiff, -3, kReadOnly | kMovableKeys, 0, 0, 0, kGets, kZset, "6.2.0", kDiffCost,
     "Subtract multiple sorted sets.", "numkeys key [key ...] [WITHSCORES]"},
    {"zdiffstore", cmd_zdiffstore, -4, kWrite | kDenyOom | kMovableKeys, 1, 1, 1, kStoresFrom, kZset,
     "6.2.0", kDiffCost, "Subtract multiple sorted sets and store the resulting sorted set in a new key.",
     "destination numkeys key [key ...]"},
    {"zincrby", cmd_zincrby, 4, kWriteFast, 1, 1, 1, kGetsAndUpdates, kZset, "1.2.0",
     "O(log(N)) where N is the number of elements in the sorted set.",
     "Increment the score of a member in a sorted set.", "key increment member"},
    {"zinter", cmd_zinter, -3, kReadOnly | kMovableKeys, 0, 0, 0, kGets, kZset, "6.2.0", kInterCost,
     "Intersect multiple sorted sets.",
     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]"},
    {"zintercard", cmd_zintercard, -3, kReadOnly | kMovableKeys, 0, 0, 0, kGets, kZset, "7.0.0",
     "O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted "
     "sets.",
     "Intersect multiple sorted sets and return the cardinality of the result.",
     "numkeys key [key ...] [LIMIT limit]"},
    {"zinterstore", cmd_zinterstore, -4, kWrite | kDenyOom | kMovableKeys, 1, 1, 1, kStoresFrom, kZset,
     "2.0.0", kInterCost, "Intersect multiple sorted sets and store the resulting sorted set in a new key.",
     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]"},
    {"zlexcount", cmd_zlexcount, 4, kReadOnly | kFast, 1, 1, 1, kGets, kZset, "2.8.9",
     "O(log(N)) with N being the number of elements in the sorted set.",
     "Count the number of members in a sorted set between a given lexicographical range.", "key min max"},
    {"zmpop", cmd_zmpop, -4, kWrite | kMovableKeys, 0, 0, 0, kPops, kZset, "7.0.0", kPopCost,
     "Remove and return members with scores in a sorted set",
     "numkeys key [key ...] <MIN | MAX> [COUNT count]"},
    {"zmscore", cmd_zmscore, -3, kReadOnly | kFast, 1, 1, 1, kGets, kZset, "6.2.0",
     "O(N) where N is the number of members being requested.",
     "Get the score associated with the given members in a sorted set.", "key member [member ...]"},
    {"zpopmax", cmd_zpopmax, -2, kWrite | kRelease | kFast, 1, 1, 1, kPops, kZset, "5.0.0",
     "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of "
     "elements popped.",
     "Remove and return members with the highest scores in a sorted set.", "key [count]"},
    {"zpopmin", cmd_zpopmin, -2, kWrite | kRelease | kFast, 1, 1, 1, kPops, kZset, "5.0.0",
     "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of "
     "elements popped.",
     "Remove and return members with the lowest scores in a sorted set.", "key [count]"},
    {"zrandmember", cmd_zrandmember, -2, kReadOnly, 1, 1, 1, kGets, kZset, "6.2.0",
     "O(N) where N is the number of elements returned",
     "Get one or multiple random elements from a sorted set.", "key [count [WITHSCORES]]"},
    {"zrange", cmd_zrange, -4, kReadOnly, 1, 1, 1, kGets, kZset, "1.2.0", kRangeCost,
     "Return a range of members in a sorted set.",
     "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]"},
    {"zrangebylex", cmd_zrangebylex, -4, kReadOnly, 1, 1, 1, kGets, kZset, "2.8.9", kLimitedCost,
     "Return a range of members in a sorted set, by lexicographical range.",
     "key min max [LIMIT offset count]"},
    {"zrangebyscore", cmd_zrangebyscore, -4, kReadOnly, 1, 1, 1, kGets, kZset, "1.0.5", kLimitedCost,
     "Return a range of members in a sorted set, by score.",
     "key min max [WITHSCORES] [LIMIT offset count]"},
    {"zrangestore", cmd_zrangestore, -5, kWrite | kDenyOom, 1, 2, 1, kStoresFrom, kZset, "6.2.0",
     "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements "
     "stored into the destination key.",
     "Store a range of members from sorted set into another key.",
     "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]"},
    {"zrank", cmd_zrank, -3, kReadOnly | kFast, 1, 1, 1, kGets, kZset, "2.0.0", "O(log(N))",
     "Determine the index of a member in a sorted set.", "key member [WITHSCORE]"},
    {"zrem", cmd_zrem, -3, kWrite | kRelease | kFast, 1, 1, 1, kErases, kZset, "1.2.0",
     "O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements to be "
     "removed.",
     "Remove one or more members from a sorted set.", "key member [member ...]"},
    {"zremrangebylex", cmd_zremrangebylex, 4, kWrite | kRelease, 1, 1, 1, kErases, kZset, "2.8.9",
     kRemovalCost, "Remove all members in a sorted set between the given lexicographical range.",
     "key min max"},
    {"zremrangebyrank", cmd_zremrangebyrank, 4, kWrite | kRelease, 1, 1, 1, kErases, kZset, "2.0.0",
     kRemovalCost, "Remove all members in a sorted set within the given indexes.", "key start stop"},
    {"zremrangebyscore", cmd_zremrangebyscore, 4, kWrite | kRelease, 1, 1, 1, kErases, kZset, "1.2.0",
     kRemovalCost, "Remove all members in a sorted set within the given scores.", "key min max"},
    {"zrevrange", cmd_zrevrange, -4, kReadOnly, 1, 1, 1, kGets, kZset, "1.2.0", kRangeCost,
     "Return a range of members in a sorted set, by index, with scores ordered from high to low.",
     "key start stop [WITHSCORES]"},
    {"zrevrangebylex", cmd_zrevrangebylex, -4, kReadOnly, 1, 1, 1, kGets, kZset, "2.8.9", kLimitedCost,
     "Return a range of members in a sorted set, by lexicographical range, ordered from higher to lower "
     "strings.",
     "key max min [LIMIT offset count]"},
    {"zrevrangebyscore", cmd_zrevrangebyscore, -4, kReadOnly, 1, 1, 1, kGets, kZset, "2.2.0", kLimitedCost,
     "Return a range of members in a sorted set, by score, with scores ordered from high to low.",
     "key max min [WITHSCORES] [LIMIT offset count]"},
    {"zrevrank", cmd_zrevrank, -3, kReadOnly | kFast, 1, 1, 1, kGets, kZset, "2.0.0", "O(log(N))",
     "Determine the index of a member in a sorted set, with scores ordered from high to low.",
     "key member [WITHSCORE]"},
    {"zscan", cmd_zscan, -3, kReadOnly, 1, 1, 1, kGets, kZset, "2.8.0", "O(1) for every call",
     "Incrementally iterate sorted sets elements and associated scores.",
     "key cursor [MATCH pattern] [COUNT count]"},
    {"zscore", cmd_zscore, 3, kReadOnly | kFast, 1, 1, 1, kGets, kZset, "1.2.0", "O(1)",
     "Get the score associated with the given member in a sorted set.", "key member"},
    {"zunion", cmd_zunion, -3, kReadOnly | kMovableKeys, 0, 0, 0, kGets, kZset, "6.2.0", kUnionCost,
     "Add multiple sorted sets.",
     "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]"},
    {"zunionstore", cmd_zunionstore, -4, kWrite | kDenyOom | kMovableKeys, 1, 1, 1, kStoresFrom, kZset,
     "2.0.0", kUnionCost, "Add multiple sorted sets and store the resulting sorted set in a new key.",
     "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]"},
};

}  // namespace

std::span<const Command> zset_commands() { return kZsetRows; }

}  // namespace holdfast
