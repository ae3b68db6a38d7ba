// A snapshot of the whole state at one moment, as an RDB file, written in small steps while requests run. A
// key that changes before its step is written at once, before the change (Keyspace::begin_save). A large
// value takes many steps (large_value.h). Meanwhile keys that change wait in memory, because nothing may
// stand between the elements of a value. What waits is at most what existed at the beginning, as each key
// and each element is passed once; it counts as used memory, so that maxmemory limits it. Locks with
// several holders are hashes (hold_codec.h). Data without a place in an RDB file is in auxiliary fields,
// which Redis skips:
//   holdfast-journal   the number of the journal that begins with this moment
//   holdfast-follows   that journal exists: it contains the changes after the snapshot
//   holdfast-tokens    no larger token has been issued
//   holdfast-clock     the clock of all times in this file (clock_text of hold_codec.h)
//   holdfast-records   leases, lease outcomes and lock-delays, as records of journal.h
//   holdfast-hold      the hold of the following key: token, TTL and so on (put_hold of hold_codec.h)
//   holdfast-plain     the following hash is neither a lock nor a record, whatever its fields are
// If the token of an exclusive lock is ahead of the clock, the file also contains a token key for the
// scripts (hold_codec.h): on Redis the size of a new token derives only from the clock or from such a
// record. If a hold has a note, the file contains a token key with the note.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/codec/hold_codec.h"
#include "core/codec/rdb_writer.h"
#include "core/keyspace/keyspace.h"
#include "core/persist/large_value.h"
#include "core/state/context.h"

namespace holdfast {

inline constexpr std::string_view kAuxJournal = "holdfast-journal";
inline constexpr std::string_view kAuxFollows = "holdfast-follows";
inline constexpr std::string_view kAuxTokens = "holdfast-tokens";
inline constexpr std::string_view kAuxAhead = "holdfast-token-ahead";  // value: token, a blank, key
inline constexpr std::string_view kAuxClock = "holdfast-clock";
inline constexpr std::string_view kAuxRecords = "holdfast-records";
inline constexpr std::string_view kAuxHold = "holdfast-hold";
inline constexpr std::string_view kAuxPlain = "holdfast-plain";

class Snapshot {
 public:
  // Begins a snapshot of the present moment. `journal` is the number of the journal that begins with it.
  // `follows`: that journal exists.
  Snapshot(EngineState& s, Now now, uint64_t journal, bool follows);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot();

  // Writes the next small part. Returns true if it was the last.
  bool step();
  // The bytes written and not yet taken by the caller, who clears them: the file without the checksum at
  // its end.
  std::string& bytes() { return out_; }

  uint64_t keys() const { return keys_; }    // number of keys at the beginning
  uint64_t saved() const { return saved_; }  // keys written so far

 private:
  struct Part {
    Keyspace* keys;
    DbIndex place;
    DbIndex number;
  };
  size_t save(const Part& part, Handle h, const Entry& e);
  void write(const Part& part, Handle h, const Entry& e);
  void begin_large(const Part& part, const Entry& e);
  void begin_value(const Entry& e, size_t elements);
  void select(DbIndex number);
  bool step_large();
  void save_string(const Part& part, Handle h, const Entry& e);
  void save_hash(const Entry& e);
  void save_set(const Entry& e);
  void save_list(const Entry& e);
  void save_zset(const Entry& e);
  void save_lock(const Entry& e);
  void save_record_of_string(const Entry& e, const SavedHold& hold);
  void save_record_of_lock(const Entry& e);
  void begin_record(std::string_view key, Token last, int64_t deadline_ms, size_t fields);
  void save_note(std::string_view owner, const SavedHold& hold);
  void put_expiry(TimeMs deadline);

  EngineState& s_;
  Now now_;
  std::string out_;
  std::string scratch_;
  RdbWriter rdb_{out_};
  std::vector<Part> parts_;
  size_t next_ = 0;  // index into parts_
  int selected_ = -1;
  std::deque<std::unique_ptr<LargeValue>> large_;  // still to be written
  bool in_large_ = false;                          // out_ ends with a part of the first of them
  WaitingBytes aside_;                             // keys that were saved meanwhile
  int selected_aside_ = -1;
  uint64_t keys_ = 0;
  uint64_t saved_ = 0;
};

}  // namespace holdfast
