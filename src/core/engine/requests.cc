// The checks, the queueing and the execution of a request.
#include "core/engine/requests.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/deferred_free.h"
#include "core/codec/reply.h"
#include "core/command/command.h"
#include "core/command/command_log.h"
#include "core/engine/remote_requests.h"
#include "core/engine/resumable_request.h"
#include "core/engine/run_command.h"
#include "core/events/acl_check.h"
#include "core/events/invalidate.h"
#include "core/events/monitor.h"
#include "core/events/request_text.h"
#include "core/lock/waiting.h"
#include "core/script/demands.h"
#include "core/script/script.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"
#include "core/state/memory_use.h"
#include "core/state/output.h"
#include "core/state/pause.h"
#include "core/state/request.h"
#include "core/state/stats.h"
#include "core/state/tracking.h"
#include "core/state/watches.h"

namespace holdfast {

namespace {

bool is_queued_in_multi(const Conn& c, const Command& command) {
  return c.transaction != nullptr && !command.has(kInMulti);
}

// Commands whose names stay in memory: keys that a connection watches or waits for, channels that it
// subscribes to. A few names are accepted even beyond the memory limit.
bool keeps_names(const Command& command) { return command.has(kBlocking | kKeepsNames); }
// Whether the request keeps names, memory would then be nearly full, and the connection has more than a
// few.
bool keeps_too_many_names(const EngineState& s, const Conn& c, const Command& command,
                          std::span<const std::string_view> argv) {
  constexpr uint64_t kFewBytes = uint64_t{64} << 10U;
  constexpr uint64_t kCopies = 2;  // a queue and the keyspace have a copy each, or two tables
  if (!keeps_names(command)) return false;
  uint64_t bytes = 0;
  for (const std::string_view arg : argv) bytes += bytes_of_name(arg);
  return c.name_bytes + c.wait_bytes + bytes > kFewBytes && is_nearly_full(s, kCopies * bytes);
}

// Whether used memory must be checked before the request runs.
bool may_grow(const EngineState& s, const Conn& c, const Command& command) {
  if (s.config.limits.memory_bytes == 0 && !s.memory.over_limit) [[likely]]
    return false;
  return command.has(kDenyOom | kScript) || c.transaction != nullptr || keeps_names(command);
}

// Checks used memory once, before a request begins, so that a transaction or a script runs completely or
// not at all. As in Redis, a transaction accepts no more requests beyond the limit. Returns true if the
// request is rejected.
bool refuse_beyond_memory(Context& ctx, const Conn& c, const Command& command,
                          std::span<const std::string_view> argv, Reply& reply) {
  const uint64_t limit = ctx.s.config.limits.memory_bytes;
  const auto is_over = [&] { return limit != 0 && used_memory_bytes(ctx.s) > limit; };
  while (is_over() && free_some(ctx.s)) {
  }
  ctx.s.memory.over_limit = is_over();
  const bool names = keeps_too_many_names(ctx.s, c, command, argv);
  if (!ctx.s.memory.over_limit && !names) return false;
  const Transaction* const run = command.has(kExec) ? c.transaction.get() : nullptr;
  const bool grows = run != nullptr ? run->grows : names || demands_of(ctx.s, command, argv).grow;
  if (!grows && (c.transaction == nullptr || command.has(kEndsMulti))) return false;
  if (command.has(kAcquire)) ++ctx.s.stats.locks.refusals[Refusal::kMemory];
  reply.error(run != nullptr ? std::string("EXECABORT Transaction discarded because of: ").append(kOomText)
                             : std::string(kOomText));
  return true;
}

// Whether the command runs or compiles a script: both may take long.
bool is_script(const Command& command) { return command.has(kScript | kCompiles); }

// Queues a request for EXEC. The queued requests of a transaction are unprocessed input, and have the same
// limit in bytes.
void queue_in_multi(EngineState& s, Conn& c, const Command& command, std::span<const std::string_view> argv,
                    Reply& reply) {
  Transaction& transaction = *c.transaction;
  if (transaction.broken || c.watch_broken) return reply.simple("QUEUED");  // none of it will run
  QueuedRequests& queued = transaction.requests;
  if (queued.bytes() + QueuedRequests::bytes_of(argv) > s.config.limits.query_buffer_bytes) {
    transaction.broken = true;
    const size_t answered = c.out.size();
    reply.error("ERR transaction is larger than client-query-buffer-limit allows");
    s.log.record_rejection(&command, c.out.view().substr(answered));
    return;
  }
  queued.add(argv);
  const Demands demands = demands_of(s, command, argv);
  transaction.has_script = transaction.has_script || is_script(command);
  transaction.writes = transaction.writes || demands.write;
  transaction.grows = transaction.grows || demands.grow;
  reply.simple("QUEUED");
}

// Marks the open transaction as broken, after a request was rejected before it could run. A rejected EXEC
// ends the transaction. `command`: null if it is unknown.
void fail_transaction(Context& ctx, Conn& c, const Command* command) {
  if (c.transaction != nullptr) c.transaction->broken = true;
  if (command == nullptr || !command->has(kExec)) return;
  end_transaction(ctx.s.deferred_free, std::move(c.transaction));
  ctx.s.watches.clear(c);
}

// RESP2 cannot distinguish messages from replies, so that a RESP2 subscriber may use only a few commands.
// Returns true if the request is rejected.
bool refuse_to_subscriber(const Conn& c, const Command& command, Reply& reply) {
  if (c.protocol >= 3 || c.subscriptions() == 0) [[likely]]
    return false;
  if (command.has(kForSubscribers)) return false;
  reply.error(
      std::string("ERR Can't execute '")
          .append(command.name)
          .append("': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
                  "context"));
  return true;
}

bool refuse_in_multi(const Conn& c, const Command& command, Reply& reply) {
  if (c.transaction == nullptr || !command.has(kNoMulti)) [[likely]]
    return false;
  reply.error("ERR Command not allowed inside a transaction");
  return true;
}

bool refuse_while_loading(const Context& ctx, const Command& command, Reply& reply) {
  if (!ctx.s.availability.loading || command.has(kLoading)) [[likely]]
    return false;
  reply.error("LOADING Redis is loading the dataset in memory");
  return true;
}

bool refuse_while_busy(const EngineState& s, const Conn& c, const Command& command, Reply& reply) {
  if (command.has(kAllowBusy)) return false;
  const bool aborts = command.has(kExec) && c.transaction != nullptr;
  const std::string_view busy = s.scripts.running_function() != nullptr ? kBusyFunction : kBusyScript;
  reply.error(aborts ? std::string("EXECABORT Transaction discarded because of: ").append(busy)
                     : std::string(busy));
  return true;
}

// A web page may make a browser send HTTP lines to this port. The server must not run them in any state.
// Returns true if the request was such a line; its connection is then closed.
bool refuse_http(Context& ctx, Conn& c, std::string_view word, size_t answered) {
  if (!equals_ignore_case(word, "post") && !equals_ignore_case(word, "host:")) return false;
  c.out.truncate(answered);
  c.running = false;
  c.closing = true;
  ctx.fx.closes.push_back(c.id);
  return true;
}

bool may_run_long(const Conn& c, const Command& command) {
  if (is_script(command)) return true;
  return command.has(kExec) && c.transaction != nullptr && c.transaction->has_script;
}

// Removes the reply. Also resets the overflow mark, as the output had not overflowed before the request.
void drop_reply(Conn& c, size_t answered) {
  c.out.truncate(answered);
  c.out.forget_overflow();
}

// CLIENT REPLY: removes the reply if the client does not want it. The reply of a waiting request is checked
// when it is written.
void obey_reply_mode(Conn& c, size_t answered) {
  switch (c.reply_mode) {
    case ReplyMode::kOn:
      break;
    case ReplyMode::kOff:
      drop_reply(c, answered);
      break;
    case ReplyMode::kSkipNext:
      c.reply_mode = ReplyMode::kSkip;
      break;
    case ReplyMode::kSkip:
      drop_reply(c, answered);
      if (c.blocked_on == nullptr && c.chunks.count() == 0 && !c.remote) c.reply_mode = ReplyMode::kOn;
      break;
  }
}

// CLIENT CACHING applies only to the next command that is not CLIENT, or to the next transaction.
void forget_caching(Conn& c) {
  if (c.tracking == nullptr || c.transaction != nullptr) return;
  if (c.last_command == nullptr || !c.last_command->has(kKeepsCaching)) c.tracking->caching = false;
}

}  // namespace

static void finish_rejected(Context& ctx, Conn& c, const Command& command, size_t answered) {
  fail_transaction(ctx, c, &command);
  ctx.s.log.record_rejection(&command, c.out.view().substr(answered));
  finish_request(ctx, c, answered);
}

void dispatch_request(Context& ctx, Conn& c, std::span<const std::string_view> argv) {
  mark_dirty(ctx, c);
  c.running = true;
  const size_t answered = c.out.size();
  Reply reply(c.out, c.protocol);
  const Command* command = resolve_command(argv, reply);
  if (command == nullptr) {
    if (refuse_http(ctx, c, argv[0], answered)) return;
    c.last_command = find_row(argv);
    fail_transaction(ctx, c, c.last_command);
    ctx.s.log.record_rejection(c.last_command, c.out.view().substr(answered));
    return finish_request(ctx, c, answered);
  }
  c.last_command = command;
  if (c.checked && refuse_by_acl(ctx, c, *command, argv, reply)) [[unlikely]]
    return finish_rejected(ctx, c, *command, answered);
  const bool begins = ctx.s.remote_key == nullptr;  // no pause stops a request that has begun
  if (begins && ctx.s.pause.until && is_paused(ctx, c, *command, argv)) [[unlikely]]
    return postpone(c, argv);
  if (refuse_in_multi(c, *command, reply) ||
      (may_grow(ctx.s, c, *command) && refuse_beyond_memory(ctx, c, *command, argv, reply)) ||
      refuse_to_subscriber(c, *command, reply) || refuse_while_loading(ctx, *command, reply))
    return finish_rejected(ctx, c, *command, answered);
  if (is_queued_in_multi(c, *command)) {
    queue_in_multi(ctx.s, c, *command, argv, reply);
  } else if (ctx.s.config.remote.take && take_remote(ctx, c, *command, argv)) {
    return;
  } else if (may_run_long(c, *command)) {
    if (!start_resumable_request(ctx, c, *command, argv) && !end_long_script(ctx)) return;
  } else {
    Request r{ctx, c, *command, argv, reply, true};
    run_command(r);
    if (c.chunks.count() > 0) [[unlikely]]
      ctx.s.unfinished.push_back(c.id);
  }
  finish_request(ctx, c, answered);
}

void dispatch_request_while_busy(Context& ctx, Conn& c, std::span<const std::string_view> argv) {
  mark_dirty(ctx, c);
  c.running = true;
  const size_t answered = c.out.size();
  Reply reply(c.out, c.protocol);
  const Command* command = resolve_command(argv, reply);
  if (command == nullptr && refuse_http(ctx, c, argv[0], answered)) return;
  if (command == nullptr || (c.checked && refuse_by_acl(ctx, c, *command, argv, reply)) ||
      refuse_while_busy(ctx.s, c, *command, reply)) {
    fail_transaction(ctx, c, find_row(argv));
    ctx.s.log.record_rejection(command, c.out.view().substr(answered));
  } else if (is_queued_in_multi(c, *command)) {
    queue_in_multi(ctx.s, c, *command, argv, reply);
  } else {
    Request r{ctx, c, *command, argv, reply};
    run_command(r);
  }
  obey_reply_mode(c, answered);
  flush_later(ctx, c);
}

void finish_request(Context& ctx, Conn& c, size_t answered) {
  if (c.reply_mode != ReplyMode::kOn) [[unlikely]]
    obey_reply_mode(c, answered);
  forget_caching(c);
  serve_ready_queues(ctx);
  if (ctx.s.tracking.has_unsent()) [[unlikely]] {
    send_own_invalidations(ctx);
    broadcast_invalidations(ctx);
  }
  flush_later(ctx, c);
}

bool is_paused(const Context& ctx, const Conn& c, const Command& command,
               std::span<const std::string_view> argv) {
  const Pause& pause = ctx.s.pause;
  if (!pause.until || is_due(*pause.until, ctx.now.mono)) return false;
  if (!pause.writes_only) return true;
  if (c.transaction == nullptr) return demands_of(ctx.s, command, argv).write;
  return command.has(kExec) && c.transaction->writes;
}

void postpone(Conn& c, std::span<const std::string_view> argv) {
  c.postponed.add(argv);
  c.running = false;  // pushes reach the connection meanwhile
}

void run_postponed(Context& ctx) {
  ctx.s.pause.over = false;
  std::vector<Conn*> waiting;
  ctx.s.conns.for_each([&](Conn& c) {
    if (c.postponed.count() > 0 || c.chunk_waits) waiting.push_back(&c);
  });
  std::ranges::sort(waiting, {}, [](const Conn* c) { return c->id.serial; });
  for (Conn* c : waiting) {
    if (std::exchange(c->chunk_waits, false)) {
      ctx.s.unfinished.push_back(c->id);
    } else {
      dispatch_postponed(ctx, *c);
    }
  }
}

void dispatch_postponed(Context& ctx, Conn& c) {
  QueuedRequests kept = std::exchange(c.postponed, {});
  ctx.actor = c.id;
  const bool busy = ctx.s.task.fiber.under_way();
  kept.take_first([&](std::span<const std::string_view> argv) {
    if (!c.closing) busy ? dispatch_request_while_busy(ctx, c, argv) : dispatch_request(ctx, c, argv);
    return false;
  });
  ctx.s.deferred_free.take(kept.memory());
  ctx.fx.wakes.push_back(c.id);
}

}  // namespace holdfast
