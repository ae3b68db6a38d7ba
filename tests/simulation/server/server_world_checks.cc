// Faults of the disk, and what the server must do within a time.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/state/availability.h"
#include "server_world.h"

namespace holdfast::simulation {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int kProbe = 1000;  // the client that asks for the check

}  // namespace

void ServerWorld::disk_fault(const std::vector<std::string>& words) {
  if (words.empty()) return;
  const uint64_t n = words.size() > 1 ? std::strtoull(words[1].c_str(), nullptr, 10) : 0;
  CrashFiles& files = disk_.files();
  if (words[0] == "works") {
    files.set_capacity(std::nullopt);
    files.set_read_only(false);
    files.fail_write(0, 0);
    files.fail_sync(0, 0);
    files.fail_folder_sync(0, 0);
    files.restore_folder();
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
  if (what == "remove") {
    disk_.files().remove_folder();
    folder_changed_ = true;
    faults_.push_back("folder");
    fault_since_start_ = true;
    oracle_.trouble();
    if (process_ == nullptr) oracle_.forget();
  }
  if (what == "restore") disk_.files().restore_folder();
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
  if (process_ == nullptr || told_to_stop_us_ != 0 || stop_wanted_ || !oracle_.is_loaded()) return;
  const int64_t limit_us = 2 * kSecondUs + 20 * disk_.sync_us();
  const auto stays = [this] { return process_ != nullptr && wrong_.empty() && told_to_stop_us_ == 0; };
  std::string pong = ask({"PING"}, limit_us);
  // A reply of the moment in which the disk failed stays in the server.
  if (stays() && pong.empty() && disk_fails()) pong = ask({"PING"}, limit_us);
  if (stays() && pong.empty()) fail(fmt::format("PING is not answered within {} ms", limit_us / 1000));
  constexpr int64_t kHealUs = 20 * kSecondUs;
  const int64_t since_us = std::max(healthy_since_us_, started_us_);
  if (!stays() || disk_fails() || scheduler_.now_us() - since_us < kHealUs) return;
  const std::string refusal = process_->engine()->availability().refusal;
  if (!refusal.empty()) return fail("the disk works, and the server rejects locks: " + refusal);
  fault_since_start_ = false;
  if (!disk_.files().folder_removed()) folder_changed_ = false;
}

// A start and a stop must not take long.
void ServerWorld::check_limits() {
  if (process_ == nullptr || !wrong_.empty()) return;
  const int64_t limit_us = 10 * kSecondUs + 100 * disk_.sync_us();
  const int64_t now_us = scheduler_.now_us();
  if (told_to_stop_us_ != 0 && now_us - told_to_stop_us_ > limit_us) fail("the server does not stop");
  if (!oracle_.is_loaded() && now_us - started_us_ > limit_us) fail("the start does not end");
}

}  // namespace holdfast::simulation
