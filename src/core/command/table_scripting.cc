// Rows of the command table: scripts and transactions.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr Command kScriptingRows[] = {
    {"discard", cmd_discard, 1, kNoScript | kLoading | kStale | kFast | kAllowBusy | kInMulti | kEndsMulti,
     0, 0, 0, kNoKeys, "transactions", "2.0.0", "O(N) where N is the number of queued commands",
     "Discards a transaction.", ""},
    {"eval", cmd_eval, -3,
     kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys | kScript | kScriptText, 0, 0, 0,
     kGetsAndUpdates, "scripting", "2.6.0", "Depends on the script that is executed.",
     "Execute a Lua script server side.", "script numkeys [key [key ...]] [arg [arg ...]]"},
    {"eval_ro", cmd_eval_ro, -3,
     kReadOnly | kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys | kScript |
         kScriptText,
     0, 0, 0, kGets, "scripting", "7.0.0", "Depends on the script that is executed.",
     "Execute a read-only Lua script server side.", "script numkeys [key [key ...]] [arg [arg ...]]"},
    {"evalsha", cmd_evalsha, -3,
     kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys | kScript, 0, 0, 0,
     kGetsAndUpdates, "scripting", "2.6.0", "Depends on the script that is executed.",
     "Execute a Lua script server side.", "sha1 numkeys [key [key ...]] [arg [arg ...]]"},
    {"evalsha_ro", cmd_evalsha_ro, -3,
     kReadOnly | kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys | kScript, 0, 0, 0,
     kGets, "scripting", "7.0.0", "Depends on the script that is executed.",
     "Execute a read-only Lua script server side.", "sha1 numkeys [key [key ...]] [arg [arg ...]]"},
    {"exec", cmd_exec, 1, kNoScript | kLoading | kStale | kSkipSlowlog | kInMulti | kExec | kEndsMulti, 0,
     0, 0, kNoKeys, "transactions", "1.2.0", "Depends on commands in the transaction",
     "Executes all commands in a transaction.", ""},
    {"fcall", cmd_fcall, -3,
     kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys | kScript | kFunctionName, 0, 0, 0,
     kGetsAndUpdates, "scripting", "7.0.0", "Depends on the function that is executed.",
     "Invoke a function", "function numkeys [key [key ...]] [arg [arg ...]]"},
    {"fcall_ro", cmd_fcall_ro, -3,
     kReadOnly | kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys | kScript |
         kFunctionName,
     0, 0, 0, kGets, "scripting", "7.0.0", "Depends on the function that is executed.",
     "Invoke a read-only function", "function numkeys [key [key ...]] [arg [arg ...]]"},
    {"function", nullptr, -2, kSubcommands, 0, 0, 0, kNoKeys, "scripting", "7.0.0",
     "Depends on subcommand.", "A container for function commands.", ""},
    {"function|delete", cmd_function_delete, 3, kWrite | kNoScript, 0, 0, 0, kNoKeys, "scripting", "7.0.0",
     "O(1)", "Delete a function by name", "library-name"},
    {"function|dump", cmd_function_dump, 2, kNoScript, 0, 0, 0, kNoKeys, "scripting", "7.0.0",
     "O(N) where N is the number of functions", "Dump all functions into a serialized binary payload.", ""},
    {"function|flush", cmd_function_flush, -2, kWrite | kNoScript, 0, 0, 0, kNoKeys, "scripting", "7.0.0",
     "O(N) where N is the number of functions deleted", "Deleting all functions", "[ASYNC | SYNC]"},
    {"function|help", cmd_function_help, 2, kLoading | kStale, 0, 0, 0, kNoKeys, "scripting", "7.0.0",
     "O(1)", "Show helpful text about the different subcommands.", ""},
    {"function|kill", cmd_function_kill, 2, kNoScript | kAllowBusy, 0, 0, 0, kNoKeys, "scripting", "7.0.0",
     "O(1)", "Kill the function currently in execution.", ""},
    {"function|list", cmd_function_list, -2, kNoScript, 0, 0, 0, kNoKeys, "scripting", "7.0.0",
     "O(N) where N is the number of functions", "List information about all the functions.",
     "[LIBRARYNAME library-name-pattern] [WITHCODE]"},
    {"function|load", cmd_function_load, -3, kWrite | kDenyOom | kNoScript | kCompiles, 0, 0, 0, kNoKeys,
     "scripting", "7.0.0", "O(1) (considering compilation time is redundant)",
     "Create a function with the given arguments (name, code, description)", "[REPLACE] function-code"},
    {"function|restore", cmd_function_restore, -3, kWrite | kDenyOom | kNoScript | kCompiles, 0, 0, 0,
     kNoKeys, "scripting", "7.0.0", "O(N) where N is the number of functions on the payload",
     "Restore all the functions on the given payload", "serialized-value [FLUSH | APPEND | REPLACE]"},
    {"function|stats", cmd_function_stats, 2, kNoScript | kAllowBusy, 0, 0, 0, kNoKeys, "scripting",
     "7.0.0", "O(1)",
     "Return information about the function currently running (name, description, duration).", ""},
    {"multi", cmd_multi, 1, kNoScript | kLoading | kStale | kFast | kAllowBusy | kInMulti, 0, 0, 0, kNoKeys,
     "transactions", "1.2.0", "O(1)", "Starts a transaction.", ""},
    {"script", nullptr, -2, kSubcommands, 0, 0, 0, kNoKeys, "scripting", "2.6.0", "Depends on subcommand.",
     "A container for Lua scripts management commands.", ""},
    {"script|exists", cmd_script_exists, -3, kNoScript, 0, 0, 0, kNoKeys, "scripting", "2.6.0",
     "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation)",
     "Check existence of scripts in the script cache.", "sha1 [sha1 ...]"},
    {"script|flush", cmd_script_flush, -2, kNoScript, 0, 0, 0, kNoKeys, "scripting", "2.6.0",
     "O(N) with N being the number of scripts in cache", "Remove all the scripts from the script cache.",
     "[ASYNC | SYNC]"},
    {"script|help", cmd_script_help, 2, kLoading | kStale, 0, 0, 0, kNoKeys, "scripting", "5.0.0", "O(1)",
     "Show helpful text about the different subcommands.", ""},
    {"script|kill", cmd_script_kill, 2, kNoScript | kAllowBusy, 0, 0, 0, kNoKeys, "scripting", "2.6.0",
     "O(1)", "Kill the script currently in execution.", ""},
    {"script|load", cmd_script_load, 3, kNoScript | kStale | kCompiles, 0, 0, 0, kNoKeys, "scripting",
     "2.6.0", "O(N) with N being the length in bytes of the script body.",
     "Load the specified Lua script into the script cache.", "script"},
    {"unwatch", cmd_unwatch, 1, kNoScript | kLoading | kStale | kFast | kAllowBusy, 0, 0, 0, kNoKeys,
     "transactions", "2.2.0", "O(1)", "Forget about all watched keys.", ""},
    {"watch", cmd_watch, -2, kNoScript | kLoading | kStale | kFast | kAllowBusy | kInMulti | kKeepsNames, 1,
     -1, 1, kInspects, "transactions", "2.2.0", "O(1) for every key.",
     "Watch the given keys to determine execution of the MULTI/EXEC block.", "key [key ...]"},
};

}  // namespace

std::span<const Command> scripting_commands() { return kScriptingRows; }

}  // namespace holdfast
