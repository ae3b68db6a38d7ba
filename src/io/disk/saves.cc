// When a save begins, and what follows its end.
#include "io/disk/saves.h"

#include <fmt/format.h>

#include <utility>

#include "io/os/log.h"

namespace holdfast {

void Saves::request() {
  schedule_.request();
  hooks_.requested();
}

// The snapshot has the state of this moment: all later changes go to a new journal.
std::string Saves::begin() {
  if (save_ != nullptr) return "ERR Background save already in progress";
  Engine& engine = folder_.engine();
  if (!engine.at_rest() || engine.availability().loading) {
    schedule_.request();
    return "ERR a script is running, or data is being loaded; try again";
  }
  schedule_.answer_request();
  const Now now = folder_.now();
  folder_.commit();
  schedule_.begin(now.wall_us / 1000);
  if (Result<Done> begun = folder_.meta().begin_again(); !begun) return refuse(begun.error());
  Result<uint64_t> journal = folder_.begin_journal();
  if (!journal) return refuse(journal.error());
  if (folder_.journals()) engine.begin_journal_file();
  ++begun_;
  save_ = std::make_unique<Save>(folder_, now, *journal, [this] { end(); });
  return "";
}

// A snapshot cannot begin: fails it, and the backups that wait for it.
std::string Saves::refuse(const std::string& why) {
  backups_.fail(begun_ + 1, why);
  schedule_.refuse("ERR " + why);
  return schedule_.failure();
}

void Saves::begin_if_due(bool must) {
  if (save_ != nullptr) return;
  const uint64_t journal_bytes = folder_.journals() ? folder_.journal().bytes() : 0;
  const bool due = schedule_.is_requested() || schedule_.is_due(wall_ms(), folder_.frames(), journal_bytes);
  if (must || due) static_cast<void>(begin());
}

std::string Saves::save_now() {
  if (std::string why = begin(); !why.empty()) return why;
  save_->run_to_end(hooks_.working);
  end();
  return schedule_.failure().empty() ? "" : "ERR " + schedule_.failure();
}

void Saves::end() {
  const SaveOutcome outcome = save_->outcome();
  schedule_.end(outcome);
  if (outcome.failure.empty()) save_->drop_earlier_journals();
  log_end(outcome);
  if (outcome.failure.empty()) {
    offer_to_backups();
  } else {
    backups_.fail(begun_, outcome.failure);
  }
  const bool in_folder = save_->is_in_folder();
  save_.reset();
  if (schedule_.is_requested()) request();  // by a backup that has to have later changes
  hooks_.ended(in_folder);
}

void Saves::log_end(const SaveOutcome& outcome) const {
  if (!outcome.failure.empty())
    return log_line(LogLevel::kWarning, fmt::format("the snapshot failed: {}", outcome.failure));
  const uint64_t keys = save_->saved_keys();
  log_line(LogLevel::kNotice,
           fmt::format("snapshot saved: {} keys, {} bytes, {} ms", keys, outcome.bytes, outcome.took_ms),
           {{"keys", keys}, {"bytes", outcome.bytes}, {"took_ms", outcome.took_ms}});
}

void Saves::abandon(const std::string& why) {
  if (save_ == nullptr) return;
  save_->abandon(why);
  save_.reset();
}

void Saves::leave_folder() {
  if (save_ != nullptr) save_->fail("the data folder was replaced");
}

void Saves::stop() {
  backups_.clear();
  if (save_ != nullptr) save_->stop();
}

// A snapshot that is already in progress lacks the latest changes, so the backup gets the next one.
std::string Saves::start_backup(ConnId client) {
  std::string why = backups_.start(client, begun_ + 1, folder_.now().mono);
  if (!why.empty()) return why;
  request();
  return "";
}

BackupBytes Saves::read_backup(ConnId client) {
  return backups_.read(client, folder_.loop(), folder_.now().mono);
}

// The reserve on disk covers all tokens whose replies were sent until now. See furthest_token() in
// cmd_lock.cc: clients can name tokens as far ahead as max-token-lead, counted from the clock or from the
// tokens at the start.
void Saves::offer_to_backups() {
  if (!backups_.await(begun_)) return;
  BackupHead head;
  head.taken_us = folder_.now().wall_us;
  head.token_lead_us = static_cast<uint64_t>(folder_.engine().config().max_token_lead.count) * 1000;
  head.meta = folder_.meta().on_disk();
  backups_.use(begun_, folder_.files(), save_->name(), head, folder_.loop());
}

void Saves::end_backups() {
  const Engine& engine = folder_.engine();
  backups_.remove_idle([&](ConnId client) { return engine.is_open(client); }, folder_.now().mono);
}

}  // namespace holdfast
