// Scripts: Lua 5.1 in a sandbox, and its interface to the engine. Owns the Lua states, one for all scripts,
// which the first script makes, and one for each library of functions, and the cache of compiled scripts.
// Users of this header need no Lua header. Split over script.cc (states, runs), cache.cc (compiled
// scripts), functions.cc (libraries), time_limit.cc (the clock), memory.cc (limits), garbage.cc
// (collection), sandbox.cc (the available parts of Lua), api.cc (redis.call() and so on), value.cc
// (conversion of values and replies), and one file for each library of Lua.
//
// A function of Lua's interface that may allocate or raise an error is called in protected mode only: while
// a script runs, inside lua_pcall() in its limits; otherwise by protect(), without limits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/block_pool.h"
#include "core/base/buffer.h"
#include "core/base/hash.h"
#include "core/script/json.h"
#include "core/script/known_bodies.h"
#include "core/script/library.h"
#include "core/script/lua_state.h"

struct lua_State;

namespace holdfast {

struct Command;
struct Request;

// The flags that a script declares in its first line ("#!lua flags=no-writes").
struct ScriptFlags {
  bool no_writes = false;
  bool allow_oom = false;
  bool shebang = false;
};

struct Script {
  size_t function = 0;        // its place in ScriptHost::pages_
  LuaState* state = nullptr;  // a function of a library: the library's state, and the function's place in
  int registered = 0;         // its registry, instead of that
  uint64_t bytes = 0;         // memory of the compiled function
  ScriptFlags flags;
  bool evictable = false;                  // loaded by EVAL only
  std::list<std::string>::iterator place;  // position in by_use_, if evictable
};

// The time limits of scripts and the engine's functions for long ones.
struct ScriptTime {
  std::function<int64_t()> clock_us;  // null: time stands still
  std::function<void()> pause;  // lets the engine serve other clients; returns when the script continues
  int64_t busy_us = 0;          // run time before the first pause
  int64_t hard_us = 0;          // run time after which a script that has not written ends; 0: unlimited
};

// For tests: `count` allocations of Lua fail, after `after` more that succeed.
struct MemoryFault {
  int64_t after = INT64_MAX;
  int64_t count = 1;
};

// The errors of other commands while a script or a function has exceeded its time.
inline constexpr std::string_view kBusyScript =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
inline constexpr std::string_view kBusyFunction =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

class ScriptHost {
 public:
  static constexpr size_t kPageScripts = 128;  // scripts in one table: see pages_

  // `all_bytes`: memory limit of all scripts, libraries and their values. `run_bytes`: memory limit of one
  // run, in addition to its KEYS and ARGV, and of one library with its runs. Both can be changed while no
  // script runs.
  ScriptHost(uint64_t all_bytes, uint64_t run_bytes);
  ~ScriptHost() = default;
  ScriptHost(const ScriptHost&) = delete;
  ScriptHost& operator=(const ScriptHost&) = delete;

  size_t cached() const { return scripts_.size(); }
  uint64_t memory_bytes() const { return used_bytes_ + libraries_.code_bytes(); }
  // Memory of the libraries: code, functions, and what the functions keep.
  uint64_t library_bytes() const { return memory_bytes() - scripts_lua_.used_bytes; }
  uint64_t run_limit() const { return std::min(run_bytes_, limit_bytes_); }
  void set_memory_limits(uint64_t all_bytes, uint64_t run_bytes);

  // Whether there is garbage to collect. collect_step() collects a part; call it between requests, and not
  // while a script runs.
  bool collecting() const { return collecting_states_ > 0 || !closing_.empty(); }
  void collect_step();
  // For tests: asserts that the cache, the libraries and the Lua states agree. No script may run.
  void check_invariants() const;

  // Returns a cached script. Returns null if it is not cached. `sha` is in lower case.
  const Script* find(std::string_view sha) const;
  // Returns the cached script with that body, or null, and writes its name.
  const Script* find_body(std::string_view body, ScriptName& name);
  // Compiles and caches a script. EVAL's scripts may be evicted: beyond kEvictable scripts, or if memory is
  // short, the least recently used one. `keep`: SCRIPT LOAD's scripts stay until a flush, and take at most
  // half of the memory of scripts. Returns null on a failure; then `error` says why, with its code.
  // Compilation takes time, and may pause like a run.
  const Script* load(std::string_view sha, std::string_view body, bool keep, std::string& error);
  // Makes a cached script permanent, as SCRIPT LOAD does. Returns false on a failure; then `error` says
  // why.
  bool keep_cached(std::string_view sha, std::string& error);
  // Returns the number of scripts evicted since the start.
  uint64_t evicted() const { return evicted_; }
  static constexpr size_t kEvictable = 500;
  // Returns the flags that a script declares, without compiling it. Returns no flags if the declaration is
  // wrong.
  static ScriptFlags flags_of(std::string_view body);
  void flush();

  // Runs a cached script for a request and writes its reply. `read_only`: EVAL_RO.
  void run(Request& r, const Script& script, std::string_view sha, std::span<const std::string_view> keys,
           std::span<const std::string_view> args, bool read_only);

  // Libraries of functions: functions.cc.

  const Libraries& libraries() const { return libraries_; }
  static constexpr size_t kMostFunctions = 10000;  // in all libraries
  static constexpr int64_t kLoadUs = 500000;       // run time of a library's code, as in Redis
  // Compiles libraries, and runs their code, which registers their functions. Adds all of them or none.
  // `replace`: removes those with the same names. `alone`: removes all others. `stored`: they were loaded
  // before, so that the limits of memory do not count. Returns an empty text, or the error without its
  // code. Takes time, and may pause like a run.
  std::string load_libraries(std::span<const std::string> codes, bool replace, bool alone,
                             bool stored = false);
  bool remove_library(std::string_view name);
  // Runs a function for a request and writes its reply. `read_only`: FCALL_RO.
  void run_function(Request& r, const LibraryFunction& function, std::span<const std::string_view> keys,
                    std::span<const std::string_view> args, bool read_only);
  static ScriptFlags flags_of(const LibraryFunction& function);

  // About the script that runs, or is being compiled, now:

  bool running() const { return call_.active; }
  bool has_written() const { return call_.wrote; }
  // The function that runs, its request, and how long it has run. Null if none or another script runs.
  const LibraryFunction* running_function() const { return call_.function; }
  const Request* running_request() const { return call_.request; }
  int64_t run_us() const {
    return time.clock_us && call_.began_us != 0 ? time.clock_us() - call_.began_us : 0;
  }
  // Whether a run ended, since the last call, with an error that was already counted when a command in it
  // returned the error.
  bool take_repeated_error() { return std::exchange(repeated_an_error_, false); }
  // Ends the script as soon as it continues.
  void kill(std::string_view why) { call_.killed = why; }

  // Counts work of C code for a script, in steps of about 10 ns; Lua counts its own instructions. Lua's
  // hook does not run in C code, so every C loop with a length that a script chooses calls this function.
  // After some steps it checks the clock. It pauses a script that has used its time slice, and raises an
  // error to end a script.
  void spend(lua_State* lua, int64_t steps = 1) {
    if ((steps_left_ -= steps) <= 0) look_at_clock(lua);
  }
  // Checks the clock, as spend() does. Lua's hook calls it.
  void look_at_clock(lua_State* lua);
  // Sets the running coroutine. Returns the previous one.
  lua_State* switch_to(lua_State* coroutine);
  // Returns the size limit of the running script's reply: the memory limit of a run, plus the size of its
  // arguments.
  uint64_t reply_limit() const { return run_limit() + call_.argument_bytes; }

  JsonSettings& json_settings() { return json_; }

  ScriptTime time;
  // Runs a request of a script, as run_command() of the engine does.
  void (*run_request)(Request&) = nullptr;
  std::function<void(int level, std::string_view text)> log;
  MemoryFault memory_fault;

 private:
  friend struct ScriptApi;       // the functions that Lua calls: api.cc
  friend struct ScriptSandbox;   // functions in protected mode: script.cc
  friend struct ScriptCompiler;  // the same: cache.cc
  friend struct LibraryLoader;   // the same: functions.cc

  // The state of one run.
  struct Call {
    bool active = false;
    Request* request = nullptr;  // null during compilation
    bool read_only = false;
    bool wrote = false;
    bool paused = false;           // it has paused at least once
    bool collects_faster = false;  // it allocates much memory, or large blocks
    int resp = 2;                  // redis.setresp()
    int64_t began_us = 0;          // time of the first check of the clock; 0: none yet
    int64_t slice_us = 0;          // begin of the present time slice
    int64_t looked_us = 0;         // time of the last check of the clock
    uint64_t argument_bytes = 0;
    uint64_t used_before = 0;  // memory of the state before the call
    std::string_view killed;   // why it must end; empty: it may run
    std::string_view sha;
    const Script* script = nullptr;
    const LibraryFunction* function = nullptr;  // FCALL's
    Library* library = nullptr;                 // the library whose code runs
    std::span<const std::string_view> keys, args;
  };

  // One load_libraries().
  struct Loading {
    bool replace = false;
    bool alone = false;
    bool stored = false;
    uint64_t leaving_bytes = 0;  // memory of the libraries that will be removed, as far as known
    uint64_t text_bytes = 0;     // the codes so far
  };

  static void* allocate(void* state, void* block, size_t old_size, size_t new_size);
  void* reallocate(void* block, size_t old_size, size_t new_size);
  bool may_grow(const LuaState& state, size_t bytes);
  void write_error(Request& r, lua_State* lua);
  bool open(LuaState& state);
  static bool protect(LuaState& state, int (*function)(lua_State*), void* data);
  static void unref(LuaState& state, std::span<const int> places);
  std::unique_ptr<Library> load_library(std::string_view code, Loading& loading, std::string& error);
  uint64_t load_ceiling(const Library& library, const Loading& loading) const;
  std::string load_batch(std::span<const std::string> codes, Loading loading, Libraries::Batch& batch);
  void release(Library& library);
  void begin_call(LuaState& state, uint64_t ceiling_bytes);
  void end_call();
  void set_steps(lua_State* lua, int64_t steps);
  void look_soon();
  void yield_in_time();
  void compile(std::string_view body, Script& script, std::string& error);
  void push_function(lua_State* lua, size_t place) const;
  void evict(size_t count);

  // The division of the memory of scripts: see memory.cc.
  uint64_t run_reserve() const { return std::min(run_bytes_, limit_bytes_ / 4); }
  uint64_t library_room() const;
  uint64_t scripts_room() const { return limit_bytes_ - library_room(); }
  uint64_t limit_of(const LuaState& state) const;
  uint64_t whole_room(const LuaState& state) const;
  void begin_limit();
  void end_limit();

  void collect_faster(LuaState& state, size_t block_bytes);
  void set_pace(LuaState& state);
  void set_collecting(LuaState& state, bool collecting);
  void end_collection(LuaState& state);
  bool collect_part(LuaState& state);
  void collect(LuaState& state);
  void collect_libraries();
  void make_room(LuaState& state);
  void tidy(LuaState& state);

  BlockPool blocks_;
  uint64_t used_bytes_ = 0;  // by all states
  uint64_t limit_bytes_;
  uint64_t run_bytes_;
  size_t collecting_states_ = 0;
  LuaState scripts_lua_{*this};                     // the state of all scripts
  std::vector<std::unique_ptr<LuaState>> closing_;  // of removed libraries, whose memory is freed in steps
  LuaState* state_ = nullptr;                       // the state of the present call
  lua_State* current_ = nullptr;                    // the running coroutine
  int64_t steps_ = 0;                               // steps between two checks of the clock
  int64_t steps_left_ = 0;                          // steps left for C code until the next check
  uint64_t random_ = 0x1234ABCD330E;                // the state of math.random()
  // Registry places of the tables of compiled scripts, kPageScripts in each. Small tables, because Lua
  // marks or grows a table in one uninterrupted operation.
  std::vector<int> pages_;
  size_t functions_ = 0;             // places in them used so far
  std::vector<size_t> free_places_;  // free places of evicted scripts
  InParts<StringMap<Script>> scripts_;
  KnownBodies known_bodies_;
  uint64_t cache_state_ = 1;       // changes when a script is added or removed, which may move all others
  std::list<std::string> by_use_;  // names of evictable scripts, the most recently used one last
  uint64_t kept_bytes_ = 0;        // memory of SCRIPT LOAD's scripts
  Libraries libraries_;
  uint64_t evicted_ = 0;
  bool repeated_an_error_ = false;
  JsonSettings json_;
  Call call_;
  Buffer scratch_;  // the reply of a redis.call()
  std::vector<std::string_view> argv_;
  std::vector<std::string> numbers_;  // number arguments of redis.call(), as text
};

}  // namespace holdfast
