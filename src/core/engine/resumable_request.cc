// Starts, defers and resumes the resumable request.
#include "core/engine/resumable_request.h"

#include <cassert>

#include "core/codec/reply.h"
#include "core/command/command.h"
#include "core/engine/run_command.h"
#include "core/events/record_changes.h"
#include "core/script/script.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"
#include "core/state/journal.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

void run_task(EngineState& s) {
  ResumableRequest& task = s.task;
  Conn& c = s.conns.at(task.conn);
  Request r{*task.context, c, *task.command, task.argv, Reply(task.out, c.protocol)};
  task.request = &r;
  run_command(r);
  task.request = nullptr;
}

template <class T>
void move_into(std::vector<T>& to, std::vector<T>& from) {
  if (from.empty()) return;
  to.insert(to.end(), from.begin(), from.end());
  from.clear();
}

// Moves the effects so far to the shell's, though the request may not have ended.
void move_effects(ResumableRequest& task, Effects& fx) {
  move_into(fx.dirty, task.fx.dirty);
  move_into(fx.wakes, task.fx.wakes);
  move_into(fx.closes, task.fx.closes);
}

void answer(ResumableRequest& task, Conn& c) {
  if (task.out.overflowed()) c.out.mark_overflowed();
  c.out.append(task.out.view());
  task.out.reset(size_t{64} << 10U);
  task.kept.clear();
  task.kept_argv.clear();
}

// Copies the arguments, as the caller's views end with its call.
void keep_arguments(ResumableRequest& task) {
  task.kept.assign(task.argv.begin(), task.argv.end());
  task.kept_argv.assign(task.kept.begin(), task.kept.end());
  task.argv = task.kept_argv;
  task.request->argv = task.kept_argv;
}

}  // namespace

ResumableRequest::ResumableRequest(EngineState& s) : fiber([&s] { run_task(s); }) {}

bool start_resumable_request(Context& ctx, Conn& c, const Command& command,
                             std::span<const std::string_view> argv) {
  ResumableRequest& task = ctx.s.task;
  assert(!task.fiber.under_way());
  task.context.emplace(Context{ctx.s, ctx.now, task.fx, ctx.due, ctx.actor});
  task.conn = c.id;
  task.command = &command;
  task.argv = argv;
  task.out.set_limit(c.out.limit());
  Journal& journal = ctx.s.journal;
  finish_journal(ctx);
  journal.settled = journal.out.size();
  journal.settled_grants = journal.grants;
  journal.withholds = !journal.large.empty();
  const bool ended = task.fiber.start();
  move_effects(task, ctx.fx);
  if (ended) {
    answer(task, c);
    return true;
  }
  keep_arguments(task);
  c.in_script = true;
  return false;
}

bool resume_resumable_request(EngineState& s, Effects& fx) {
  ResumableRequest& task = s.task;
  const bool ended = task.fiber.resume();
  move_effects(task, fx);
  if (!ended) return false;
  Conn& c = s.conns.at(task.conn);
  c.in_script = false;
  answer(task, c);
  return true;
}

void end_unwritten_request(EngineState& s) {
  Effects none;  // the connection of its client closes
  while (s.task.fiber.under_way() && !s.scripts.has_written()) {
    s.scripts.kill("ERR Script killed: the server stops.");
    if (!resume_resumable_request(s, none)) continue;  // the next script of a transaction
    Context ctx{s, s.task.context->now, none};
    finish_journal(ctx);
  }
}

}  // namespace holdfast
