// The cache of compiled scripts.
#include <algorithm>
#include <lua.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/script/api.h"
#include "core/script/memory.h"
#include "core/script/script.h"
#include "core/script/value.h"

namespace holdfast {

namespace {

constexpr const char* kNoRoom =
    "ERR Error compiling script (new function): not enough memory: raise script-memory-limit, or free "
    "memory with SCRIPT FLUSH";

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

// Reads "#!lua flags=a,b" in the first line and removes it from the body. Returns false if it is wrong;
// then `error` says why.
bool read_shebang(std::string_view& body, ScriptFlags& flags, std::string& error) {
  if (!body.starts_with("#!")) return true;
  const size_t end = body.find('\n');
  if (end == std::string_view::npos) return error = "ERR Invalid script shebang", false;
  std::string text;
  std::vector<std::string_view> words;
  if (!split_quoted_words(body.substr(0, end), text, words) || words.empty())
    return error = "ERR Invalid script shebang", false;
  body.remove_prefix(end);  // the newline stays, so that line numbers do not change
  flags.shebang = true;
  if (words[0] != "#!lua") {
    return error = std::string("ERR Unexpected engine in script shebang: ").append(words[0]), false;
  }
  for (const std::string_view option : std::span(words).subspan(1)) {
    if (!option.starts_with("flags=")) {
      return error = std::string("ERR Unknown lua shebang option: ").append(option), false;
    }
    if (!read_flags(option.substr(6), flags, error)) return false;
  }
  return true;
}

int slot_of(size_t place) { return static_cast<int>(place % ScriptHost::kPageScripts) + 1; }

}  // namespace

int compile_text(lua_State* lua, std::string_view text, const char* name) {
  struct Source {
    ScriptHost& host;
    std::string_view rest;
  } source{host_of(lua), text};
  // The compiler calls this when it needs more text. It is the only place where compilation can pause.
  const auto next = [](lua_State* state, void* data, size_t* size) -> const char* {
    constexpr size_t kPieceBytes = 256;
    constexpr int64_t kPieceSteps = 64;
    auto& from = *static_cast<Source*>(data);
    if (from.rest.empty()) return nullptr;
    from.host.spend(state, kPieceSteps);
    const std::string_view piece = from.rest.substr(0, kPieceBytes);
    from.rest.remove_prefix(piece.size());
    *size = piece.size();
    return piece.data();
  };
  lua_pushstring(lua,
                 name);  // protects the name from collection during compilation, as Lua itself does not
  const int status = lua_load(lua, next, &source, name);
  lua_remove(lua, -2);
  return status;
}

// Functions that run in protected mode, because memory may run out in them.
struct ScriptCompiler {
  struct Source {
    std::string_view body;
    size_t function;
    std::string* error;
  };

  static int compile(lua_State* lua) {
    auto& source = *static_cast<Source*>(lua_touserdata(lua, 1));
    if (const int status = compile_text(lua, source.body, "@user_script"); status != 0) {
      const ScriptHost& host = host_of(lua);
      if (status == LUA_ERRMEM) {
        *source.error = kNoRoom;
      } else if (!host.call_.killed.empty()) {
        *source.error = host.call_.killed;
      } else {
        *source.error = std::string("ERR Error compiling script (new function): ") + lua_tostring(lua, -1);
      }
      return 0;
    }
    source.function = keep(lua, host_of(lua));
    return 0;
  }

  // Moves the function on top of the stack into the pages. Returns its place.
  static size_t keep(lua_State* lua, ScriptHost& host) {
    const bool reused = !host.free_places_.empty();
    const size_t place = reused ? host.free_places_.back() : host.functions_;
    if (place / ScriptHost::kPageScripts == host.pages_.size()) {
      lua_createtable(lua, static_cast<int>(ScriptHost::kPageScripts), 0);
      host.pages_.push_back(luaL_ref(lua, LUA_REGISTRYINDEX));
    }
    lua_rawgeti(lua, LUA_REGISTRYINDEX, host.pages_[place / ScriptHost::kPageScripts]);
    lua_insert(lua, -2);
    lua_rawseti(lua, -2, slot_of(place));
    reused ? host.free_places_.pop_back() : void(++host.functions_);
    return place;
  }
};

void ScriptHost::push_function(lua_State* lua, size_t place) const {
  lua_rawgeti(lua, LUA_REGISTRYINDEX, pages_[place / kPageScripts]);
  lua_rawgeti(lua, -1, slot_of(place));
  lua_remove(lua, -2);
}

const Script* ScriptHost::find(std::string_view sha) const {
  const size_t hash = StringHash()(sha);
  const StringMap<Script>& scripts = scripts_.part(hash);
  const auto it = scripts.find(sha, hash);
  return it == scripts.end() ? nullptr : &it->second;
}

const Script* ScriptHost::find_body(std::string_view body, ScriptName& name) {
  KnownBody& known = known_bodies_.of(body);
  name = known.name;
  if (known.cache_state != cache_state_) {
    known.script = find({name.data(), name.size()});
    known.cache_state = cache_state_;
  }
  return known.script;
}

ScriptFlags ScriptHost::flags_of(std::string_view body) {
  ScriptFlags flags;
  std::string error;
  return read_shebang(body, flags, error) ? flags : ScriptFlags{};
}

// Compiles the body. On a failure `error` says why. The limit leaves enough memory to run any cached
// script.
void ScriptHost::compile(std::string_view body, Script& script, std::string& error) {
  ScriptCompiler::Source source{body, 0, &error};
  LuaState& state = scripts_lua_;
  make_room(state);
  begin_call(state, std::min(scripts_room() - run_reserve(), whole_room(state)));
  if (lua_cpcall(state.lua, ScriptCompiler::compile, &source) != 0) error = kNoRoom;
  const uint64_t grown = rest_of(state.used_bytes, call_.used_before);
  end_call();
  script.function = source.function;
  // The difference may be too small, because garbage may have been collected meanwhile. A function takes
  // more than twice the size of its text.
  constexpr uint64_t kLeastBytes = 512;
  script.bytes = std::max(grown, 2 * body.size() + kLeastBytes);
}

const Script* ScriptHost::load(std::string_view sha, std::string_view body, bool keep, std::string& error) {
  Script script;
  if (!read_shebang(body, script.flags, error)) return nullptr;
  if (body.starts_with(LUA_SIGNATURE[0])) {
    error = "ERR Error compiling script (new function): user_script:1: unexpected symbol near 'char(27)'";
    return nullptr;
  }
  if (!open(scripts_lua_)) return error = kNoRoom, nullptr;
  if (!keep && by_use_.size() >= kEvictable) evict(1);
  compile(body, script, error);
  while (error == kNoRoom && !by_use_.empty()) {
    evict((by_use_.size() + 1) / 2);
    collect(scripts_lua_);
    error.clear();
    compile(body, script, error);
  }
  tidy(scripts_lua_);
  if (!error.empty()) return nullptr;
  ++cache_state_;
  Script& added = scripts_.part(sha).emplace(sha, script).first->second;
  added.evictable = true;
  added.place = by_use_.insert(by_use_.end(), std::string(sha));
  return keep && !keep_cached(sha, error) ? nullptr : &added;
}

bool ScriptHost::keep_cached(std::string_view sha, std::string& error) {
  StringMap<Script>& scripts = scripts_.part(sha);
  const auto it = scripts.find(sha);
  if (it == scripts.end() || !it->second.evictable) return true;
  const auto has_room = [&] {
    return kept_bytes_ + it->second.bytes + library_bytes() <= limit_bytes_ / 2;
  };
  if (!has_room()) collect_libraries();
  if (!has_room()) return error = kNoRoom, false;
  kept_bytes_ += it->second.bytes;
  it->second.evictable = false;
  by_use_.erase(it->second.place);
  return true;
}

// Allocates nothing, as the places in the pages exist.
void ScriptHost::evict(size_t count) {
  LuaState& state = scripts_lua_;
  ++cache_state_;
  for (; count > 0; --count) {
    const std::string sha = std::move(by_use_.front());
    by_use_.pop_front();
    const auto it = scripts_.part(sha).find(sha);
    const Script& script = it->second;
    lua_rawgeti(state.lua, LUA_REGISTRYINDEX, pages_[script.function / kPageScripts]);
    lua_pushnil(state.lua);
    lua_rawseti(state.lua, -2, slot_of(script.function));
    lua_pop(state.lua, 1);
    free_places_.push_back(script.function);
    state.live_bytes = rest_of(state.live_bytes, script.bytes);
    ++evicted_;
    scripts_.part(sha).erase(it);
  }
}

void ScriptHost::flush() {
  if (!pages_.empty()) unref(scripts_lua_, pages_);
  pages_.clear();
  functions_ = 0;
  free_places_.clear();
  scripts_ = {};
  known_bodies_.clear();
  ++cache_state_;
  by_use_.clear();
  kept_bytes_ = 0;
  scripts_lua_.live_bytes = 0;  // unknown until the next collection
  set_collecting(scripts_lua_, scripts_lua_.lua != nullptr);
}

}  // namespace holdfast
