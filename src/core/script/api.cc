// The functions that a script may call: redis.call() and its relatives. Errors are Lua errors; a function
// that raises one owns nothing that stack unwinding would not free.
#include "core/script/api.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <lua.hpp>
#include <string>

#include "core/base/sha1.h"
#include "core/base/version.h"
#include "core/codec/reply.h"
#include "core/command/acl.h"
#include "core/command/command.h"
#include "core/command/command_log.h"
#include "core/events/acl_check.h"
#include "core/script/script.h"
#include "core/script/value.h"
#include "core/state/conn.h"
#include "core/state/memory_use.h"
#include "core/state/request.h"

namespace holdfast {

// The functions. They are in a struct to be a friend of ScriptHost.
struct ScriptApi {
  static int call(lua_State* lua) { return invoke(lua, true); }
  static int pcall(lua_State* lua) { return invoke(lua, false); }
  static int setresp(lua_State* lua);
  static int log(lua_State* lua);
  static int random(lua_State* lua);
  static int randomseed(lua_State* lua);
  static int repeat(lua_State* lua);
  static int acl_check_cmd(lua_State* lua);

 private:
  static int invoke(lua_State* lua, bool raise);
  static bool read_arguments(ScriptHost& host, lua_State* lua);
  static std::string_view run(ScriptHost& host);
  static std::string_view objection(const ScriptHost& host, const Command* command);
  static std::string_view denial(const Request& outer, const Command& command,
                                 std::span<const std::string_view> argv);
  static std::string_view refusal(const ScriptHost& host, const Command& command);
};

namespace {

int raise_text(lua_State* lua, const char* text) {
  push_error(lua, text);
  return lua_error(lua);
}

// Formats a number as "%.17g" does: the exact value of a double is never rounded in an argument of a
// command.
std::string number_text(lua_Number n) {
  std::array<char, 32> digits;
  constexpr lua_Number kExact = 1e15;
  if (n > -kExact && n < kExact && n == std::floor(n) && (n != 0 || !std::signbit(n))) {
    const char* end =
        std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<int64_t>(n)).ptr;
    return {digits.data(), static_cast<size_t>(end - digits.data())};
  }
  const int size = std::snprintf(digits.data(), digits.size(), "%.17g", n);
  return {digits.data(), static_cast<size_t>(size)};
}

// For {ok = text} and {err = text}: whether there is one argument, a string. Otherwise pushes an error.
bool is_one_string(lua_State* lua) {
  if (lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING) return true;
  push_error(lua, "ERR wrong number or type of arguments");
  return false;
}

int status_reply(lua_State* lua) {
  if (!is_one_string(lua)) return 1;
  lua_createtable(lua, 0, 1);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "ok");
  return 1;
}

// Makes {err = text}. A text of one word counts as a message, and gets the code ERR.
int error_reply(lua_State* lua) {
  if (!is_one_string(lua)) return 1;
  size_t size = 0;
  const char* bytes = lua_tolstring(lua, 1, &size);
  std::string_view text(bytes, size);
  if (text.starts_with('-')) text.remove_prefix(1);
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  std::string error(text.find(' ') == std::string_view::npos ? "ERR " : "");
  push_error(lua, error.append(text));
  return 1;
}

int sha1hex(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise_text(lua, "ERR wrong number of arguments");
  size_t size = 0;
  const char* bytes = lua_tolstring(lua, 1, &size);  // null, and size 0, if it is no string
  constexpr size_t kBytesInStep = 16;
  host_of(lua).spend(lua, static_cast<int64_t>(size / kBytesInStep));
  const std::string digest = sha1_hex({bytes == nullptr ? "" : bytes, size});
  lua_pushlstring(lua, digest.data(), digest.size());
  return 1;
}

constexpr int kReplAll = 3;  // REPL_AOF and REPL_REPLICA

// Accepts the flags of Redis and ignores them, as there is no replication. Rejects flags that Redis
// rejects.
int set_repl(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise_text(lua, "ERR redis.set_repl() requires two arguments.");
  const lua_Number flags = lua_tonumber(lua, 1);
  if (flags >= 0 && flags <= kReplAll) return 0;
  return raise_text(lua,
                    "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
}

int replicate_commands(lua_State* lua) {
  lua_pushboolean(lua, 1);
  return 1;
}

// As in Redis outside of a debugger, which the server does not have.
int breakpoint(lua_State* lua) {
  lua_pushboolean(lua, 0);
  return 1;
}
int debug(lua_State* /*lua*/) { return 0; }

}  // namespace

// Reads the arguments on the stack into the host's argv. Returns false if one is neither a string nor a
// number.
bool ScriptApi::read_arguments(ScriptHost& host, lua_State* lua) {
  const int argc = lua_gettop(lua);
  host.argv_.clear();
  host.numbers_.clear();
  host.numbers_.reserve(static_cast<size_t>(argc));  // the views into it must stay valid
  for (int i = 1; i <= argc; ++i) {
    const int type = lua_type(lua, i);
    if (type == LUA_TNUMBER) {
      host.argv_.emplace_back(host.numbers_.emplace_back(number_text(lua_tonumber(lua, i))));
    } else if (type == LUA_TSTRING) {
      size_t size = 0;
      const char* bytes = lua_tolstring(lua, i, &size);
      host.argv_.emplace_back(bytes, size);
    } else {
      return false;
    }
  }
  return true;
}

// Returns why a script must not run a command now. Empty if it may.
std::string_view ScriptApi::refusal(const ScriptHost& host, const Command& command) {
  if (command.has(kNoScript)) return "ERR This Redis command is not allowed from script";
  // Redis would send published messages to replicas.
  if (command.has(kWrite | kPublishes) && host.call_.read_only) {
    return "ERR Write commands are not allowed from read-only scripts.";
  }
  return {};
}

// Returns why the user of the script must not run a command. Empty if the user may.
std::string_view ScriptApi::denial(const Request& outer, const Command& command,
                                   std::span<const std::string_view> argv) {
  const Verdict v = check_permission(outer.s(), *outer.c.user, command, argv);
  if (v.allowed()) return {};
  log_verdict(outer.ctx, outer.c, v, AclContext::kScript, command, argv);
  if (v.why == Denial::kCommand) {
    return "ERR The user executing the script can't run this command or subcommand";
  }
  if (v.why == Denial::kKey) {
    return "ERR The user executing the script can't access at least one of the keys mentioned in the "
           "command "
           "arguments";
  }
  return "ERR The user executing the script can't publish to the channel mentioned in the command";
}

// Returns why the request in argv_ must not run. Empty if it may.
std::string_view ScriptApi::objection(const ScriptHost& host, const Command* command) {
  if (command == nullptr) return "ERR Unknown Redis command called from script";
  if (!arity_fits(*command, host.argv_.size())) {
    return "ERR Wrong number of args calling Redis command from script";
  }
  const Request& outer = *host.call_.request;
  if (const std::string_view why = refusal(host, *command); !why.empty()) return why;
  if (outer.c.checked) {
    if (const std::string_view why = denial(outer, *command, host.argv_); !why.empty()) return why;
  }
  // Over the memory limit a script may finish after its first write: a half of its changes would be worse.
  const bool grows = command->has(kDenyOom) && !host.call_.script->flags.allow_oom;
  if (!grows || host.call_.wrote || !outer.s().memory.over_limit) return {};
  return kOomText;
}

// Runs the request in argv_. Returns its reply, a view into scratch_.
std::string_view ScriptApi::run(ScriptHost& host) {
  const Command* command = find_row(host.argv_);
  const Request& outer = *host.call_.request;
  host.scratch_.clear();
  Reply reply(host.scratch_, host.call_.resp);
  if (const std::string_view why = objection(host, command); !why.empty()) {
    reply.error(why);
    outer.s().log.record_rejection(command, host.scratch_.view());
    return host.scratch_.view();
  }
  if (command->has(kWrite)) host.call_.wrote = true;
  Request r{outer.ctx, outer.c, *command, host.argv_, reply};
  r.from_script = true;
  host.run_request(r);
  return host.scratch_.view();
}

int ScriptApi::invoke(lua_State* lua, bool raise) {
  ScriptHost& host = host_of(lua);
  const char* refused = nullptr;
  if (lua_gettop(lua) == 0) {
    refused = "ERR Please specify at least one argument for this redis lib call";
  } else if (!read_arguments(host, lua)) {
    refused = "ERR Lua redis lib command arguments must be strings or integers";
  }
  if (refused == nullptr) {
    const std::string_view reply = run(host);
    constexpr int64_t kStepsOfCall = 32;
    host.spend(lua, kStepsOfCall + static_cast<int64_t>(host.argv_.size()));
    if (host.scratch_.overflowed()) return luaL_error(lua, "not enough memory");
    push_reply(lua, host, reply);
    if (!reply.starts_with('-')) return 1;
    mark_error(lua);
  } else {
    push_error(lua, refused);
  }
  if (raise) return lua_error(lua);
  return 1;
}

// Whether the script's user may run a request; an unknown command is an error.
int ScriptApi::acl_check_cmd(lua_State* lua) {
  ScriptHost& host = host_of(lua);
  if (lua_gettop(lua) == 0) {
    return raise_text(lua, "ERR Please specify at least one argument for this redis lib call");
  }
  if (!read_arguments(host, lua)) {
    return raise_text(lua, "ERR Lua redis lib command arguments must be strings or integers");
  }
  const Command* command = find_row(host.argv_);
  if (command == nullptr) return raise_text(lua, "ERR Invalid command passed to redis.acl_check_cmd()");
  const Request& outer = *host.call_.request;
  const bool fits = arity_fits(*command, host.argv_.size());  // otherwise the position of keys is undefined
  lua_pushboolean(lua,
                  fits ? check_permission(outer.s(), *outer.c.user, *command, host.argv_).allowed() : 1);
  return 1;
}

int ScriptApi::setresp(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise_text(lua, "ERR redis.setresp() requires one argument.");
  const lua_Number version = lua_tonumber(lua, 1);
  if (version != 2 && version != 3) return raise_text(lua, "ERR RESP version must be 2 or 3.");
  host_of(lua).call_.resp = static_cast<int>(version);
  return 0;
}

int ScriptApi::log(lua_State* lua) {
  const int argc = lua_gettop(lua);
  if (argc < 2) return raise_text(lua, "ERR redis.log() requires two arguments or more.");
  if (lua_isnumber(lua, 1) == 0) return raise_text(lua, "ERR First argument must be a number (log level).");
  const lua_Number number = lua_tonumber(lua, 1);
  // Not only the integers 0 to 3, as in Redis. NaN and large numbers are no int.
  if (!(number > -1 && number < 4)) return raise_text(lua, "ERR Invalid debug level.");
  const auto level = static_cast<int>(number);
  constexpr size_t kMaxText = 1024;  // the limit of a log line in Redis
  std::string text;
  for (int i = 2; i <= argc; ++i) {
    size_t size = 0;
    const char* bytes = lua_tolstring(lua, i, &size);
    if (bytes == nullptr) continue;
    if (text.size() > kMaxText) break;
    if (!text.empty()) text += ' ';
    text.append(bytes, std::min(size, kMaxText));
  }
  text.resize(std::min(text.size(), kMaxText));
  if (host_of(lua).log) host_of(lua).log(level, text);
  return 0;
}

// math.random() as in Redis: POSIX's lrand48(), with the same seed in every server, so that runs can be
// repeated.
int ScriptApi::random(lua_State* lua) {
  uint64_t& state = host_of(lua).random_;
  state = (state * 0x5DEECE66DU + 0xBU) & ((uint64_t{1} << 48U) - 1);
  constexpr uint64_t kSpan = 0x7FFFFFFF;
  const lua_Number r = static_cast<lua_Number>((state >> 17U) % kSpan) / static_cast<lua_Number>(kSpan);
  const int argc = lua_gettop(lua);
  if (argc == 0) return lua_pushnumber(lua, r), 1;
  if (argc > 2) return luaL_error(lua, "wrong number of arguments");
  const int low = argc == 2 ? luaL_checkint(lua, 1) : 1;
  const int high = luaL_checkint(lua, argc);
  luaL_argcheck(lua, low <= high, argc, "interval is empty");
  lua_pushnumber(lua, std::floor(r * (static_cast<lua_Number>(high) - low + 1)) + low);
  return 1;
}

int ScriptApi::randomseed(lua_State* lua) {
  constexpr uint64_t kLowBits = 0x330E;  // as in srand48()
  host_of(lua).random_ = uint64_t{static_cast<uint32_t>(luaL_checkint(lua, 1))} << 16U | kLowBits;
  return 0;
}

// string.rep(). Lua's own would append an empty text up to 2^31 times, or exceed the memory limit, in one
// call without a check of the clock.
int ScriptApi::repeat(lua_State* lua) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  const lua_Number times = luaL_checknumber(lua, 2);
  if (size == 0 || !(times >= 1)) return lua_pushliteral(lua, ""), 1;
  if (times * static_cast<lua_Number>(size) > static_cast<lua_Number>(host_of(lua).run_limit())) {
    return luaL_error(lua, "not enough memory");
  }
  const size_t whole = size * static_cast<size_t>(times);
  if (whole <= LUAL_BUFFERSIZE) return call_original(lua);
  auto* bytes = static_cast<char*>(lua_newuserdata(lua, whole));
  std::memcpy(bytes, text, size);
  for (size_t done = size; done < whole; done *= 2) {
    std::memcpy(bytes + done, bytes, std::min(done, whole - done));
  }
  lua_pushlstring(lua, bytes, whole);
  return 1;
}

LuaState& state_of(lua_State* lua) {
  void* state = nullptr;
  lua_getallocf(lua, &state);
  return *static_cast<LuaState*>(state);
}

ScriptHost& host_of(lua_State* lua) { return state_of(lua).host; }

void push_redis_table(lua_State* lua) {
  static constexpr luaL_Reg kFunctions[] = {{"call", ScriptApi::call},
                                            {"pcall", ScriptApi::pcall},
                                            {"error_reply", error_reply},
                                            {"status_reply", status_reply},
                                            {"sha1hex", sha1hex},
                                            {"log", ScriptApi::log},
                                            {"setresp", ScriptApi::setresp},
                                            {"set_repl", set_repl},
                                            {"replicate_commands", replicate_commands},
                                            {"breakpoint", breakpoint},
                                            {"debug", debug},
                                            {"acl_check_cmd", ScriptApi::acl_check_cmd},
                                            {nullptr, nullptr}};
  struct Constant {
    const char* name;
    int value;
  };
  static constexpr Constant kConstants[] = {
      {"LOG_DEBUG", 0},       {"LOG_VERBOSE", 1},
      {"LOG_NOTICE", 2},      {"LOG_WARNING", 3},
      {"REPL_NONE", 0},       {"REPL_AOF", 1},
      {"REPL_REPLICA", 2},    {"REPL_SLAVE", 2},
      {"REPL_ALL", kReplAll}, {"REDIS_VERSION_NUM", kRedisVersionNumber}};
  lua_createtable(lua, 0, 24);
  luaL_register(lua, nullptr, kFunctions);
  for (const Constant& c : kConstants) {
    lua_pushinteger(lua, c.value);
    lua_setfield(lua, -2, c.name);
  }
  lua_pushlstring(lua, kRedisVersion.data(), kRedisVersion.size());
  lua_setfield(lua, -2, "REDIS_VERSION");
  lua_pushlstring(lua, kHoldfastVersion.data(), kHoldfastVersion.size());
  lua_setfield(lua, -2, "HOLDFAST_VERSION");  // lets a script detect Holdfast: Redis has no such field
}

void push_loading_table(lua_State* lua) {
  lua_createtable(lua, 0, 8);
  lua_pushcfunction(lua, ScriptApi::log);
  lua_setfield(lua, -2, "log");
  push_redis_table(lua);
  for (const char* name :
       {"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING", "REDIS_VERSION", "REDIS_VERSION_NUM"}) {
    lua_getfield(lua, -1, name);
    lua_setfield(lua, -3, name);
  }
  lua_pop(lua, 1);
}

void put_host_functions(lua_State* lua) {
  lua_getglobal(lua, LUA_MATHLIBNAME);
  lua_pushcfunction(lua, ScriptApi::random);
  lua_setfield(lua, -2, "random");
  lua_pushcfunction(lua, ScriptApi::randomseed);
  lua_setfield(lua, -2, "randomseed");
  lua_getglobal(lua, LUA_STRLIBNAME);
  lua_getfield(lua, -1, "rep");
  lua_pushcclosure(lua, ScriptApi::repeat, 1);
  lua_setfield(lua, -2, "rep");
  lua_pop(lua, 2);
}

}  // namespace holdfast
