// Faults of the disk, and what the server must do within a time.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/codec/journal_frame.h"
#include "core/codec/meta.h"
#include "core/state/availability.h"
#include "durations.h"
#include "server_world.h"

namespace holdfast::simulation {
namespace {

constexpr int kProbe = 1000;  // the client that asks for the check

using Contents = std::map<std::string, std::string>;

// The id of the server to which a folder belongs; empty if it belongs to none.
std::string id_of(const Contents& folder) {
  Meta meta;
  const auto found = folder.find("meta");
  return found != folder.end() && parse_meta(found->second, meta).empty() ? meta.id : "";
}

Contents folder_of_another_server(uint64_t number) {
  Meta meta;
  meta.id = fmt::format("{:0>{}}", number, kFolderIdDigits);
  meta.clean = true;
  meta.journal_sequence = 1;
  std::string journal;
  append_journal_head(journal, 1, 1);
  return {{"meta", format_meta(meta)}, {"journal.1", journal}};
}

}  // namespace

void ServerWorld::disk_fault(const std::vector<std::string>& words) {
  if (words.empty()) return;
  const uint64_t n = words.size() > 1 ? std::strtoull(words[1].c_str(), nullptr, 10) : 0;
  CrashFiles& files = disk_.files();
  if (words[0] == "works") {
    check_foreign();
    if (!foreign_.empty()) files.remove_folder();
    foreign_.clear();
    files.set_capacity(std::nullopt);
    files.set_read_only(false);
    files.fail_write(0, 0);
    files.fail_sync(0, 0);
    files.fail_folder_sync(0, 0);
    files.restore_folder();
    slow_until_us_ = scheduler_.now_us() + 20 * disk_.sync_us();
    disk_.set_sync_us(Disk::kUsualSyncUs);
    faults_.clear();
    healthy_since_us_ = scheduler_.now_us();
    return;
  }
  if (words[0] == "capacity") files.set_capacity(files.used_bytes() + n);
  if (words[0] == "readonly") files.set_read_only(true);
  if (words[0] == "failwrite") files.fail_write(n, EIO);
  if (words[0] == "failsync") files.fail_sync(n, EIO);
  if (words[0] == "failfolder") files.fail_folder_sync(n, EIO);
  if (words[0] == "slow") disk_.set_sync_us(static_cast<int64_t>(n));
  faults_.push_back(words[0]);
  oracle_.trouble();
  fault_since_start_ = true;
}

void ServerWorld::folder(const std::string& what) {
  CrashFiles& files = disk_.files();
  if (what == "copy") copy_ = files.contents();
  if (what == "remove") {
    change_folder({});
    faults_.emplace_back("folder");
  }
  if (what == "restore") files.restore_folder();
  if (what == "old" && foreign_.empty() && !id_of(copy_).empty() &&
      id_of(copy_) == id_of(files.contents())) {
    change_folder(copy_);
    files.restore_folder();
  }
  if (what == "foreign") {
    change_folder(folder_of_another_server(++foreign_folders_));
    if (process_ != nullptr) foreign_ = files.contents();
    files.restore_folder();
    faults_.emplace_back("folder");
  }
}

// Replaces the folder by one with these files, which is not at the server's path yet.
void ServerWorld::change_folder(const std::map<std::string, std::string>& contents) {
  disk_.files().remove_folder();
  for (const auto& [name, bytes] : contents) disk_.files().put(name, bytes);
  foreign_.clear();
  folder_changed_ = fault_since_start_ = true;
  healthy_since_us_ = folder_changed_us_ = scheduler_.now_us();
  oracle_.trouble();
  if (process_ == nullptr) oracle_.forget();
}

void ServerWorld::check_foreign() {
  if (!foreign_.empty() && disk_.files().contents() != foreign_)
    fail("the server has changed the folder of another server");
}

// Asks on a connection of its own. Returns the reply; empty if there is none within the time.
std::string ServerWorld::ask(const std::vector<std::string>& words, int64_t limit_us) {
  send(kProbe, words);
  const int64_t until_us = scheduler_.now_us() + limit_us;
  constexpr int64_t kPieceUs = 10'000;
  std::string reply;
  while (process_ != nullptr && wrong_.empty() && reply.empty() && scheduler_.now_us() < until_us) {
    run_for(kPieceUs);
    if (process_ != nullptr) reply = clients_[kProbe]->last_reply();
  }
  drop(kProbe);
  clients_.erase(kProbe);
  return reply;
}

void ServerWorld::check() {
  if (process_ == nullptr || told_to_stop_us_ != 0 || stop_wanted_) return;
  if (scheduler_.now_us() < slow_until_us_) return;  // an operation on the slow disk may still run
  const int64_t limit_us = 2 * kSecondUs + 20 * disk_.sync_us();
  const auto stays = [this] { return process_ != nullptr && wrong_.empty() && told_to_stop_us_ == 0; };
  std::string pong = ask({"PING"}, limit_us);
  // A reply of the moment in which the disk failed stays in the server.
  if (stays() && pong.empty() && disk_fails()) pong = ask({"PING"}, limit_us);
  if (stays() && pong.empty()) fail(fmt::format("PING is not answered within {} ms", limit_us / 1000));
  constexpr int64_t kHealUs = 20 * kSecondUs;
  const int64_t since_us = std::max(healthy_since_us_, started_us_);
  if (!stays() || !oracle_.is_loaded()) return;
  if (disk_fails() || scheduler_.now_us() - since_us < kHealUs) return;
  const std::string refusal = process_->engine()->availability().refusal;
  if (!refusal.empty()) return fail("the disk works, and the server rejects locks: " + refusal);
  if (recovery_left_ms() < -kHealUs / 1000) oracle_.wait_is_over();
  fault_since_start_ = false;
  if (!disk_.files().folder_removed()) folder_changed_ = false;
}

// A start and a stop must not take long. A slow disk that became fast may still be busy with what began
// before.
void ServerWorld::check_limits() {
  if (process_ == nullptr || !wrong_.empty()) return;
  const int64_t limit_us = 10 * kSecondUs + 100 * disk_.sync_us();
  const int64_t now_us = scheduler_.now_us();
  const auto passed = [&](int64_t since_us) {
    return now_us - std::max(since_us, healthy_since_us_) > limit_us;
  };
  if (told_to_stop_us_ != 0 && passed(told_to_stop_us_)) fail("the server does not stop");
  if (!oracle_.is_loaded() && passed(started_us_)) fail("the start does not end");
}

}  // namespace holdfast::simulation
