// EVAL, EVALSHA, their read-only forms, and SCRIPT.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/sha1.h"
#include "core/command/handlers.h"
#include "core/engine/requests.h"
#include "core/engine/resumable_request.h"
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

void adopt_limits(Request& r) {
  ScriptHost& host = r.s().scripts;
  const Limits& limits = r.s().config.limits;
  host.time.busy_us = limits.busy_reply_ms * 1000;
  host.time.hard_us = limits.script_hard_ms * 1000;
  host.set_memory_limits(limits.script_memory_bytes, limits.script_run_bytes);
}

void run_script(Request& r, const Script& script, std::string_view sha, size_t keys, bool read_only) {
  if (read_only && script.flags.shebang && !script.flags.no_writes) {
    return r.reply.error("ERR Can not execute a script with write flag using *_ro command.");
  }
  ScriptHost& host = r.s().scripts;
  // Such a script is rejected before it gets here, unless it was loaded after MULTI.
  const bool checks_memory = script.flags.shebang && !script.flags.allow_oom && !script.flags.no_writes;
  if (checks_memory && r.s().memory.over_limit) {
    return r.reply.error(
        "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'");
  }
  adopt_limits(r);
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
    adopt_limits(r);
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

void cmd_script_load(Request& r) {
  const std::string sha = sha1_hex(r.arg(2));
  ScriptHost& host = r.s().scripts;
  std::string error;
  adopt_limits(r);
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

void cmd_script_kill(Request& r) {
  ScriptHost& host = r.s().scripts;
  if (!host.running()) return r.reply.error("NOTBUSY No scripts in execution right now.");
  if (host.has_written()) {
    return r.reply.error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either "
        "wait "
        "the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.");
  }
  host.kill("ERR Script killed by user with SCRIPT KILL...");
  r.reply.ok();
}

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
