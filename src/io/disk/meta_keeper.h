// The file `meta`. Keeps the token reserve and the expiry horizon ahead of the tokens and holds that the
// engine grants. So after a crash no token is granted twice. And no lost hold is granted to another owner
// while its holder may be alive.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/types.h"
#include "core/codec/hold_codec.h"
#include "core/codec/meta.h"
#include "core/state/tokens.h"
#include "io/os/files.h"

namespace holdfast {

// The latest deadline of the holds that a crash may lose, on both clocks. 0 if there are none.
struct Horizon {
  int64_t wall_ms = 0;
  int64_t boot_ms = 0;  // on the engine's clock

  // For holds that never expire, and for unknown holds.
  static Horizon never() { return {kNever.count, kNever.count}; }
};

// The issued tokens and the holds of some moment. Or those that a file covers.
struct Issued {
  uint64_t token = 0;
  uint64_t ahead_serial = 0;  // see Tokens
  Horizon holds;

  bool covers(const Issued& other) const {
    return other.token <= token && other.ahead_serial <= ahead_serial &&
           other.holds.wall_ms <= holds.wall_ms && other.holds.boot_ms <= holds.boot_ms;
  }
};

class MetaKeeper {
 public:
  MetaKeeper(Files& files, uv_loop_t* loop = nullptr) : files_(files), loop_(loop) {}
  MetaKeeper(const MetaKeeper&) = delete;
  MetaKeeper& operator=(const MetaKeeper&) = delete;

  // Call it before keep_ahead().
  void set_loop(uv_loop_t* loop) { loop_ = loop; }

  // Reads the file. Returns nullopt if the folder has none.
  Result<std::optional<Meta>> read();
  // The first write of this run: reserves tokens above `issued`. `boot_id` names the kernel; empty if even
  // the end of the process may lose written data. `clock` is the clock of this boot, as it was when the
  // folder was first read after the boot. `journal_sequence`: see Meta. After a failure keep_ahead() and
  // begin_again() write the same text.
  Result<Done> begin(const std::string& id, const IssuedTokens& issued, Horizon horizon,
                     const std::string& boot_id, const SavedClock& clock, uint64_t journal_sequence = 0);
  // Whether the last begin() failed, and nothing was written since: an older text is on disk.
  bool begin_failed() const { return begin_failed_; }
  Result<Done> begin_again();

  // Sets the kernel that the next write names.
  void set_boot_id(const std::string& id) { boot_id_ = id; }
  // Covers the issued tokens and the holds: `holds` is their latest deadline, which is `left_ms` from now.
  // Begins a write if the lead is small. `done` is called on the loop. Begins no write while another runs:
  // call it again after `done`.
  void keep_ahead(const Tokens& tokens, Horizon holds, int64_t left_ms, const std::function<void()>& done);
  // Whether the file on disk covers both.
  bool covers(const Tokens& tokens, Horizon holds) const {
    return covers({tokens.largest(), tokens.ahead_serial(), holds});
  }
  bool covers(const Issued& issued) const {
    return !begin_failed_ && covered_by(on_disk_, ahead_on_disk_).covers(issued);
  }
  // The number of the write that covers `issued`: the last one begun, or else the one after it.
  uint64_t write_for(const Issued& issued) const { return last_serial_ + (begun_.covers(issued) ? 0 : 1); }
  // The last write of a stop: exactly the issued tokens. `clean`: all data is on disk. Otherwise the next
  // start waits for the holds that last until `lost`, and the file keeps the kernel that it names now.
  // `journal_sequence`: see Meta.
  Result<Done> end(const IssuedTokens& issued, bool clean, Horizon lost, uint64_t journal_sequence);

  // The folder is about to be replaced: waits for a write under way, and drops writes that have not begun.
  void leave_folder();

  // The text of the last write that succeeded, or of a begin() that failed since.
  const Meta& on_disk() const { return on_disk_; }
  const std::string& failure() const { return failure_; }

 private:
  Result<Done> put(const Meta& meta);
  Result<Done> write(const Meta& meta, uint64_t serial);
  bool covers(Horizon holds) const { return covers({0, 0, holds}); }
  static Issued covered_by(const Meta& meta, uint64_t ahead_serial) {
    return {meta.token_reserve, ahead_serial, {meta.horizon_ms, meta.horizon_boot_ms}};
  }

  Files& files_;
  uv_loop_t* loop_;
  Meta on_disk_;                // see on_disk()
  uint64_t ahead_on_disk_ = 0;  // Tokens::ahead_serial() of the file on disk
  Issued begun_;                // what the last write begun covers
  bool begin_failed_ = false;
  std::string boot_id_;
  bool writing_ = false;
  uint64_t last_serial_ = 0;  // number of the last write begun; they are numbered in order
  std::mutex write_mutex_;
  uint64_t written_serial_ = 0;  // the newest write tried; guarded by write_mutex_
  std::string failure_;
};

}  // namespace holdfast
