// The host of scripts: its Lua state, the cache, and one run.
#include "core/script.h"

#include <algorithm>
#include <cstdlib>
#include <lua.hpp>

#include "core/command.h"
#include "core/script_api.h"
#include "core/script_value.h"

namespace holdfast {

namespace {

constexpr int kStepsBetweenLooks = 100000;  // instructions of Lua after which the clock is looked at
constexpr int64_t kSliceUs = 5000;          // how long a script goes on at once after it first gave way

void look(lua_State* lua, lua_Debug*) { host_of(lua).check_time(lua); }

}  // namespace

// What runs in protected mode, as any of it may find no memory.
struct ScriptSandbox {
  static int open(lua_State* lua) {
    ScriptHost& host = host_of(lua);
    open_sandbox(lua);
    host.handler_ = luaL_ref(lua, LUA_REGISTRYINDEX);
    host.environment_ = luaL_ref(lua, LUA_REGISTRYINDEX);
    host.globals_ = luaL_ref(lua, LUA_REGISTRYINDEX);
    return 0;
  }

  struct Source {
    std::string_view body;
    size_t function;
    std::string* error;
  };

  static int compile(lua_State* lua) {
    auto& source = *static_cast<Source*>(lua_touserdata(lua, 1));
    if (luaL_loadbuffer(lua, source.body.data(), source.body.size(), "@user_script") != 0) {
      *source.error = std::string("ERR Error compiling script (new function): ") + lua_tostring(lua, -1);
      return 0;
    }
    source.function = keep(lua, host_of(lua));
    return 0;
  }

  // Takes the function on top of the stack into the pages.
  static size_t keep(lua_State* lua, ScriptHost& host) {
    const size_t place = host.functions_;
    if (place / ScriptHost::kPageScripts == host.pages_.size()) {
      lua_createtable(lua, static_cast<int>(ScriptHost::kPageScripts), 0);
      host.pages_.push_back(luaL_ref(lua, LUA_REGISTRYINDEX));
    }
    lua_rawgeti(lua, LUA_REGISTRYINDEX, host.pages_.back());
    lua_insert(lua, -2);
    lua_rawseti(lua, -2, slot_of(place));
    return host.functions_++;
  }

  static void push_kept(lua_State* lua, const ScriptHost& host, size_t place) {
    lua_rawgeti(lua, LUA_REGISTRYINDEX, host.pages_[place / ScriptHost::kPageScripts]);
    lua_rawgeti(lua, -1, slot_of(place));
    lua_remove(lua, -2);
  }

  static int slot_of(size_t place) { return static_cast<int>(place % ScriptHost::kPageScripts) + 1; }

  static void set_strings(lua_State* lua, const char* name, std::span<const std::string_view> strings) {
    lua_pushstring(lua, name);
    lua_createtable(lua, static_cast<int>(strings.size()), 0);
    int i = 0;
    for (const std::string_view s : strings) {
      lua_pushlstring(lua, s.data(), s.size());
      lua_rawseti(lua, -2, ++i);
    }
    lua_rawset(lua, -3);
  }

  // The script itself runs in a protected call of its own, so that its error can be told with its place.
  static int run(lua_State* lua) {
    ScriptHost& host = host_of(lua);
    Request& r = *host.call_.request;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, host.globals_);
    set_strings(lua, "KEYS", host.call_.keys);
    set_strings(lua, "ARGV", host.call_.args);
    host.begin_limit();
    lua_settop(lua, 0);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, host.handler_);
    push_kept(lua, host, host.call_.script->function);
    const size_t begin = r.reply.out().size();
    const bool failed = lua_pcall(lua, 0, 1, 1) != 0;
    host.repeated_an_error_ = is_marked_error(lua);
    if (failed) {
      host.write_error(r, lua);
    } else if (!write_value(lua, r.reply, host.call_.resp >= 3)) {
      r.reply.out().truncate(begin);
      r.reply.error("ERR reached lua stack limit");
    }
    return 0;
  }
};

// The state comes last, as it allocates.
ScriptHost::ScriptHost(uint64_t all_bytes, uint64_t run_bytes)
    : limit_bytes_(all_bytes),
      run_bytes_(run_bytes),
      ceiling_bytes_(all_bytes),
      lua_(lua_newstate(allocate, this)) {
  if (lua_ == nullptr || lua_cpcall(lua_, ScriptSandbox::open, nullptr) != 0) std::abort();
  end_collection();
}

ScriptHost::~ScriptHost() { lua_close(lua_); }

const Script* ScriptHost::find(std::string_view sha) const {
  const StringMap<Script>& scripts = scripts_.part(sha);
  const auto it = scripts.find(sha);
  return it == scripts.end() ? nullptr : &it->second;
}

namespace {

bool read_flags(std::string_view list, ScriptFlags& flags, std::string& error) {
  while (!list.empty()) {
    const std::string_view flag = list.substr(0, list.find(','));
    list.remove_prefix(std::min(flag.size() + 1, list.size()));
    if (flag == "no-writes") {
      flags.no_writes = true;
    } else if (flag == "allow-oom") {
      flags.allow_oom = true;
    } else if (flag != "allow-stale" && flag != "no-cluster" && flag != "allow-cross-slot-keys") {
      return error = std::string("ERR Unexpected flag in script shebang: ").append(flag), false;
    }
  }
  return true;
}

// Reads "#!lua flags=a,b" from the first line and takes it off the body. False: `error` says why not.
bool read_shebang(std::string_view& body, ScriptFlags& flags, std::string& error) {
  if (!body.starts_with("#!")) return true;
  const size_t end = body.find('\n');
  if (end == std::string_view::npos) return error = "ERR Invalid script shebang", false;
  std::string_view line = body.substr(0, end);
  body.remove_prefix(end);  // the line's end stays, so that lines keep their numbers
  flags.shebang = true;
  const auto word = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::string_view first = line.substr(0, line.find(' '));
    line.remove_prefix(first.size());
    return first;
  };
  if (const std::string_view engine = word(); engine != "#!lua") {
    return error = std::string("ERR Unexpected engine in script shebang: ").append(engine), false;
  }
  for (std::string_view option = word(); !option.empty(); option = word()) {
    if (!option.starts_with("flags=")) {
      return error = std::string("ERR Unknown lua shebang option: ").append(option), false;
    }
    if (!read_flags(option.substr(6), flags, error)) return false;
  }
  return true;
}

}  // namespace

ScriptFlags ScriptHost::flags_of(std::string_view body) {
  ScriptFlags flags;
  std::string error;
  return read_shebang(body, flags, error) ? flags : ScriptFlags{};
}

const Script* ScriptHost::load(std::string_view sha, std::string_view body, std::string& error) {
  Script script;
  if (!read_shebang(body, script.flags, error)) return nullptr;
  if (body.starts_with(LUA_SIGNATURE[0])) {
    error = "ERR Error compiling script (new function): user_script:1: unexpected symbol near 'char(27)'";
    return nullptr;
  }
  ScriptSandbox::Source source{body, 0, &error};
  make_room();
  ceiling_bytes_ = limit_bytes_ - std::min(run_bytes_, limit_bytes_ / 4);  // those cached can always run
  const bool no_room = lua_cpcall(lua_, ScriptSandbox::compile, &source) != 0;
  ceiling_bytes_ = limit_bytes_;
  lua_settop(lua_, 0);
  tidy();
  if (no_room) {
    error =
        "ERR Error compiling script (new function): not enough memory: script-memory may be raised, or "
        "SCRIPT FLUSH give some back";
  }
  if (!error.empty()) return nullptr;
  script.function = source.function;
  return &scripts_.part(sha).emplace(sha, script).first->second;
}

void ScriptHost::flush() {
  for (const int page : pages_) luaL_unref(lua_, LUA_REGISTRYINDEX, page);
  pages_.clear();
  functions_ = 0;
  scripts_ = {};
  live_bytes_ = 0;  // as far as is known
  collecting_ = true;
}

// "<error> script: <sha>, on <source>:<line>." The error object is on top of the stack.
void ScriptHost::write_error(Request& r, lua_State* lua) {
  const auto field = [lua](const char* name) {
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    size_t size = 0;
    const char* bytes = lua_type(lua, -1) == LUA_TNIL ? nullptr : lua_tolstring(lua, -1, &size);
    std::string text(bytes == nullptr ? "" : bytes, size);
    lua_pop(lua, 1);
    return text;
  };
  std::string text;
  std::string place;
  if (lua_istable(lua, -1)) {
    text = field("err");
    if (text.empty()) text = "ERR unknown error";
    if (const std::string source = field("source"); !source.empty()) {
      place = ", on " + source + ":" + field("line") + ".";
    }
  } else {  // too little memory, or an error in an error's handler: Lua's own text
    const char* own = lua_tostring(lua, -1);
    text = std::string("ERR ") + (own == nullptr ? "unknown error" : own);
  }
  if (text.starts_with('-')) text.erase(0, 1);
  text.append(" script: ").append(call_.sha).append(place);
  r.reply.error(text);
}

void ScriptHost::check_time(lua_State* lua) {
  if (call_.killed.empty() && time.clock_us) {
    const int64_t now_us = time.clock_us();
    if (call_.began_us == 0) call_.began_us = call_.slice_us = now_us;  // most scripts never come here
    const int64_t allowed_us = call_.paused ? kSliceUs : time.busy_us;
    if (time.hard_us > 0 && !call_.wrote && now_us - call_.began_us >= time.hard_us) {
      call_.killed = "ERR Script killed: it ran for longer than script-hard-limit allows.";
    } else if (now_us - call_.slice_us >= allowed_us) {
      call_.paused = true;
      time.pause();
      call_.slice_us = time.clock_us();
    }
  }
  if (call_.killed.empty()) return;
  // From now on at every step, so that no pcall() of the script outlives it.
  lua_sethook(lua, look, LUA_MASKCOUNT | LUA_MASKLINE, 1);
  push_error(lua, call_.killed);
  lua_error(lua);
}

void ScriptHost::run(Request& r, const Script& script, std::string_view sha,
                     std::span<const std::string_view> keys, std::span<const std::string_view> args,
                     bool read_only) {
  const DbIndex number = r.s().db_name[r.c.db];
  const size_t begin = r.reply.out().size();
  call_ = Call{};
  repeated_an_error_ = false;
  call_.request = &r;
  call_.read_only = read_only || script.flags.no_writes;
  call_.sha = sha;
  call_.script = &script;
  call_.keys = keys;
  call_.args = args;
  make_room();
  lua_sethook(lua_, look, LUA_MASKCOUNT, kStepsBetweenLooks);
  if (lua_cpcall(lua_, ScriptSandbox::run, nullptr) != 0) {
    r.reply.out().truncate(begin);
    r.reply.error("ERR not enough memory for the script: script-run-memory or script-memory may be raised");
  }
  lua_settop(lua_, 0);
  end_limit();
  call_ = Call{};
  r.c.db = r.s().db_at[number];  // SELECT in a script is the script's own, SWAPDB is not
  tidy();
}

}  // namespace holdfast
