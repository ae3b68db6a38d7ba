// The copy of a remote key, and the request that runs on it. A request in progress is one moment: nothing
// else runs before the copy is away again.
#include "core/engine/remote_requests.h"

#include <utility>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/config.h"
#include "core/codec/reply.h"
#include "core/engine/requests.h"
#include "core/engine/resumable_request.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/holds.h"
#include "core/lock/keys.h"
#include "core/persist/restore_state.h"
#include "core/script/script.h"
#include "core/state/conn.h"
#include "core/state/output.h"
#include "core/state/remote_copy.h"

namespace holdfast {

namespace {

constexpr std::string_view kLongScript = "ERR the script ran longer than busy-reply-threshold allows";

std::string error_reply(std::string_view text) {
  Buffer out;
  Reply(out, 2).error(text);
  return std::string(out.view());
}

void put_copy(Context& ctx, DbIndex db, const RemoteKey& key) {
  if (!key.exists) return;
  Context restoring = restoring_context(ctx.s, ctx.now, ctx.fx);
  SavedHold hold;
  hold.ttl = key.deadline == kNever ? DurationMs{0} : key.deadline - ctx.now.mono;
  hold.held_since_ms = ctx.now.to_wall_ms(ctx.now.mono);
  restore_string(restoring, db, key.name, key.value, saved_deadline(key.deadline, ctx.now), hold);
}

// Returns the key as the request has left it, and removes it without a trace.
RemoteKey take_copy(Context& ctx, DbIndex db, const std::string& name) {
  RemoteKey key{name, false, {}, kNever};
  Keyspace::Found f = find_live(ctx, db, ctx.keys(db).key(name));
  if (f && type_of(*f) == EntryType::kString) {
    key.exists = true;
    key.value = value_of(*f);
    key.deadline = deadline_of(*f);
  }
  if (f) {
    take_attachment(ctx, {db, f});
    ctx.keys(db).erase(f);
  }
  return key;
}

// Runs the request on the copy, which is there. Returns false if its script ran too long.
bool run_on_copy(Context& ctx, Conn& c, std::span<const std::string_view> argv) {
  const ReplyMode mode = std::exchange(c.reply_mode, ReplyMode::kOn);
  c.remote = false;
  dispatch_request(ctx, c, argv);
  c.remote = true;
  c.reply_mode = mode;
  return !std::exchange(ctx.s.remote_overran, false);
}

}  // namespace

bool take_remote(Context& ctx, Conn& c, const Command& command, std::span<const std::string_view> argv) {
  const RemoteHooks& remote = ctx.s.config.remote;
  if (ctx.s.remote_key != nullptr) return false;
  const std::vector<std::string_view> keys = keys_in(command, argv);
  RemoteRequest request{c.id, ctx.s.db_name[c.db], command.name, argv, keys, nullptr};
  if (c.transaction != nullptr) request.transaction = &c.transaction->requests;
  if (!remote.take(request)) return false;
  c.remote = true;
  c.running = false;
  return true;
}

RemoteOutcome run_remote(Context& ctx, Conn& c, std::span<const std::string_view> argv,
                         const RemoteKey& before) {
  const DbIndex db = c.db;
  put_copy(ctx, db, before);
  const size_t answered = c.out.size();
  ctx.s.remote_key = &before.name;
  const bool in_time = run_on_copy(ctx, c, argv);
  ctx.s.remote_key = nullptr;
  RemoteOutcome outcome{std::string(c.out.view().substr(answered)), take_copy(ctx, db, before.name)};
  c.out.truncate(answered);
  if (!in_time) outcome = {error_reply(kLongScript), before};
  return outcome;
}

void answer_remote(Context& ctx, Conn& c, std::string_view reply) {
  c.remote = false;
  mark_dirty(ctx, c);
  const size_t answered = c.out.size();
  c.out.append(reply);
  finish_request(ctx, c, answered);
  ctx.fx.wakes.push_back(c.id);
}

// Such a script would hold up the requests of all other clients, and the answers of the servers.
bool end_long_script(Context& ctx) {
  EngineState& s = ctx.s;
  if (!s.config.remote.take) return false;
  s.remote_overran = s.remote_key != nullptr;
  while (s.task.fiber.under_way()) {
    s.scripts.kill(kLongScript);
    resume_resumable_request(s, ctx.fx);
  }
  return true;
}

}  // namespace holdfast
