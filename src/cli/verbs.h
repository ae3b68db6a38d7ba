// The verbs that send requests to servers, except `run` and `elect`. Each has a row in verbs.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace holdfast {

// The options of top.
struct TopSettings {
  bool batch = false;                // plain text, as with --json
  std::optional<int64_t> refreshes;  // the number of refreshes, then top ends; nullopt: until a signal
  milliseconds interval{2000};
  int64_t database = 0;
};

// The parsed options and arguments of a verb.
struct Call {
  std::string servers;
  std::vector<std::string> arguments;  // their number is right for the verb
  bool json = false;
  LockSettings lock;                // for lock
  std::optional<milliseconds> ttl;  // for renew
  std::optional<std::string> match;
  TopSettings top;
};

// Each returns the exit status. They throw as Client does.
int verb_lock(const Call& call);
int verb_unlock(const Call& call);
int verb_renew(const Call& call);
int verb_info(const Call& call);
int verb_list(const Call& call);
int verb_break(const Call& call);
int verb_revoke(const Call& call);
int verb_watch(const Call& call);
int verb_ping(const Call& call);
int verb_top(const Call& call);
int verb_backup(const Call& call);

// Returns one line for each verb, for holdfast --help.
std::string verbs_summary();
// Returns what --help of the verb prints; empty if there is no verb of this name.
std::string verb_help(std::string_view name);
// Runs the verb. Returns its exit status; nullopt if there is no verb of this name.
std::optional<int> run_verb(const std::string& name, const std::vector<std::string>& words);

}  // namespace holdfast
