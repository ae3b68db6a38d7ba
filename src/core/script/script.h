// Scripts: Lua 5.1 in a sandbox, and what they share with the engine. Owns the Lua state and the cache of
// compiled scripts. No Lua header is needed to use it. Split over script.cc (state, runs), cache.cc
// (compiled scripts), time_limit.cc (the clock), memory.cc (limits, garbage), sandbox.cc
// (what of Lua there is), api.cc (redis.call() and so on), value.cc (values to and from
// replies), and one file for each library.
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

struct lua_State;

namespace holdfast {

struct Command;
struct Request;

// What a script says of itself in its first line ("#!lua flags=no-writes").
struct ScriptFlags {
  bool no_writes = false;
  bool allow_oom = false;
  bool shebang = false;
};

struct Script {
  size_t function = 0;  // its place in ScriptHost::pages_
  uint64_t bytes = 0;   // what it took to compile
  ScriptFlags flags;
  bool evictable = false;                  // known by EVAL only
  std::list<std::string>::iterator place;  // in the order of use, where it is evictable
};

// How a script that takes long is dealt with; the engine's part of it.
struct ScriptTime {
  std::function<int64_t()> clock_us;  // null: no time passes
  std::function<void()> pause;        // gives way to the others; returns when the script goes on
  int64_t busy_us = 0;                // after which it first gives way
  int64_t hard_us = 0;                // after which it ends unless it has written; 0: never
};

class ScriptHost {
 public:
  static constexpr size_t kShaDigits = 40;
  static constexpr size_t kPageScripts = 128;  // of a table of compiled scripts, see pages_

  // `all_bytes`: the most that all scripts and what they make may take. `run_bytes`: the most that one run
  // may take beside its KEYS and ARGV. Both may be changed while none runs.
  ScriptHost(uint64_t all_bytes, uint64_t run_bytes);
  ~ScriptHost();
  ScriptHost(const ScriptHost&) = delete;
  ScriptHost& operator=(const ScriptHost&) = delete;

  size_t cached() const { return scripts_.size(); }
  uint64_t memory_bytes() const { return used_bytes_; }
  uint64_t run_limit() const { return std::min(run_bytes_, limit_bytes_); }
  void set_memory_limits(uint64_t all_bytes, uint64_t run_bytes);

  // Whether there is garbage to collect, by steps between requests; none while a script runs.
  bool collecting() const { return collecting_; }
  void collect_step();

  // `sha` in lower case. Null: not cached.
  const Script* find(std::string_view sha) const;
  // Compiles a script and caches it. EVAL's scripts may be evicted: beyond kEvictable of them, and where
  // memory is short, the one that has not been used for longest goes. `keep`: SCRIPT LOAD's scripts stay
  // until they are flushed, and take at most half of the memory of scripts. Null: `error` says why, with
  // its code. Compiling takes time, and may give way like a run.
  const Script* load(std::string_view sha, std::string_view body, bool keep, std::string& error);
  // Keeps a cached script as SCRIPT LOAD does. False: `error` says why not.
  bool keep_cached(std::string_view sha, std::string& error);
  // How many scripts have been evicted since the start.
  uint64_t evicted() const { return evicted_; }
  static constexpr size_t kEvictable = 500;
  // What a script says of itself, without compiling it; where it says it wrongly: nothing.
  static ScriptFlags flags_of(std::string_view body);
  void flush();

  // Runs a cached script for a request and writes its reply. `read_only`: EVAL_RO.
  void run(Request& r, const Script& script, std::string_view sha, std::span<const std::string_view> keys,
           std::span<const std::string_view> args, bool read_only);

  // Of the script that runs, or is compiled, now:

  bool running() const { return call_.active; }
  bool has_written() const { return call_.wrote; }
  // Whether a run has ended, since last asked, with an error that was counted when a command in it gave it.
  bool take_repeated_error() { return std::exchange(repeated_an_error_, false); }
  // It ends as soon as it goes on.
  void kill(std::string_view why) { call_.killed = why; }

  // Counts work that C does for a script, in steps of about 10 ns; Lua counts its own instructions. Every
  // loop in C whose length a script chooses calls it, as Lua's hook is not called from there. After some
  // steps it looks at the clock. Gives way where the script has had its time; raises where it has to end.
  void spend(lua_State* lua, int64_t steps = 1) {
    if ((steps_left_ -= steps) <= 0) look_at_clock(lua);
  }
  // The same for Lua's hook.
  void look_at_clock(lua_State* lua);
  // The coroutine that runs from now on. Returns the one that ran so far.
  lua_State* switch_to(lua_State* coroutine);
  // The most that a reply of the running script may take: what a run may take, beside its arguments.
  uint64_t reply_limit() const { return run_limit() + call_.argument_bytes; }

  JsonSettings& json_settings() { return json_; }

  ScriptTime time;
  std::function<void(int level, std::string_view text)> log;

 private:
  friend struct ScriptApi;       // the functions that Lua calls
  friend struct ScriptSandbox;   // what runs protected
  friend struct ScriptCompiler;  // the same

  // What belongs to one run.
  struct Call {
    bool active = false;
    Request* request = nullptr;  // null: it is being compiled
    bool read_only = false;
    bool wrote = false;
    bool paused = false;    // it has given way at least once
    bool hurries = false;   // it takes much, or large blocks
    int resp = 2;           // redis.setresp()
    int64_t began_us = 0;   // when the clock was first looked at; 0: not yet
    int64_t slice_us = 0;   // when it last went on
    int64_t looked_us = 0;  // when the clock was last looked at
    uint64_t argument_bytes = 0;
    std::string_view killed;  // why it has to end
    std::string_view sha;
    const Script* script = nullptr;
    std::span<const std::string_view> keys, args;
  };

  static void* allocate(void* host, void* block, size_t old_size, size_t new_size);
  void* reallocate(void* block, size_t old_size, size_t new_size);
  void write_error(Request& r, lua_State* lua);
  void begin_call();
  void end_call();
  void set_steps(lua_State* lua, int64_t steps);
  void look_soon();
  void give_way_in_time();
  void compile(std::string_view body, Script& script, std::string& error);
  void push_function(lua_State* lua, size_t place) const;
  void evict(size_t count);
  void begin_limit();
  void end_limit();
  void hurry(size_t block_bytes);
  void set_pace();
  void end_collection();
  void make_room();
  void tidy();

  BlockPool blocks_;
  uint64_t used_bytes_ = 0;
  uint64_t limit_bytes_;
  uint64_t run_bytes_;
  uint64_t ceiling_bytes_;             // the limit of the moment
  uint64_t hurry_bytes_ = UINT64_MAX;  // beyond which garbage is collected in earnest
  uint64_t live_bytes_ = 0;            // what was left when garbage was last collected
  bool collecting_ = false;            // there is more garbage than there should be
  int work_ = 0;                       // of Lua's collector, in percent of what is allocated
  lua_State* lua_;
  lua_State* current_ = nullptr;      // the coroutine that runs
  int64_t steps_ = 0;                 // after how many the clock is looked at next
  int64_t steps_left_ = 0;            // of them, for what C does
  uint64_t random_ = 0x1234ABCD330E;  // the state of math.random()
  int environment_ = 0;               // registry places: the global table of scripts,
  int globals_ = 0;                   // what is behind it,
  int handler_ = 0;                   // and the function that completes errors
  // Registry places of tables that hold the compiled scripts, kPageScripts each: to mark a table, or to let
  // it grow, is one moment in Lua.
  std::vector<int> pages_;
  size_t functions_ = 0;             // places in them that have been used
  std::vector<size_t> free_places_;  // of evicted scripts
  InParts<StringMap<Script>> scripts_;
  std::list<std::string> by_use_;  // the names of those that can be evicted; the one used last comes last
  uint64_t kept_bytes_ = 0;        // what SCRIPT LOAD's scripts take
  uint64_t evicted_ = 0;
  bool repeated_an_error_ = false;
  JsonSettings json_;
  Call call_;
  Buffer scratch_;  // the reply of a redis.call()
  std::vector<std::string_view> argv_;
  std::vector<std::string> numbers_;  // arguments of redis.call() that were numbers
};

}  // namespace holdfast
