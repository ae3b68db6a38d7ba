// The generator's values for the arguments of any command, by their names in the command table.
#include <algorithm>
#include <array>
#include <span>

#include "core/base/sha1.h"
#include "io/config/options_table.h"
#include "named_values.h"
#include "server_generator.h"
#include "server_scripts.h"

namespace holdfast::simulation {
namespace {

const std::vector<std::string_view>& acl_rules() {
  static const std::vector<std::string_view> all = {
      "on",
      "off",
      "nopass",
      ">pw",
      "<pw",
      "~*",
      "~k*",
      "%R~a:*",
      "%W~j*",
      "allkeys",
      "resetkeys",
      "&*",
      "&c1",
      "resetchannels",
      "+@all",
      "+@lock",
      "-@dangerous",
      "-@all",
      "+get",
      "-set",
      "+locks|info",
      "-config|set",
      "(+get ~x)",
      "(+lock %R~k)",
      "clearselectors",
      "reset",
      "resetpass",
      "sanitize-payload",
      "+nothing",
      "#2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90"};
  return all;
}

const std::vector<NamedValues>& choices() {
  static const std::vector<NamedValues> all = {
      {"ADDR", {"127.0.0.1:1", ""}},
      {"address", {"127.0.0.1:1", "", "unix"}},
      {"bits", {"1", "64", "4096", "5000"}},
      {"category", {"lock", "all", "dangerous", "keyspace", "none"}},
      {"channel", {"c1", "c2", "__keyspace@0__:k", "__keyevent@0__:expired", "__lock@0__:k"}},
      {"clientname", {"worker", "a b", "n"}},
      {"connection-name", {"worker", "a b", ""}},
      {"count", {"1", "3", "10", "1000", "0", "-1"}},
      {"cursor", {"0", "0", "0", "1", "7", "18446744073709551615"}},
      {"decrement", {"1", "5", "-7", "9223372036854775807"}},
      {"destination-db", {"0", "1", "2"}},
      {"element", {"a", "b", "c", "a", "", "12", "a longer element"}},
      {"event", {"command", "fast-command", "expire-cycle", "journal"}},
      {"float", {"0.5", "-1e10", "3", "nan"}},
      {"increment", {"1", "5", "-7", "9223372036854775807", "1.5", "-2e3"}},
      {"index", {"0", "1", "15", "16"}},
      {"index1", {"0", "1"}},
      {"index2", {"0", "1", "2"}},
      {"len", {"0", "1", "10"}},
      {"libname", {"redis-py", "lib x"}},
      {"libver", {"1.0"}},
      {"limit", {"1", "2", "3", "5"}},
      {"max", {"+inf", "1", "2", "(5", "0", "-1", "+", "[c"}},
      {"member", {"a", "b", "c", "d", "e", "f", "", "12", "-7"}},
      {"min", {"-inf", "0", "1", "(1", "-", "[a", "(b"}},
      {"module-name", {"none"}},
      {"message", {"hi", "", "a longer message"}},
      {"num-matches", {"0", "1", "2", "-1"}},
      {"numkeys", {"0", "1", "1", "2", "2", "-1"}},
      {"numreplicas", {"0", "1"}},
      {"offset", {"0", "1", "100", "3000", "-1"}},
      {"password", {"pw", "wrong", ""}},
      {"pattern", {"*", "k*", "?", "[jk]*", "a:?", "__key*__:*", "n\\o[^a-c]*"}},
      {"pivot", {"a", "b", "none"}},
      {"protover", {"2", "3", "3", "4"}},
      {"rank", {"1", "2", "-1", "0"}},
      {"rule", acl_rules()},
      {"score", {"0", "1", "2", "2.5", "-3", "1e300", "inf", "-inf", "nan"}},
      {"section",
       {"all", "everything", "server", "clients", "memory", "persistence", "stats", "commandstats",
        "errorstats", "latencystats", "keyspace", "locks", "cpu", "nothing"}},
      {"shardchannel", {"s1", "s2"}},
      {"username", {"u1", "u2", "u1", "default", "nobody"}},
      {"weight", {"1", "0", "-2", "0.5", "inf"}},
  };
  return all;
}

// Of functions, payloads and rate limiters.
const std::vector<NamedValues>& more_choices() {
  static const std::vector<NamedValues> all = {
      {"comparison-digest", {"2d06800538d394c2", "9555e8555c62dcfd", "short"}},
      {"frequency", {"0", "255", "256"}},
      {"function", {"f", "g", "F", "none"}},
      {"function-code",
       {"#!lua name=l\nredis.register_function('f', function(k, a) return redis.call('get', k[1] or 'k') "
        "end)",
        "#!lua name=l\nredis.register_function('g', function(k, a) return redis.call('incr', k[1] or 'n') "
        "end)",
        "#!lua name=m\nredis.register_function{function_name='f', callback=function(k, a) return a end, "
        "flags={'no-writes'}}",
        "#!lua name=m\nx x"}},
      {"library-name", {"l", "m", "none"}},
      {"library-name-pattern", {"*", "l", "?"}},
      {"max-burst", {"0", "4", "100", "-1"}},
      {"period", {"1", "60", "0"}},
      {"quantity", {"0", "1", "5"}},
      {"serialized-value", {"", "none"}},
  };
  return all;
}

std::string number_text(int64_t n) { return std::to_string(n); }

}  // namespace

// Returns a value for an argument of the syntax, in most cases one that the command accepts.
std::string ServerGenerator::value_of(const ArgNode& argument) {
  const std::string& name = argument.name;
  if (argument.type == ArgType::kKey) return dice_.one_in(60) ? std::string("odd \x01 key") : key();
  for (const auto* table : {&choices(), &more_choices()}) {
    if (const auto* known = values_of(*table, name)) return std::string(dice_.pick(*known));
  }
  if (name == "owner" && dice_.one_in(4)) return attempt();
  if (name == "owner" || name == "comparison-value" || name == "value")
    return dice_.one_in(3) ? value() : owner();
  if (name == "id") return lease_id();
  if (name == "field") return "f" + number_text(dice_.between(0, 11));
  if (name == "token" || name == "hint" || name == "time")
    return number_text(world_->now_us() + dice_.between(-5, 1'000'000));
  return time_of(argument);
}

std::string ServerGenerator::time_of(const ArgNode& argument) {
  const std::string& name = argument.name;
  const int64_t now_s = world_->now_us() / kSecondUs;
  if (name == "ttl" || name == "milliseconds") return dice_.one_in(20) ? "-1" : ttl();
  if (name == "timeout") return number_text(dice_.between(0, 300));
  if (name == "seconds") return number_text(dice_.between(-1, 500));
  if (name == "unix-time-seconds") return number_text(now_s + dice_.between(-3, 500));
  if (name == "unix-time-milliseconds") return number_text(now_s * 1000 + dice_.between(-3000, 500'000));
  if (name == "start" || name == "stop" || name == "end") return number_text(dice_.between(-6, 10));
  if (name == "client-id") return number_text(dice_.between(1, 30));
  if (name == "parameter") return std::string(dice_.pick(option_names()));
  if (name == "command" || name == "command-name") return std::string(dice_.pick(commands_)->name);
  if (name == "script") return std::string(dice_.pick(scripts()));
  if (name == "sha1") return sha1_hex(dice_.pick(scripts()));
  return dice_.one_in(2) ? value() : key();
}

// The names of all options, and those that a glob of CONFIG GET matches.
const std::vector<std::string>& ServerGenerator::option_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"*", "max*", "lua-time-limit", "no-such-option"};
    for (const Row& row : option_rows()) all.emplace_back(row.name);
    return all;
  }();
  return names;
}

}  // namespace holdfast::simulation
