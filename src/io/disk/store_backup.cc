// Backups over the protocol: each gets the next snapshot.
#include <algorithm>

#include "core/state/conn.h"
#include "io/disk/store.h"
#include "io/os/clock.h"

namespace holdfast {

// A snapshot that is already in progress lacks the latest changes, so the backup gets the next one.
std::string Store::start_backup(ConnId client) {
  if (rebuild_ != Rebuild::kNone) return "ERR " + folder_failure_;
  std::string why = backups_.start(client, snapshots_ + 1, read_clock_().mono);
  if (!why.empty()) return why;
  request_save();
  return "";
}

// The reserve on disk covers all tokens whose replies were sent until now. See furthest_token() in
// cmd_lock.cc: clients can name tokens as far ahead as max-token-lead, counted from the clock or from the
// tokens at the start.
void Store::offer_to_backups() {
  if (!backups_.await(snapshots_)) return;
  BackupHead head;
  head.taken_us = read_clock_().wall_us;
  head.token_lead_us = static_cast<uint64_t>(engine_->config().max_token_lead.count) * 1000;
  head.meta = meta_.on_disk();
  backups_.use(snapshots_, *files_, writer_->name(), head, loop_);
}

void Store::end_backups() {
  const ConnTable& conns = engine_->state().conns;
  backups_.remove_idle([&](ConnId client) { return conns.find(client) != nullptr; }, read_clock_().mono);
}

}  // namespace holdfast
