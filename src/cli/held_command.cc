// The command starts only if the lock is held at that moment.
#include "cli/held_command.h"

#include <poll.h>

#include <string>
#include <utility>

#include "client/base/login.h"

namespace holdfast {
namespace {

Environment environment_of(const RunOptions& run, const Hold& hold) {
  Environment all{{"HOLDFAST_KEY", run.name},
                  {"HOLDFAST_OWNER", std::string(hold.owner())},
                  {"HOLDFAST_TOKEN", std::to_string(hold.token())},
                  {"HOLDFAST_TTL_MS", std::to_string(run.ttl.count())},
                  {"HOLDFAST_SERVERS", run.servers_without_login}};
  if (!run.user.empty()) all.emplace_back(client::kUserVariable, run.user);
  return all;
}

bool can_be_read(int fd) {
  pollfd fds{fd, POLLIN, 0};
  return poll(&fds, 1, 0) > 0;
}

}  // namespace

milliseconds warn_before_for(const RunOptions& run) { return run.grace + run.ttl / 20; }

CommandEnd run_command(const Signals& signals, const RunOptions& run, const Hold& hold, Supervision how) {
  how.grace = run.grace;
  how.may_resume = [&hold] { return hold.is_locked(); };
  // The slack is half the margin of warn_before_for(), so that this process acts before the guardian if it
  // can.
  if (run.ends_before_lock)
    how.time_left = [&hold, slack = run.ttl / 40] { return hold.validity() - slack; };
  Child child(signals);
  if (can_be_read(how.lost_fd) || !hold.is_locked()) {
    if (how.on_lost) how.on_lost();
    return {false, true, false, 0};
  }
  const int status = child.start(run.command, environment_of(run, hold), how);
  if (status != 0) return {false, false, false, status};
  return child.wait_for_end(how);
}

}  // namespace holdfast
