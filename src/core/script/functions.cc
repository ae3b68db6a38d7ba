// Libraries of functions, each with a Lua state of its own: how their code registers functions, and the
// calls of functions.
//
// While the code of a library runs, it sees as globals only a small table `redis` with register_function(),
// as in Redis 7.0. Later its functions see the globals of all scripts. For this the globals behind the
// environment of scripts are exchanged meanwhile.
#include <algorithm>
#include <lua.hpp>
#include <utility>

#include "core/base/config.h"
#include "core/base/parse.h"
#include "core/script/api.h"
#include "core/script/memory.h"
#include "core/script/script.h"
#include "core/script/value.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr std::string_view kNoRoomText =
    "not enough memory for the library: raise script-memory-limit, or delete libraries with FUNCTION "
    "DELETE";

std::string text_at(lua_State* lua, int index) {
  size_t size = 0;
  const char* bytes = lua_tolstring(lua, index, &size);
  return bytes == nullptr ? std::string() : std::string(bytes, size);
}

int raise(lua_State* lua, const std::string& text) {
  push_error(lua, "ERR " + text);
  return lua_error(lua);
}

// Reads a list of flags, which is on top. Returns false if one is unknown.
bool read_flags(lua_State* lua, uint8_t& flags) {
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    const bool end = lua_isnil(lua, -1);
    const std::string name = lua_type(lua, -1) == LUA_TSTRING ? text_at(lua, -1) : std::string();
    lua_pop(lua, 1);
    if (end) return true;
    host_of(lua).spend(lua);
    const auto* const found = std::ranges::find(kFunctionFlags, name);
    if (found == kFunctionFlags.end()) return false;
    flags |= static_cast<uint8_t>(1U << static_cast<unsigned>(found - kFunctionFlags.begin()));
  }
}

}  // namespace

// In a struct to be a friend of ScriptHost.
struct LibraryLoader {
  // What register_function() reads. The callback is on the stack of the call, at `callback`.
  struct Given {
    std::optional<std::string> name;
    std::optional<std::string> description;
    uint8_t flags = 0;
    int callback = 0;
  };

  // Reads the named argument whose key and value are on top. Returns an error, or an empty text.
  static std::string read_named(lua_State* lua, Given& given) {
    if (lua_isstring(lua, -2) == 0) {
      return "named argument key given to redis.register_function is not a string";
    }
    lua_pushvalue(lua, -2);  // a conversion of the key itself would confuse lua_next()
    const std::string name = text_at(lua, -1);
    lua_pop(lua, 1);
    const bool text = lua_isstring(lua, -1) != 0;
    if (equals_ignore_case(name, "function_name")) {
      if (!text) return "function_name argument given to redis.register_function must be a string";
      given.name = text_at(lua, -1);
    } else if (equals_ignore_case(name, "description")) {
      if (!text) return "description argument given to redis.register_function must be a string";
      given.description = text_at(lua, -1);
    } else if (equals_ignore_case(name, "callback")) {
      if (!lua_isfunction(lua, -1)) {
        return "callback argument given to redis.register_function must be a function";
      }
      lua_pushvalue(lua, -1);
      lua_replace(lua, given.callback = 2);
    } else if (equals_ignore_case(name, "flags")) {
      if (!lua_istable(lua, -1)) {
        return "flags argument to redis.register_function must be a table representing function flags";
      }
      if (!read_flags(lua, given.flags)) return "unknown flag given";
    } else {
      return "unknown argument given to redis.register_function";
    }
    return {};
  }

  static std::string read_table(lua_State* lua, Given& given) {
    lua_settop(lua, 2);  // 1: the table, 2: the place of the callback
    lua_pushnil(lua);
    while (lua_next(lua, 1) != 0) {
      if (std::string error = read_named(lua, given); !error.empty()) return error;
      lua_pop(lua, 1);
      host_of(lua).spend(lua);
    }
    if (!given.name) return "redis.register_function must get a function name argument";
    return given.callback == 0 ? "redis.register_function must get a callback argument" : "";
  }

  static std::string read(lua_State* lua, Given& given) {
    const int count = lua_gettop(lua);
    if (count < 1 || count > 2) return "wrong number of arguments to redis.register_function";
    if (count == 1 && lua_istable(lua, 1)) return read_table(lua, given);
    if (count == 1) {
      return "calling redis.register_function with a single argument is only applicable to Lua table "
             "(representing named arguments).";
    }
    if (lua_isstring(lua, 1) == 0) return "first argument to redis.register_function must be a string";
    if (!lua_isfunction(lua, 2)) return "second argument to redis.register_function must be a function";
    given.name = text_at(lua, 1);
    given.callback = 2;
    return {};
  }

  static int register_function(lua_State* lua) {
    ScriptHost& host = host_of(lua);
    Library* const library = host.call_.library;
    if (library == nullptr) {
      return raise(lua, "redis.register_function can only be called on FUNCTION LOAD command");
    }
    Given given;
    if (const std::string error = read(lua, given); !error.empty()) return raise(lua, error);
    if (!is_library_name(*given.name)) return raise(lua, std::string(kLibraryNameText));
    const auto same = [&](const LibraryFunction& f) { return equals_ignore_case(f.name, *given.name); };
    if (std::ranges::any_of(library->functions, same)) {
      return raise(lua, "Function already exists in the library");
    }
    if (library->functions.size() >= ScriptHost::kMostFunctions) return raise(lua, "too many functions");
    lua_pushvalue(lua, given.callback);
    const int place = luaL_ref(lua, LUA_REGISTRYINDEX);
    library->functions.push_back(
        {std::move(*given.name), std::move(given.description), given.flags, library->state.get(), place});
    return 0;
  }

  // Pushes the globals of a library that is being loaded.
  static void push_globals(lua_State* lua) {
    lua_createtable(lua, 0, 1);
    push_loading_table(lua);
    lua_pushcfunction(lua, register_function);
    lua_setfield(lua, -2, "register_function");
    forbid_missing(lua);
    wrap_table(lua);
    lua_setfield(lua, -2, "redis");
    forbid_missing(lua);
  }

  // Sets the globals behind the environment of scripts to the table on top, and replaces it by the former
  // one. After an error of the code the former one is not back, but then the state is closed.
  static void exchange_globals(lua_State* lua) {
    lua_getmetatable(lua, LUA_GLOBALSINDEX);
    lua_pushliteral(lua, "__index");
    lua_rawget(lua, -2);
    lua_insert(lua, -3);  // former, new, metatable
    lua_pushliteral(lua, "__index");
    lua_pushvalue(lua, -3);
    lua_rawset(lua, -3);
    lua_pop(lua, 2);
  }

  struct Source {
    std::string_view body;
    std::string* error;
  };

  static void describe_error(lua_State* lua, std::string& error) {
    error = "Error registering functions: ";
    if (lua_istable(lua, -1)) {
      lua_pushliteral(lua, "err");
      lua_rawget(lua, -2);
    }
    error += lua_isstring(lua, -1) != 0 ? text_at(lua, -1) : "ERR unknown error";
  }

  // Compiles the code and runs it.
  static int load(lua_State* lua) {
    const Source source = *static_cast<Source*>(lua_touserdata(lua, 1));
    ScriptHost& host = host_of(lua);
    push_error_handler(lua);
    if (const int status = compile_text(lua, source.body, "@user_function"); status != 0) {
      const bool killed = !host.call_.killed.empty();
      *source.error = status == LUA_ERRMEM ? std::string(kNoRoomText)
                      : killed             ? std::string(host.call_.killed.substr(4))  // without its code
                                           : "Error compiling function: " + text_at(lua, -1);
      return 0;
    }
    push_globals(lua);
    exchange_globals(lua);
    lua_insert(lua, 2);  // 1: the source, 2: the usual globals, 3: the handler, 4: the code
    if (lua_pcall(lua, 0, 0, 3) != 0) describe_error(lua, *source.error);
    lua_pushvalue(lua, 2);
    exchange_globals(lua);
    return 0;
  }
};

// Returns the limit of a library's state while its code runs.
uint64_t ScriptHost::load_ceiling(const Library& library, const Loading& loading) const {
  if (loading.stored) return UINT64_MAX;
  const LuaState& state = *library.state;
  const uint64_t room = library_room() + loading.leaving_bytes;
  const uint64_t all = state.used_bytes + rest_of(room, library_bytes() + loading.text_bytes);
  return std::min({rest_of(state.opened_bytes + run_reserve(), library.code.size()), all,
                   whole_room(state) + loading.leaving_bytes});
}

// Compiles and runs the code of a library. Returns null on a failure; then `error` says why.
std::unique_ptr<Library> ScriptHost::load_library(std::string_view code, Loading& loading,
                                                  std::string& error) {
  std::string_view body;
  auto name = read_library_name(code, body, error);
  if (!name) return nullptr;
  if (body.substr(1).starts_with(LUA_SIGNATURE[0])) {
    return error = "Error compiling function: user_function:2: unexpected symbol near 'char(27)'", nullptr;
  }
  auto library = std::make_unique<Library>();
  library->name = std::move(*name);
  library->code = code;
  library->state = std::make_unique<LuaState>(*this);
  LuaState& state = *library->state;
  if (!open(state)) return error = kNoRoomText, nullptr;
  make_room(state);
  loading.text_bytes += code.size();
  const Library* same = loading.replace && !loading.alone ? libraries_.find(library->name) : nullptr;
  if (same != nullptr) loading.leaving_bytes += same->state->used_bytes + same->code.size();
  LibraryLoader::Source source{body, &error};
  begin_call(state, load_ceiling(*library, loading));
  call_.library = library.get();
  if (lua_cpcall(state.lua, LibraryLoader::load, &source) != 0) error = kNoRoomText;
  end_call();
  set_collecting(state, true);  // the garbage of the compiler
  if (error.empty() && library->functions.empty()) error = "No functions registered";
  if (error.empty()) return library;
  release(*library);
  return nullptr;
}

// Begins to free the memory of a library.
void ScriptHost::release(Library& library) {
  LuaState& state = *library.state;
  set_collecting(state, false);
  std::vector<int> places;
  for (const LibraryFunction& f : library.functions) places.push_back(f.registered);
  unref(state, places);
  closing_.push_back(std::move(library.state));
}

// Loads libraries into `batch`. Returns an empty text, or the error.
std::string ScriptHost::load_batch(std::span<const std::string> codes, Loading loading,
                                   Libraries::Batch& batch) {
  std::string error;
  size_t functions = loading.alone ? 0 : libraries_.functions();
  for (const auto& [name, library] : libraries_.all()) {
    if (loading.alone) loading.leaving_bytes += library->state->used_bytes + library->code.size();
  }
  for (const std::string& code : codes) {
    auto library = load_library(code, loading, error);
    if (library == nullptr) return error;
    const auto same = [&](const auto& l) { return l->name == library->name; };
    const bool twice = std::ranges::any_of(batch, same);
    functions += library->functions.size();
    batch.push_back(std::move(library));
    if (twice) return "Library '" + batch.back()->name + "' already exists";
    if (functions > kMostFunctions) return "too many functions";
  }
  return libraries_.collision(batch, loading.replace, loading.alone);
}

std::string ScriptHost::load_libraries(std::span<const std::string> codes, bool replace, bool alone,
                                       bool stored) {
  Libraries::Batch batch;
  const Loading loading{.replace = replace, .alone = alone, .stored = stored};
  if (std::string error = load_batch(codes, loading, batch); !error.empty()) {
    for (const auto& library : batch) release(*library);
    return error;
  }
  while (alone && !libraries_.all().empty()) remove_library(libraries_.all().begin()->first);
  // First all of them: a function may move from one library to another.
  for (const auto& library : batch) remove_library(library->name);
  for (auto& library : batch) libraries_.add(std::move(library));
  return {};
}

bool ScriptHost::remove_library(std::string_view name) {
  const std::unique_ptr<Library> library = libraries_.remove(name);
  if (library != nullptr) release(*library);
  return library != nullptr;
}

ScriptFlags ScriptHost::flags_of(const LibraryFunction& function) {
  return {function.has(0), function.has(1), true};
}

void ScriptHost::run_function(Request& r, const LibraryFunction& function,
                              std::span<const std::string_view> keys,
                              std::span<const std::string_view> args, bool read_only) {
  Script script;
  script.state = function.state;
  script.registered = function.registered;
  script.flags = flags_of(function);
  call_.function = &function;
  run(r, script, function.name, keys, args, read_only);
}

}  // namespace holdfast
