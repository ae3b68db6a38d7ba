// A snapshot of everything at one moment, as an RDB file, made in small steps while requests go on. A key
// that is about to change before its turn is written first (Keyspace::begin_save). Locks with several
// holders are hashes (hold_codec.h); what an RDB file has no place for stands in auxiliary fields, which
// Redis skips:
//   holdfast-journal   the number of the journal that begins with this moment
//   holdfast-follows   that journal exists: what follows the snapshot is in it
//   holdfast-tokens    no larger token has been issued
//   holdfast-clock     what all times of this file are to be read by (clock_text of hold_codec.h)
//   holdfast-records   leases, how leases ended, and lock-delays, as records of journal.h
//   holdfast-hold      of the key that follows: token, ttl and so on (put_hold of hold_codec.h)
//   holdfast-plain     the hash that follows is no lock and no note, whatever its fields look like
// A token of an exclusive lock that is ahead of the clock also stands in a note of the scripts
// (hold_codec.h): on Redis new tokens are only as large as the clock or such a note makes them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/codec/hold_codec.h"
#include "core/codec/rdb_writer.h"
#include "core/keyspace/keyspace.h"
#include "core/state/state.h"

namespace holdfast {

inline constexpr std::string_view kAuxJournal = "holdfast-journal";
inline constexpr std::string_view kAuxFollows = "holdfast-follows";
inline constexpr std::string_view kAuxTokens = "holdfast-tokens";
inline constexpr std::string_view kAuxAhead = "holdfast-token-ahead";  // token, a blank, key
inline constexpr std::string_view kAuxClock = "holdfast-clock";
inline constexpr std::string_view kAuxRecords = "holdfast-records";
inline constexpr std::string_view kAuxHold = "holdfast-hold";
inline constexpr std::string_view kAuxPlain = "holdfast-plain";

class Snapshot {
 public:
  // The moment is now. `journal` is the number of the one that begins with it; `follows`: there is one.
  Snapshot(EngineState& s, Now now, uint64_t journal, bool follows);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot();

  // Writes the next small part; true: that was the last.
  bool step();
  // What has been written and not yet been taken: the file but for the checksum that ends it.
  std::string& bytes() { return out_; }

  uint64_t keys() const { return keys_; }    // when it began
  uint64_t saved() const { return saved_; }  // so far

 private:
  struct Part {
    Keyspace* keys;
    DbIndex place;
    DbIndex number;
  };
  void save(const Part& part, Handle h, const Entry& e);
  void save_string(const Part& part, Handle h, const Entry& e);
  void save_hash(const Entry& e);
  void save_lock(const Entry& e);
  void save_note(std::string_view key, std::string_view owner, const SavedHolder& hold);
  void put_expiry(TimeMs deadline);

  EngineState& s_;
  Now now_;
  std::string out_;
  std::string scratch_;
  RdbWriter rdb_{out_};
  std::vector<Part> parts_;
  size_t next_ = 0;  // of parts_
  int selected_ = -1;
  uint64_t keys_ = 0;
  uint64_t saved_ = 0;
};

}  // namespace holdfast
