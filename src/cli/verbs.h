// The verbs that talk to servers, but for `run`: one row each in verbs.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"

namespace holdfast {

// What a verb was called with.
struct Call {
  std::string servers;
  std::vector<std::string> arguments;  // as many as the verb has
  bool json = false;
  LockWish lock;                    // of lock
  std::optional<milliseconds> ttl;  // of renew
  std::optional<std::string> match;
};

// Each gives the exit status. They throw as Client does.
int verb_lock(const Call& call);
int verb_unlock(const Call& call);
int verb_renew(const Call& call);
int verb_info(const Call& call);
int verb_list(const Call& call);
int verb_break(const Call& call);
int verb_revoke(const Call& call);
int verb_watch(const Call& call);
int verb_ping(const Call& call);

// A line each, for holdfast --help.
std::string verbs_summary();
// The exit status of the verb; nullopt: there is none of this name.
std::optional<int> run_verb(const std::string& name, const std::vector<std::string>& words);

}  // namespace holdfast
