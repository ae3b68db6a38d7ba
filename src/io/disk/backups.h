// The backups that clients read: for each client the next snapshot that begins after its request, in
// checked parts (codec/backup.h). A backup reads the open file of that snapshot, which stays readable when
// the next snapshot replaces it. So a backup needs no file of its own, and leaves none behind. Jobs read
// the file, one piece ahead of the client. Runs on the loop's thread.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/types.h"
#include "core/codec/backup.h"
#include "io/os/files.h"

namespace holdfast {

class Backups {
 public:
  static constexpr size_t kMost = 4;                         // at the same time
  static constexpr size_t kPieceBytes = size_t{256} << 10U;  // of the snapshot, in memory for each backup
  static constexpr DurationMs kIdle{60'000};                 // a backup ends if its client asks for nothing

  // Begins the backup of a client. `snapshot` is the number of the first snapshot that it may read. Returns
  // the error to reply, or an empty string.
  std::string start(ConnId client, uint64_t snapshot, TimeMs now);
  BackupBytes read(ConnId client, uv_loop_t* loop, TimeMs now);

  // Whether a backup waits for this snapshot.
  bool await(uint64_t snapshot) const;
  // The snapshot is in place as the file `name`. `head` lacks only its size.
  void use(uint64_t snapshot, Files& files, const std::string& name, BackupHead head, uv_loop_t* loop);
  // The snapshot failed: the next read of the backups that wait for it is this error.
  void fail(uint64_t snapshot, const std::string& why);
  // Ends the backups whose clients are gone or ask for nothing.
  void remove_idle(const std::function<bool(ConnId)>& is_open, TimeMs now);
  void clear() { backups_.clear(); }

 private:
  // A running job shares the backup, and alone uses `file`, `writer`, `offset`, and `next`.
  struct Backup {
    ConnId client;
    uint64_t snapshot = 0;
    TimeMs asked;
    bool waits = true;  // for its snapshot
    bool reading = false;
    std::unique_ptr<File> file;
    BackupWriter writer;
    uint64_t offset = 0;  // of the snapshot
    uint64_t size = 0;
    std::string next;
    std::string failure;
  };
  static void read_piece(Backup& backup);
  static void read_ahead(const std::shared_ptr<Backup>& backup, uv_loop_t* loop);
  void remove(ConnId client);

  std::vector<std::shared_ptr<Backup>> backups_;
};

}  // namespace holdfast
