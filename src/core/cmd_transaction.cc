// MULTI, EXEC, DISCARD. Waiters are served after the whole transaction.
#include <utility>

#include "core/command.h"

namespace holdfast {

void cmd_multi(Request& r) {
  if (r.c.transaction != nullptr) return r.reply.error("ERR MULTI calls can not be nested");
  r.c.transaction = std::make_unique<Transaction>();
  r.reply.ok();
}

void cmd_exec(Request& r) {
  if (r.c.transaction == nullptr) return r.reply.error("ERR EXEC without MULTI");
  const std::unique_ptr<Transaction> transaction = std::exchange(r.c.transaction, nullptr);
  if (transaction->broken) {
    return r.reply.error("EXECABORT Transaction discarded because of previous errors.");
  }
  r.reply.array(transaction->requests.size());
  for (const auto& request : transaction->requests) {
    const std::vector<std::string_view> argv(request.begin(), request.end());
    Reply reply(r.c.out, r.c.protocol);
    // Its command was resolved when it was queued, so that this cannot fail.
    run_command(r.t, r.c, *resolve_command(argv, reply), argv, false);
  }
}

void cmd_discard(Request& r) {
  if (r.c.transaction == nullptr) return r.reply.error("ERR DISCARD without MULTI");
  r.c.transaction.reset();
  r.reply.ok();
}

}  // namespace holdfast
