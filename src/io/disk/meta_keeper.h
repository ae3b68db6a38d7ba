// The file `meta`: keeps the token reserve and the expiry horizon ahead of what the engine gives out, so
// that after a crash no token comes twice and no hold that was lost is given to another while it may be
// alive.
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

// Until when holds last that a crash may lose, on both clocks; 0 where there are none.
struct Horizon {
  int64_t wall_ms = 0;
  int64_t boot_ms = 0;  // the engine's

  // Of holds that never expire, or of which nothing is known.
  static Horizon never() { return {kNever.count, kNever.count}; }
};

class MetaKeeper {
 public:
  MetaKeeper(Files& files, uv_loop_t* loop = nullptr) : files_(files), loop_(loop) {}
  MetaKeeper(const MetaKeeper&) = delete;
  MetaKeeper& operator=(const MetaKeeper&) = delete;

  // Before keep_ahead().
  void set_loop(uv_loop_t* loop) { loop_ = loop; }

  // What the folder says; nothing where it is new.
  Result<std::optional<Meta>> read();
  // The first write of this run: tokens behind those that were issued, on the kernel `boot_id`; empty where
  // not even the end of the process leaves what was written. `clock` is that of this start of the machine,
  // as the folder was first read since. `journal_sequence` as in Meta.
  Result<Done> begin(const std::string& id, const IssuedTokens& issued, Horizon horizon,
                     const std::string& boot_id, const SavedClock& clock, uint64_t journal_sequence = 0);

  // The kernel to name from the next write on.
  void set_boot_id(const std::string& id) { boot_id_ = id; }
  // What has been given out: tokens, and a hold that lasts until then, which is `left_ms` from now. Begins
  // to write where the lead gets small; `done` is called on the loop. While a write is under way nothing is
  // begun: call it again after `done`.
  void keep_ahead(const Tokens& tokens, Horizon holds, int64_t left_ms, const std::function<void()>& done);
  // Whether what is on disk covers both.
  bool covers(const Tokens& tokens, Horizon holds) const {
    return tokens.largest() <= on_disk_.token_reserve && tokens.ahead_serial() <= ahead_on_disk_ &&
           covers(holds);
  }
  // The last act of a stop: what was issued, exactly. `clean`: everything is kept on disk. Otherwise the
  // next start waits for the holds that last until `lost`, and the kernel named is the one on disk.
  // `journal_sequence` as in Meta.
  Result<Done> end(const IssuedTokens& issued, bool clean, Horizon lost, uint64_t journal_sequence);

  const Meta& on_disk() const { return on_disk_; }
  const std::string& failure() const { return failure_; }

 private:
  Result<Done> write(const Meta& meta, uint64_t serial);
  bool covers(Horizon holds) const {
    return holds.wall_ms <= on_disk_.horizon_ms && holds.boot_ms <= on_disk_.horizon_boot_ms;
  }

  Files& files_;
  uv_loop_t* loop_;
  Meta on_disk_;
  uint64_t ahead_on_disk_ = 0;  // Tokens::ahead_serial() of what is on disk
  std::string boot_id_;
  bool writing_ = false;
  uint64_t last_serial_ = 0;  // of the writes that were asked for, in their order
  std::mutex write_mutex_;
  uint64_t written_serial_ = 0;  // the newest that was tried; guarded by write_mutex_
  std::string failure_;
};

}  // namespace holdfast
