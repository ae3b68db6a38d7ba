// Scripts: Lua 5.1 in a sandbox, and what they share with the engine. Owns the Lua state and the cache of
// compiled scripts. No Lua header is needed to use it. Split over script.cc (state, cache, runs),
// script_sandbox.cc (what of Lua there is), script_api.cc (redis.call() and so on), script_value.cc (values
// to and from replies), script_memory.cc (limits, garbage).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/block_pool.h"
#include "core/buffer.h"
#include "core/hash.h"

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
  ScriptFlags flags;
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
  // Compiles and caches a script. Null: `error` says why, with its code.
  const Script* load(std::string_view sha, std::string_view body, std::string& error);
  // What a script says of itself, without compiling it; where it says it wrongly: nothing.
  static ScriptFlags flags_of(std::string_view body);
  void flush();

  // Runs a cached script for a request and writes its reply. `read_only`: EVAL_RO.
  void run(Request& r, const Script& script, std::string_view sha, std::span<const std::string_view> keys,
           std::span<const std::string_view> args, bool read_only);

  // Of the script that runs now:

  bool running() const { return call_.request != nullptr; }
  bool has_written() const { return call_.wrote; }
  // Whether a run has ended, since last asked, with an error that was counted when a command in it gave it.
  bool take_repeated_error() { return std::exchange(repeated_an_error_, false); }
  // It ends as soon as it goes on.
  void kill(std::string_view why) { call_.killed = why; }

  // For Lua's hook: gives way where the script has had its time, and ends it where it is to end.
  void check_time(lua_State* lua);

  ScriptTime time;
  std::function<void(int level, std::string_view text)> log;

 private:
  friend struct ScriptApi;      // the functions that Lua calls
  friend struct ScriptSandbox;  // what runs protected

  // What belongs to one run.
  struct Call {
    Request* request = nullptr;
    bool read_only = false;
    bool wrote = false;
    bool paused = false;      // it has given way at least once
    bool hurries = false;     // it takes much, or large blocks
    int resp = 2;             // redis.setresp()
    int64_t began_us = 0;     // when the clock was first looked at; 0: not yet
    int64_t slice_us = 0;     // when it last went on
    std::string_view killed;  // why it has to end
    std::string_view sha;
    const Script* script = nullptr;
    std::span<const std::string_view> keys, args;
  };

  static void* allocate(void* host, void* block, size_t old_size, size_t new_size);
  void* reallocate(void* block, size_t old_size, size_t new_size);
  void write_error(Request& r, lua_State* lua);
  void begin_limit();
  void end_limit();
  void hurry();
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
  uint64_t random_ = 0x1234ABCD330E;  // the state of math.random()
  int environment_ = 0;               // registry places: the global table of scripts,
  int globals_ = 0;                   // what is behind it,
  int handler_ = 0;                   // and the function that completes errors
  // Registry places of tables that hold the compiled scripts, kPageScripts each: to mark a table, or to let
  // it grow, is one moment in Lua.
  static constexpr size_t kPageScripts = 128;
  std::vector<int> pages_;
  size_t functions_ = 0;  // in them
  InParts<StringMap<Script>> scripts_;
  bool repeated_an_error_ = false;
  Call call_;
  Buffer scratch_;  // the reply of a redis.call()
  std::vector<std::string_view> argv_;
  std::vector<std::string> numbers_;  // arguments of redis.call() that were numbers
};

}  // namespace holdfast
