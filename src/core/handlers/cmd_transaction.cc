// MULTI, EXEC, DISCARD, WATCH, UNWATCH. Waiters are served after the whole transaction.
#include <string>
#include <utility>

#include "core/codec/reply.h"
#include "core/command/acl.h"
#include "core/command/command_log.h"
#include "core/command/handlers.h"
#include "core/engine/chunked_requests.h"
#include "core/engine/run_command.h"
#include "core/events/acl_check.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/memory_use.h"
#include "core/state/output.h"
#include "core/state/request.h"
#include "core/state/watches.h"

namespace holdfast {

namespace {

// Returns whether a watched key has changed. First expires watched keys that are due but not yet removed.
bool watched_has_changed(Request& r) {
  const absl::btree_set<WatchedKey> watched = r.c.watched;
  for (const WatchedKey& w : watched) find_any(r.ctx, w.db, r.ctx.keys(w.db).key(w.key));
  return r.c.watch_broken;
}

// Checks permissions again, as users may have changed since the request was queued. Returns true if the
// request is rejected.
bool refuse_in_exec(Request& r) {
  if (needs_auth(r.s(), r.c)) {
    if (r.command.has(kNoAuth)) return false;
    return r.reply.error("NOAUTH Authentication required."), true;
  }
  const Verdict v = check_permission(r.s(), *r.c.user, r.command, r.argv);
  if (v.allowed()) return false;
  log_verdict(r.ctx, r.c, v, AclContext::kMulti, r.command, r.argv);
  std::string_view reason = "no permission to access one of the channels used as arguments";
  if (v.why == Denial::kCommand) reason = "no permission to execute the command or subcommand";
  if (v.why == Denial::kKey) reason = "no permission to touch the specified keys";
  r.reply.error(
      std::string(
          "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
          "call. This command is no longer allowed for the following reason: ")
          .append(reason));
  return true;
}

void run_transaction(Request& r, const Transaction& transaction, bool changed) {
  if (transaction.broken) {
    return r.reply.error("EXECABORT Transaction discarded because of previous errors.");
  }
  if (changed) return r.reply.null_array();
  Buffer& out = r.reply.out();
  r.c.in_exec = true;
  r.reply.array(transaction.requests.count());
  transaction.requests.for_each([&](std::span<const std::string_view> argv) {
    // The command was resolved when the request was queued, so the row exists.
    Request inner{r.ctx, r.c, *find_row(argv), argv, Reply(out, r.c.protocol)};
    const size_t answered = out.size();
    if (r.c.checked && refuse_in_exec(inner)) {
      r.s().log.record_rejection(&inner.command, out.view().substr(answered));
    } else {
      run_command(inner);
    }
  });
  r.c.in_exec = false;
}

}  // namespace

void cmd_multi(Request& r) {
  if (r.c.transaction != nullptr) return r.reply.error("ERR MULTI calls can not be nested");
  r.c.transaction = std::make_unique<Transaction>();
  r.c.transaction->requests.memory().count_in(&r.s().memory.buffer_bytes);
  r.reply.ok();
}

void cmd_exec(Request& r) {
  if (r.c.transaction == nullptr) return r.reply.error("ERR EXEC without MULTI");
  std::unique_ptr<Transaction> transaction = std::exchange(r.c.transaction, nullptr);
  const bool changed = watched_has_changed(r);
  r.s().watches.clear(r.c);
  run_transaction(r, *transaction, changed);
  end_transaction(r.s().deferred_free, std::move(transaction));
}

void cmd_discard(Request& r) {
  if (r.c.transaction == nullptr) return r.reply.error("ERR DISCARD without MULTI");
  end_transaction(r.s().deferred_free, std::move(r.c.transaction));
  r.s().watches.clear(r.c);
  r.reply.ok();
}

void cmd_watch(Request& r) {
  if (r.c.transaction != nullptr) return r.reply.error("ERR WATCH inside MULTI is not allowed");
  const size_t end = defer_rest(r);
  for (size_t i = 1; i < end && !r.c.watch_broken; ++i) {
    // Expires a due key now, so that its expiry is not a change after the WATCH.
    find_any(r.ctx, r.c.db, r.keys().key(r.arg(i)));
    r.s().watches.add(r.c, r.c.db, r.arg(i));
  }
  if (r.c.chunks.count() == 0) r.reply.ok();
}

void cmd_unwatch(Request& r) {
  r.s().watches.clear(r.c, chunk_size(r));
  r.c.watched.empty() ? r.reply.ok() : defer_again(r);
}

}  // namespace holdfast
