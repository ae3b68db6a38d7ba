// The table of key accesses. For commands of Redis it matches Redis 7.0.
#include "core/command/key_access.h"

#include <string>
#include <vector>

#include "core/base/parse.h"
#include "core/command/command.h"
#include "core/command/handlers.h"
#include "core/command/value_test.h"

namespace holdfast {

namespace {

struct Use {
  std::string_view first;   // flags of the first key
  std::string_view others;  // flags of all other keys
  std::string_view commands;
};

constexpr std::string_view kSetAndGet = "RW access update";
constexpr std::string_view kSetOnly = "OW update";

constexpr Use kUses[] = {
    {kSetAndGet, kSetAndGet,
     " eval evalsha fcall cl.throttle hgetex hincrby hincrbyfloat zincrby decr decrby getex getset incr "
     "incrby "
     "incrbyfloat set "},
    {"RO access", "RO access",
     " eval_ro evalsha_ro fcall_ro expiretime pexpiretime pttl ttl hget hgetall hkeys hmget hscan hvals "
     "httl hpttl hexpiretime hpexpiretime get getrange mget substr digest dump locks|info locks|check "
     "hrandfield smembers smismember lindex lpos lrange "
     "sdiff sinter sintercard srandmember sscan sunion zcount zdiff zinter zintercard zlexcount zmscore "
     "zrandmember zrange zrangebylex zrangebyscore zrank zrevrange zrevrangebylex zrevrangebyscore "
     "zrevrank zscan zscore zunion "},
    {"RO", "RO",
     " watch exists object|encoding object|freq object|idletime object|refcount touch type memory|usage "
     "hexists hlen hstrlen strlen scard sismember llen zcard "},
    {"RO access", "OW update", " copy "},
    {"RM delete", "RM delete", " del unlink "},
    {"RW update", "RW update",
     " expire expireat persist pexpire pexpireat hexpire hexpireat hpersist hpexpire hpexpireat hsetex "
     "hmset "
     "hset setrange zadd lock renew fence locks|raise "
     "locks|revoke lset "},
    {"RW access delete", "OW update", " rename "},
    {"RW access delete", "OW insert", " renamenx "},
    {"RW delete", "RW delete",
     " hdel srem lrem ltrim zrem zremrangebylex zremrangebyrank zremrangebyscore unlock locks|break "
     "locks|yield delex "
     "delifeq "},
    {"RW insert", "RW insert", " hsetnx append sadd linsert lpush lpushx rpush rpushx "},
    {"RW access delete", "RW access delete",
     " getdel hgetdel spop blmpop blpop brpop lmpop lpop rpop bzmpop bzpopmax bzpopmin zmpop zpopmax "
     "zpopmin "},
    {"RW access delete", "RW insert", " smove blmove brpoplpush lmove rpoplpush "},
    {"RW update", "RO access", " sinterstore "},
    {kSetOnly, "RO access", " sdiffstore sunionstore zdiffstore zinterstore zrangestore zunionstore "},
    {kSetOnly, kSetOnly, " mset msetex psetex restore setex "},
    {"OW insert", "OW insert", " msetnx setnx lease|grant "},
    {"not_key", "not_key", " spublish ssubscribe sunsubscribe "},
};

// Indexed by row, so that a check of permissions needs no search.
std::vector<const Use*> uses_by_row() {
  std::vector<const Use*> uses;
  for (const Command& c : all_commands()) {
    const std::string name = " " + std::string(c.name) + " ";
    const Use* found = nullptr;
    for (const Use& use : kUses) {
      if (use.commands.find(name) != std::string_view::npos) found = &use;
    }
    uses.push_back(found);
  }
  return uses;
}

}  // namespace

std::string_view widest_key_flags(const Command& command, size_t nth) {
  static const std::vector<const Use*> kByRow = uses_by_row();
  const Use* use = kByRow[static_cast<size_t>(&command - all_commands().data())];
  if (use == nullptr) return {};
  return nth == 0 ? use->first : use->others;
}

std::string_view key_flags(const Command& command, std::span<const std::string_view> argv, size_t nth) {
  if (command.handler == cmd_delex) return argv.size() > 2 ? widest_key_flags(command, nth) : "RM delete";
  if (command.handler != cmd_set) return widest_key_flags(command, nth);
  std::string_view flags = kSetOnly;
  for (size_t i = 3; i < argv.size(); ++i) {
    if (equals_ignore_case(argv[i], "GET")) return kSetAndGet;
    if (condition_word(argv[i]) != ValueTest::kNone) flags = "RW update";
  }
  return flags;
}

uint8_t access_needed(std::string_view flags) {
  uint8_t access = kSeen;
  if (flags.find("access") != std::string_view::npos) access |= kRead;
  for (const std::string_view change : {"insert", "delete", "update"}) {
    if (flags.find(change) != std::string_view::npos) access |= kWritten;
  }
  return access;
}

}  // namespace holdfast
