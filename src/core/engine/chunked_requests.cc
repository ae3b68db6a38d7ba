#include "core/engine/chunked_requests.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/base/deferred_free.h"
#include "core/codec/reply.h"
#include "core/command/command_log.h"
#include "core/engine/requests.h"
#include "core/engine/run_command.h"
#include "core/events/acl_check.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"
#include "core/state/output.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

bool can_be_deferred(const Request& r) { return may_continue(r) && r.c.reply_mode == ReplyMode::kOn; }

// Whether the connection's next chunk must wait for the end of CLIENT PAUSE.
bool waits_for_pause(const Context& ctx, const Conn& c) {
  const std::string_view argv[] = {c.last_command->name};
  return c.last_command->has(kWrite) && is_paused(ctx, c, *c.last_command, argv);
}

}  // namespace

size_t defer_rest(Request& r) {
  constexpr size_t kEnd = 1 + kChunkNames;
  if (r.argc() <= kEnd || !can_be_deferred(r)) return r.argc();
  std::vector<std::string_view> argv;
  for (size_t at = kEnd; at < r.argc(); at += kChunkNames) {
    const auto names = r.argv.subspan(at, std::min(kChunkNames, r.argc() - at));
    argv.assign(1, r.argv[0]);
    argv.insert(argv.end(), names.begin(), names.end());
    r.c.chunks.add(argv);
  }
  return kEnd;
}

size_t chunk_size(const Request& r) { return can_be_deferred(r) ? kChunkNames : SIZE_MAX; }

void defer_again(Request& r) {
  const std::string_view argv[] = {r.command.name};
  r.c.chunks.add(argv);
}

bool may_continue(const Request& r) { return r.may_block && !r.s().availability.loading; }

void continue_later(Request& r, std::span<const std::string_view> argv, std::unique_ptr<ChunkState> state) {
  r.c.chunks.add(argv);
  r.c.chunk_state = std::move(state);
}

void continue_later(Request& r, std::unique_ptr<ChunkState> state) {
  r.c.chunk_repeats = true;
  r.c.chunk_state = std::move(state);
}

void run_chunk(Context& ctx) {
  if (ctx.s.unfinished.empty()) return;
  const ConnId id = ctx.s.unfinished.front();
  ctx.s.unfinished.pop_front();
  Conn* c = ctx.s.conns.find(id);
  if (c == nullptr || c->closing) return;
  if (waits_for_pause(ctx, *c)) {
    c->chunk_waits = true;
    return;
  }
  ctx.actor = id;
  mark_dirty(ctx, *c);
  c->running = true;
  const size_t answered = c->out.size();
  bool refused = false;
  c->chunks.take_first([&](std::span<const std::string_view> argv) {
    Request r{ctx, *c, *c->last_command, argv, Reply(c->out, c->protocol), true};
    refused = c->checked && refuse_by_acl(ctx, *c, r.command, argv, r.reply);  // users may have changed
    refused ? ctx.s.log.record_rejection(&r.command, c->out.view().substr(answered)) : continue_command(r);
    return std::exchange(c->chunk_repeats, false);
  });
  if (refused) c->chunks.clear();
  finish_request(ctx, *c, answered);
  if (c->chunks.count() > 0) {
    ctx.s.unfinished.push_back(id);
    return;
  }
  c->chunk_state.reset();  // unless it was refused, the last chunk has taken it
  ctx.s.deferred_free.take(c->chunks.memory());
  ctx.fx.wakes.push_back(id);
}

}  // namespace holdfast
