// EVAL, EVALSHA, FCALL, their read-only forms, and SCRIPT.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/sha1.h"
#include "core/command/handlers.h"
#include "core/engine/requests.h"
#include "core/engine/resumable_request.h"
#include "core/handlers/script_access.h"
#include "core/script/demands.h"
#include "core/script/script.h"
#include "core/state/memory_use.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr std::string_view kNoScriptText = "NOSCRIPT No matching script. Please use EVAL.";

// Reads the number of keys among the arguments. Writes an error and returns nullopt if it is invalid.
std::optional<size_t> read_key_count(Request& r) {
  const auto count = parse_int(r.arg(2));
  if (!count) return reply_not_an_integer(r), std::nullopt;
  if (*count > static_cast<int64_t>(r.argc()) - 3) {
    return r.reply.error("ERR Number of keys can't be greater than number of args"), std::nullopt;
  }
  if (*count < 0) return r.reply.error("ERR Number of keys can't be negative"), std::nullopt;
  return static_cast<size_t>(*count);
}

}  // namespace

void adopt_script_limits(Request& r) {
  ScriptHost& host = r.s().scripts;
  const Limits& limits = r.s().config.limits;
  host.time.busy_us = limits.busy_reply_ms * 1000;
  host.time.hard_us = limits.script_hard_ms * 1000;
  host.set_memory_limits(limits.script_memory_bytes, limits.script_run_bytes);
}

namespace {

// Whether a script with these flags may run. Writes an error if not.
bool may_run(Request& r, const ScriptFlags& flags, bool read_only) {
  if (read_only && flags.shebang && !flags.no_writes) {
    r.reply.error("ERR Can not execute a script with write flag using *_ro command.");
    return false;
  }
  // Such a script is rejected before it gets here, unless it was loaded after MULTI.
  const bool checks_memory = flags.shebang && !flags.allow_oom && !flags.no_writes;
  if (checks_memory && r.s().memory.over_limit) {
    r.reply.error(
        "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'");
    return false;
  }
  return true;
}

void run_script(Request& r, const Script& script, std::string_view sha, size_t keys, bool read_only) {
  if (!may_run(r, script.flags, read_only)) return;
  ScriptHost& host = r.s().scripts;
  adopt_script_limits(r);
  host.run(r, script, sha, r.argv.subspan(3, keys), r.argv.subspan(3 + keys), read_only);
  r.error_counted = host.take_repeated_error();
}

void eval(Request& r, bool read_only) {
  const auto keys = read_key_count(r);
  if (!keys) return;
  ScriptName name;
  const Script* script = r.s().scripts.find_body(r.arg(1), name);
  const std::string_view sha(name.data(), name.size());
  std::string error;
  if (script == nullptr) {
    adopt_script_limits(r);
    script = r.s().scripts.load(sha, r.arg(1), false, error);
  }
  if (script == nullptr) return r.reply.error(error);
  run_script(r, *script, sha, *keys, read_only);
}

void eval_sha(Request& r, bool read_only) {
  ScriptName digits;
  const std::string_view sha = script_name(r.arg(1), digits);
  if (sha.empty()) return r.reply.error(kNoScriptText);
  const auto keys = read_key_count(r);
  if (!keys) return;
  const Script* script = r.s().scripts.find(sha);
  if (script == nullptr) return r.reply.error(kNoScriptText);
  run_script(r, *script, sha, *keys, read_only);
}

}  // namespace

void cmd_eval(Request& r) { eval(r, false); }
void cmd_eval_ro(Request& r) { eval(r, true); }
void cmd_evalsha(Request& r) { eval_sha(r, false); }
void cmd_evalsha_ro(Request& r) { eval_sha(r, true); }

namespace {

void fcall(Request& r, bool read_only) {
  ScriptHost& host = r.s().scripts;
  const LibraryFunction* function = host.libraries().function(r.arg(1));
  if (function == nullptr) return r.reply.error("ERR Function not found");
  if (!parse_int(r.arg(2))) return r.reply.error("ERR Bad number of keys provided");
  const auto keys = read_key_count(r);
  if (!keys || !may_run(r, ScriptHost::flags_of(*function), read_only)) return;
  adopt_script_limits(r);
  host.run_function(r, *function, r.argv.subspan(3, *keys), r.argv.subspan(3 + *keys), read_only);
  r.error_counted = host.take_repeated_error();
}

}  // namespace

void cmd_fcall(Request& r) { fcall(r, false); }
void cmd_fcall_ro(Request& r) { fcall(r, true); }

void cmd_script_load(Request& r) {
  const std::string sha = sha1_hex(r.arg(2));
  ScriptHost& host = r.s().scripts;
  std::string error;
  adopt_script_limits(r);
  const bool done = host.find(sha) != nullptr ? host.keep_cached(sha, error)
                                              : host.load(sha, r.arg(2), true, error) != nullptr;
  if (!done) return r.reply.error(error);
  r.reply.bulk(sha);
}

void cmd_script_exists(Request& r) {
  r.reply.array(r.argc() - 2);
  ScriptName digits;
  for (size_t i = 2; i < r.argc(); ++i) {
    r.reply.integer(r.s().scripts.find(script_name(r.arg(i), digits)) == nullptr ? 0 : 1);
  }
}

void cmd_script_flush(Request& r) {
  const bool fine =
      r.argc() == 2 ||
      (r.argc() == 3 && (equals_ignore_case(r.arg(2), "async") || equals_ignore_case(r.arg(2), "sync")));
  if (!fine) return r.reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  r.s().scripts.flush();
  r.reply.ok();
}

void kill_script(Request& r, bool function) {
  ScriptHost& host = r.s().scripts;
  if (!host.running()) return r.reply.error("NOTBUSY No scripts in execution right now.");
  const bool runs_function = host.running_function() != nullptr;
  if (runs_function != function) return r.reply.error(runs_function ? kBusyFunction : kBusyScript);
  if (host.has_written()) {
    return r.reply.error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either "
        "wait "
        "the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.");
  }
  host.kill(function ? "ERR Script killed by user with FUNCTION KILL."
                     : "ERR Script killed by user with SCRIPT KILL...");
  r.reply.ok();
}

void cmd_script_kill(Request& r) { kill_script(r, false); }

void cmd_script_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "EXISTS <sha1> [<sha1> ...]",
      "    Return information about the existence of the scripts in the script cache.",
      "FLUSH [ASYNC|SYNC]",
      "    Flush the Lua scripts cache. Both modes do the same here.",
      "KILL",
      "    Kill the currently executing Lua script.",
      "LOAD <script>",
      "    Load a script into the scripts cache without executing it.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
