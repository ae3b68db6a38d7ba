// The earlier runs of a folder, as its files tell of them: their tokens, their last stop, and the holds
// that it may have lost. From this follows where tokens begin, and for which holds a start waits. A start
// needs it until the load has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/types.h"
#include "core/codec/hold_codec.h"
#include "core/codec/meta.h"
#include "io/disk/meta_keeper.h"
#include "io/os/files.h"

namespace holdfast {

// Bounds the total recovery wait, even if the process stops during it several times.
Horizon bounded(Horizon horizon, uint64_t recovery_wait_ms, const Now& now);

class EarlierRun {
 public:
  // `meta` is that of the folder; nullopt if it has none. `kernel` and `clock_id` name those of this boot.
  static Result<EarlierRun> read(Files& files, std::optional<Meta> meta, const std::string& kernel,
                                 const std::string& clock_id, const Now& now);

  bool has_meta() const { return meta_.has_value(); }
  // The folder has the data of a server, but no meta: nothing is known of the tokens and of the last stop.
  bool is_unknown() const { return unknown_; }
  bool stopped_cleanly() const { return meta_ && meta_->clean; }
  // Whether no data was lost: the kernel of the last run still runs, or that run stopped cleanly.
  bool is_lossless() const { return lossless_; }
  void record_loss() { lossless_ = false; }

  // The id of the folder; empty without meta.
  std::string folder_id() const { return meta_ ? meta_->id : ""; }
  uint64_t journal_sequence() const { return meta_ ? meta_->journal_sequence : 0; }
  // No earlier run issued a token above it, except for the keys of tokens_ahead().
  uint64_t token_floor() const { return token_floor_; }
  // Keys with tokens ahead of the floor: for each key the largest token that earlier runs may have issued.
  const std::vector<AheadToken>& tokens_ahead() const { return tokens_ahead_; }

  // How far the engine's clock was ahead when the folder was first read after the boot: see Config.
  int64_t first_ahead_ms(const Now& now) const { return same_clock_ ? meta_->clock_ms : now.ahead_ms(); }
  // The latest deadline of its holds; 0 if it stopped cleanly.
  Horizon horizon(const Now& now) const;

 private:
  void read_tokens(const Now& now);

  std::optional<Meta> meta_;
  bool unknown_ = false;
  bool lossless_ = true;
  bool same_clock_ = false;  // its times are on the same engine clock as this run's
  uint64_t token_floor_ = 0;
  std::vector<AheadToken> tokens_ahead_;
};

}  // namespace holdfast
