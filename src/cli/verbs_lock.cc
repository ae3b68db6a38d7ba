// The verbs that change a lock: lock, unlock, renew, break, revoke.
#include <fmt/format.h>

#include <algorithm>

#include "cli/acquire.h"
#include "cli/output.h"
#include "cli/servers.h"
#include "cli/show.h"
#include "cli/signals.h"
#include "cli/status.h"
#include "cli/verbs.h"

namespace holdfast {
namespace {

using Kind = client::Value::Kind;

// Counts the replies to RENEW and UNLOCK.
struct Tally {
  size_t done = 0;
  size_t free = 0;    // the lock has no holder
  size_t others = 0;  // other owners hold it
  size_t failed = 0;  // no answer, or an error
};

Tally tally_of(const std::vector<Answer>& answers) {
  Tally tally;
  for (const Answer& answer : answers) {
    if (!answer.is(Kind::kInteger)) {
      ++tally.failed;
    } else {
      ++(answer.value.integer > 0 ? tally.done : answer.value.integer == 0 ? tally.free : tally.others);
    }
  }
  return tally;
}

// Prints the error of each server that failed, on standard error.
void report_failures(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    if (!answer.good()) fail(0, "{}: {}", answer.server, printable(answer.why()));
  }
}

// Returns the exit status of RENEW or UNLOCK, which must succeed on a quorum.
int status_of(const Tally& tally, size_t quorum) {
  if (tally.done >= quorum) return 0;
  // The servers without an answer could have completed the quorum.
  return tally.done + tally.failed >= quorum ? kUnavailable : kNotHeld;
}

void print_result(const Call& call, const Tally& tally, int status, size_t servers, std::string_view done) {
  const std::string name = printable(call.lock.name);
  const std::string owner = printable(call.arguments[1]);
  if (status == 0) {
    print("{}: {} on {} of {} server{}\n", name, done, tally.done, servers, servers == 1 ? "" : "s");
  } else if (status == kUnavailable) {
    fail(0, "{}: {} on {} of {} servers; too few answered", name, done, tally.done, servers);
  } else if (tally.others > 0) {
    fail(0, "{}: another owner holds it, not {}", name, owner);
  } else {
    fail(0, "{}: {} does not hold it{}", name, owner,
         tally.done == 0 ? ": the lock is free" : " on enough servers");
  }
}

// Returns the quorum for the hold. It depends on the mode of the hold, so this asks the servers that have
// it.
size_t quorum_for(Servers& servers, const Call& call) {
  const client::ClientConfig& config = servers.config();
  size_t quorum = 0;
  for (const Answer& answer :
       servers.ask(servers.of_key(call.lock.name), {"LOCKS", "INFO", call.lock.name})) {
    for (const client::Value& holder : field(answer.value, "holders").elements) {
      if (field(holder, "owner").text != call.arguments[1]) continue;
      const std::string& name = field(holder, "mode").text;
      const Mode mode = name == "shared"  ? Mode::kSharedLock
                        : name == "limit" ? Mode::kCountedLock
                                          : Mode::kExclusiveLock;
      quorum = std::max(quorum, quorum_of(config, mode));
    }
  }
  return quorum > 0 ? quorum : config.write_quorum;
}

// Sends UNLOCK or RENEW and prints the result. `done` is the participle for it: "released" or "renewed".
int settle(const Call& call, const std::vector<std::string>& argv, std::string_view done) {
  Servers servers(call.servers);
  const size_t quorum = servers.config().replicas > 1 ? quorum_for(servers, call) : 1;
  const std::vector<Answer> answers = servers.ask(servers.of_key(call.lock.name), argv);
  const Tally tally = tally_of(answers);
  const int status = status_of(tally, quorum);
  report_failures(answers);
  if (!call.json || status != 0) print_result(call, tally, status, answers.size(), done);
  if (!call.json) return flush() ? status : kNoOutput;
  Json json{{"key", call.lock.name},
            {"owner", call.arguments[1]},
            {done, status == 0},
            {"servers", Json::array()}};
  for (const Answer& answer : answers) {
    Json row = row_of(answer);
    if (answer.good()) row["reply"] = answer.value.integer;
    json["servers"].push_back(row);
  }
  return print_json(json) ? status : kNoOutput;
}

// Sends LOCKS BREAK or REVOKE and prints the result. `done` says what happened to a hold. After a quorum
// has done it, no remaining hold can have a quorum.
int for_all_holds(const Call& call, const std::string& subcommand, std::string_view done) {
  Servers servers(call.servers);
  const std::vector<Answer> answers =
      servers.ask(servers.of_key(call.lock.name), {"LOCKS", subcommand, call.lock.name});
  Json json = Json::array();
  for (const Answer& answer : answers) {
    Json row = row_of(answer);
    if (answer.good()) row["holds"] = answer.value.integer;
    json.push_back(row);
    if (answer.good() && !call.json)
      print("{}: {} hold{} {}\n", answer.server, answer.value.integer, answer.value.integer == 1 ? "" : "s",
            done);
  }
  report_failures(answers);
  if (call.json ? !print_json(json) : !flush()) return kNoOutput;
  return tally_of(answers).failed <= answers.size() - servers.config().write_quorum ? 0 : kUnavailable;
}

bool print_grant(const Call& call, const Hold& hold) {
  if (call.json) {
    return print_json({{"key", call.lock.name},
                       {"owner", hold.owner()},
                       {"token", hold.token()},
                       {"ttl_ms", call.lock.ttl.count()}});
  }
  print("{} {}\n", hold.owner(), hold.token());
  return flush();
}

}  // namespace

int verb_lock(const Call& call) {
  const Signals signals;
  Client client(call.servers, {"holdfast-lock", {}});
  LockOptions options = options_of(call.lock);
  options.renew = false;
  Taken taken = take_lock(client, signals, call.lock, options);
  if (!taken.hold) return taken.status;
  if (!print_grant(call, *taken.hold)) return kNoOutput;  // ~Hold releases it: no owner printed
  taken.hold->leave();
  return 0;
}

int verb_unlock(const Call& call) {
  return settle(call, {"UNLOCK", call.lock.name, call.arguments[1]}, "released");
}

int verb_renew(const Call& call) {
  std::vector<std::string> argv{"RENEW", call.lock.name, call.arguments[1]};
  if (call.ttl) argv.push_back(std::to_string(call.ttl->count()));
  return settle(call, argv, "renewed");
}

int verb_break(const Call& call) { return for_all_holds(call, "BREAK", "broken"); }
int verb_revoke(const Call& call) { return for_all_holds(call, "REVOKE", "asked to end"); }

}  // namespace holdfast
