// Restores keys, holds and leases from an RDB file: a snapshot of Holdfast or of stock Redis. Also restores
// expired keys and holds, which end with the first tick. snapshot.h explains the auxiliary fields. The
// token keys that scripts on Redis wrote about locks are merged into these locks, so that their tokens
// continue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codec/rdb_reader.h"
#include "core/keyspace/hash_body.h"
#include "core/keyspace/value_body.h"
#include "core/persist/restore_state.h"
#include "core/state/effects.h"

namespace holdfast {

class Restore : private RdbSink {
 public:
  Restore(EngineState& s, Now now, bool skip_unknown);

  // Reads the next bytes of the file, in pieces of any size. Returns false on an error; error() then
  // contains the reason and the place.
  bool feed(std::string_view bytes);
  // Ends the file, and restores the records beside the keys. Returns false on an error.
  bool finish();

  const std::string& error() const { return error_; }
  uint64_t journal() const { return journal_; }      // 0: the file has none
  bool journal_follows() const { return follows_; }  // the file says that this journal exists
  uint64_t keys() const { return keys_; }
  uint64_t skipped_keys() const { return skipped_; }

 private:
  void aux(std::string_view name, std::string_view value) override;
  void string(uint64_t db, std::string_view key, std::string_view value, int64_t expire_ms) override;
  void begin_collection(RdbCollection kind, uint64_t db, std::string_view key, int64_t expire_ms) override;
  void field(std::string_view name, std::string_view value) override;
  void timed_field(std::string_view name, std::string_view value, int64_t deadline_ms) override;
  void element(std::string_view text, double score) override;
  void end_collection() override;
  void library(std::string_view code) override;
  void skipped(uint64_t db, std::string_view key, std::string_view type) override;

  void gather_in_body();
  bool usable(uint64_t db);
  void end_hash();
  void begin_body(RdbCollection kind);
  bool restore_as_lock();
  bool keep_as_token_record();
  void fail(std::string why);

  EngineState& s_;
  Now now_;
  Effects none_;
  Context ctx_;  // its time is that of the file's clock
  RdbReader reader_;
  std::string error_;
  uint64_t journal_ = 0;
  bool follows_ = false;
  uint64_t keys_ = 0;
  uint64_t skipped_ = 0;
  std::string records_;            // applied at the end
  std::optional<SavedHold> hold_;  // the hold of the next key
  bool plain_ = false;             // the next hash is not a lock
  DbIndex db_ = 0;
  std::string key_;
  int64_t expire_ms_ = kNoDeadline;
  std::vector<std::pair<std::string, std::string>> fields_;
  std::unique_ptr<HashBody> body_;          // replaces fields_ if they are many
  EntryType type_{};                        // of the list, set or sorted set that is being read
  std::unique_ptr<ValueBody> value_;        // the same; null: a hash
  std::vector<TokenRecord> token_records_;  // applied at the end, as their keys may follow later
  bool own_ = false;                        // a Holdfast file: it contains the issued tokens
};

// The journal that begins with a snapshot.
struct PeekedJournal {
  uint64_t number = 0;   // 0: the file has none, so it is not of Holdfast
  bool follows = false;  // see Restore::journal_follows()
};
// Reads it from the file's first bytes.
PeekedJournal peek_journal(std::string_view first_bytes);

}  // namespace holdfast
