// Rows of the command table: scripts and transactions.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

constexpr Command kRows[] = {
    {"discard", cmd_discard, 1, kNoScript | kLoading | kStale | kFast | kAllowBusy | kInMulti, 0, 0, 0,
     "transactions", "2.0.0", "O(N) where N is the number of queued commands", "Discards a transaction.",
     ""},
    {"eval", cmd_eval, -3, kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys, 0, 0, 0,
     "scripting", "2.6.0", "Depends on the script that is executed.", "Execute a Lua script server side.",
     "script numkeys [key [key ...]] [arg [arg ...]]"},
    {"eval_ro", cmd_eval_ro, -3,
     kReadOnly | kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys, 0, 0, 0, "scripting",
     "7.0.0", "Depends on the script that is executed.", "Execute a read-only Lua script server side.",
     "script numkeys [key [key ...]] [arg [arg ...]]"},
    {"evalsha", cmd_evalsha, -3, kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys, 0, 0,
     0, "scripting", "2.6.0", "Depends on the script that is executed.",
     "Execute a Lua script server side.", "sha1 numkeys [key [key ...]] [arg [arg ...]]"},
    {"evalsha_ro", cmd_evalsha_ro, -3,
     kReadOnly | kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kMovableKeys, 0, 0, 0, "scripting",
     "7.0.0", "Depends on the script that is executed.", "Execute a read-only Lua script server side.",
     "sha1 numkeys [key [key ...]] [arg [arg ...]]"},
    {"exec", cmd_exec, 1, kNoScript | kLoading | kStale | kSkipSlowlog | kInMulti, 0, 0, 0, "transactions",
     "1.2.0", "Depends on commands in the transaction", "Executes all commands in a transaction.", ""},
    {"function", nullptr, -2, 0, 0, 0, 0, "scripting", "7.0.0", "Depends on subcommand.",
     "A container for function commands.", ""},
    {"function|dump", cmd_function_dump, 2, kNoScript, 0, 0, 0, "scripting", "7.0.0",
     "O(N) where N is the number of functions", "Dump all functions into a serialized binary payload.", ""},
    {"function|help", cmd_function_help, 2, kLoading | kStale, 0, 0, 0, "scripting", "7.0.0", "O(1)",
     "Show helpful text about the different subcommands.", ""},
    {"function|list", cmd_function_list, -2, kNoScript, 0, 0, 0, "scripting", "7.0.0",
     "O(N) where N is the number of functions", "List information about all the functions.",
     "[LIBRARYNAME library-name-pattern] [WITHCODE]"},
    {"function|stats", cmd_function_stats, 2, kNoScript | kAllowBusy, 0, 0, 0, "scripting", "7.0.0", "O(1)",
     "Return information about the function currently running (name, description, duration).", ""},
    {"multi", cmd_multi, 1, kNoScript | kLoading | kStale | kFast | kAllowBusy | kInMulti, 0, 0, 0,
     "transactions", "1.2.0", "O(1)", "Starts a transaction.", ""},
    {"script", nullptr, -2, 0, 0, 0, 0, "scripting", "2.6.0", "Depends on subcommand.",
     "A container for Lua scripts management commands.", ""},
    {"script|exists", cmd_script_exists, -3, kNoScript, 0, 0, 0, "scripting", "2.6.0",
     "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation)",
     "Check existence of scripts in the script cache.", "sha1 [sha1 ...]"},
    {"script|flush", cmd_script_flush, -2, kNoScript, 0, 0, 0, "scripting", "2.6.0",
     "O(N) with N being the number of scripts in cache", "Remove all the scripts from the script cache.",
     "[ASYNC | SYNC]"},
    {"script|help", cmd_script_help, 2, kLoading | kStale, 0, 0, 0, "scripting", "5.0.0", "O(1)",
     "Show helpful text about the different subcommands.", ""},
    {"script|kill", cmd_script_kill, 2, kNoScript | kAllowBusy, 0, 0, 0, "scripting", "2.6.0", "O(1)",
     "Kill the script currently in execution.", ""},
    {"script|load", cmd_script_load, 3, kNoScript | kStale, 0, 0, 0, "scripting", "2.6.0",
     "O(N) with N being the length in bytes of the script body.",
     "Load the specified Lua script into the script cache.", "script"},
    {"unwatch", cmd_unwatch, 1, kNoScript | kLoading | kStale | kFast | kAllowBusy, 0, 0, 0, "transactions",
     "2.2.0", "O(1)", "Forget about all watched keys.", ""},
    {"watch", cmd_watch, -2, kNoScript | kLoading | kStale | kFast | kAllowBusy | kInMulti, 1, -1, 1,
     "transactions", "2.2.0", "O(1) for every key.",
     "Watch the given keys to determine execution of the MULTI/EXEC block.", "key [key ...]"},
};

}  // namespace

std::span<const Command> scripting_commands() { return kRows; }

}  // namespace holdfast
