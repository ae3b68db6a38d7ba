// The store's fields of INFO persistence.
#include <algorithm>

#include "io/disk/store.h"

namespace holdfast {

namespace {

std::string text_of(auto value) { return std::to_string(value); }

}  // namespace

std::vector<std::pair<std::string, std::string>> Store::facts() const {
  const SaveSchedule& schedule = saves_.schedule();
  const Save* save = saves_.in_progress();
  const bool journals = folder_.journals();
  const bool good = schedule.failure().empty() && folder_.unusable().empty();
  const Now now = folder_.now();
  const int64_t now_ms = now.wall_us / 1000;
  const std::string last_s = text_of(schedule.took_ms() < 0 ? -1 : schedule.took_ms() / 1000);
  const std::string present_s = text_of(save == nullptr ? -1 : (now_ms - save->began_ms()) / 1000);
  std::vector<std::pair<std::string, std::string>> facts{
      {"loading", load_ != nullptr ? "1" : "0"},
      {"async_loading", "0"},
      {"current_cow_peak", "0"},
      {"current_save_keys_processed", text_of(save == nullptr ? 0 : save->saved_keys())},
      {"current_save_keys_total", text_of(save == nullptr ? 0 : save->keys())},
      {"rdb_changes_since_last_save", text_of(saves_.changes())},
      {"rdb_bgsave_in_progress", save == nullptr && !schedule.is_requested() ? "0" : "1"},
      {"rdb_last_save_time", text_of(schedule.saved_at_ms() / 1000)},
      {"rdb_last_bgsave_status", good ? "ok" : "err"},
      {"rdb_last_bgsave_time_sec", last_s},
      {"rdb_current_bgsave_time_sec", present_s},
      {"rdb_last_bgsave_bytes", text_of(schedule.saved_bytes())},
      {"rdb_last_cow_size", "0"},
      {"aof_enabled", journals ? "1" : "0"},
      {"aof_rewrite_in_progress", save == nullptr || !journals ? "0" : "1"},
      {"aof_last_bgrewrite_status", good ? "ok" : "err"},
      {"aof_last_write_status", folder_.failure().empty() ? "ok" : "err"},
      {"aof_rewrite_scheduled", "0"},
      {"aof_last_rewrite_time_sec", last_s},
      {"aof_current_rewrite_time_sec", present_s},
      {"aof_last_cow_size", "0"},
      {"module_fork_in_progress", "0"},
      {"module_fork_last_cow_size", "0"}};
  if (load_ != nullptr) {
    facts.emplace_back("loading_start_time",
                       text_of((now_ms - (now.mono.count - load_->began_ms())) / 1000));
    facts.emplace_back("loading_total_bytes", text_of(load_->total_bytes()));
    facts.emplace_back("loading_loaded_bytes", text_of(load_->read_bytes()));
    return facts;
  }
  if (journals) {
    const JournalWriter& journal = folder_.journal();
    facts.emplace_back("aof_current_size", text_of(journal.bytes()));
    facts.emplace_back("aof_base_size", text_of(schedule.saved_bytes()));
    facts.emplace_back("aof_pending_rewrite", "0");
    facts.emplace_back("aof_buffer_length", "0");
    facts.emplace_back("aof_pending_bio_fsync", "0");
    facts.emplace_back("aof_delayed_fsync", "0");
    facts.emplace_back("journal_number", text_of(journal.number()));
    facts.emplace_back("journal_next_sequence", text_of(journal.next_sequence()));
    facts.emplace_back("journal_unsynced", journal.all_synced() ? "0" : "1");
  }
  const Meta& meta = folder_.meta().on_disk();
  facts.emplace_back("folder_id", meta.id);
  facts.emplace_back("token_reserve", text_of(meta.token_reserve));
  facts.emplace_back("token_largest", text_of(folder_.engine().largest_token()));
  facts.emplace_back("horizon_ms", text_of(meta.horizon_ms));
  facts.emplace_back("boot_id", meta.boot_id);
  facts.emplace_back("wall_clock_moved_ms", text_of(now.ahead_ms() - folder_.boot().first_ahead_ms));
  const int64_t left_ms = folder_.engine().availability().recovering_until.count - now.mono.count;
  facts.emplace_back("recovering_ms", text_of(std::max<int64_t>(0, left_ms)));
  return facts;
}

}  // namespace holdfast
