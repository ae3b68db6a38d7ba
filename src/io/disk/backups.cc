// Reads the snapshot in jobs: the disk may be slow.
#include "io/disk/backups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/os/jobs.h"

namespace holdfast {

std::string Backups::start(ConnId client, uint64_t snapshot, TimeMs now) {
  remove(client);
  if (backups_.size() >= kMost)
    return fmt::format("ERR {} other backups are being read; try again later", kMost);
  auto backup = std::make_shared<Backup>();
  backup->client = client;
  backup->snapshot = snapshot;
  backup->asked = now;
  backups_.push_back(std::move(backup));
  return "";
}

void Backups::remove(ConnId client) {
  std::erase_if(backups_, [&](const auto& b) { return b->client == client; });
}

BackupBytes Backups::read(ConnId client, uv_loop_t* loop, TimeMs now) {
  const auto at = std::ranges::find(backups_, client, [](const auto& b) { return b->client; });
  if (at == backups_.end())
    return {"", "ERR no backup: send BACKUP START first, on the same connection", false};
  Backup& backup = **at;
  backup.asked = now;
  if (backup.waits || backup.reading) return {};
  BackupBytes out{std::move(backup.next), backup.failure, false};
  backup.next.clear();
  out.ended = out.bytes.empty();
  if (out.ended || !out.error.empty()) {
    remove(client);
  } else if (backup.file != nullptr) {
    read_ahead(*at, loop);
  }
  return out;
}

bool Backups::await(uint64_t snapshot) const {
  return std::ranges::any_of(backups_, [&](const auto& b) { return b->waits && b->snapshot <= snapshot; });
}

void Backups::use(uint64_t snapshot, Files& files, const std::string& name, BackupHead head,
                  uv_loop_t* loop) {
  for (const auto& backup : backups_) {
    if (!backup->waits || backup->snapshot > snapshot) continue;
    backup->waits = false;
    auto file = files.open(name);
    auto size = file ? (*file)->size() : Result<uint64_t>(Failure{file.error()});
    if (!size) {
      backup->failure = fmt::format("ERR the backup failed: {}", size.error());
      continue;
    }
    backup->file = std::move(*file);
    backup->size = head.snapshot_bytes = *size;
    backup->writer.begin(backup->next, head);
    read_ahead(backup, loop);
  }
}

void Backups::fail(uint64_t snapshot, const std::string& why) {
  for (const auto& backup : backups_) {
    if (!backup->waits || backup->snapshot > snapshot) continue;
    backup->waits = false;
    backup->failure = fmt::format("ERR the backup failed: {}", why);
  }
}

void Backups::read_ahead(const std::shared_ptr<Backup>& backup, uv_loop_t* loop) {
  backup->reading = true;
  run_job(
      loop, [backup] { read_piece(*backup); }, [backup] { backup->reading = false; });
}

// The end of the backup follows its last bytes: then the file is closed.
void Backups::read_piece(Backup& backup) {
  std::string piece(std::min<uint64_t>(kPieceBytes, backup.size - backup.offset), '\0');
  Result<size_t> got = backup.file->read(backup.offset, piece);
  if (!got || *got < piece.size()) {
    backup.failure =
        fmt::format("ERR the backup failed: {}", got ? "the snapshot ends early" : got.error());
    return;
  }
  backup.offset += piece.size();
  backup.writer.add(backup.next, piece);
  if (backup.offset < backup.size) return;
  backup.writer.end(backup.next);
  backup.file.reset();
}

void Backups::remove_idle(const std::function<bool(ConnId)>& is_open, TimeMs now) {
  std::erase_if(backups_,
                [&](const auto& b) { return !is_open(b->client) || is_due(b->asked + kIdle, now); });
}

}  // namespace holdfast
