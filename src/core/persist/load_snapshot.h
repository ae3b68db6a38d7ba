// Makes keys, holds and leases of an RDB file: an own snapshot or one of stock Redis. What is past its
// deadline comes back too, and ends with the first tick. snapshot.h has what the auxiliary fields mean.
// What scripts on Redis have noted of locks becomes part of these: tokens go on.
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
#include "core/persist/restore_state.h"

namespace holdfast {

class Restore : private RdbSink {
 public:
  Restore(EngineState& s, Now now, bool skip_unknown);

  // The next bytes of the file, in pieces of any size. False: error() says what is wrong, and where.
  bool feed(std::string_view bytes);
  // There are no more. What stands beside the keys is put back.
  bool finish();

  const std::string& error() const { return error_; }
  uint64_t journal() const { return journal_; }      // 0: the file does not say
  bool journal_follows() const { return follows_; }  // the file says that this journal exists
  uint64_t keys() const { return keys_; }
  uint64_t skipped_keys() const { return skipped_; }

 private:
  void aux(std::string_view name, std::string_view value) override;
  void string(uint64_t db, std::string_view key, std::string_view value, int64_t expire_ms) override;
  void begin_hash(uint64_t db, std::string_view key, int64_t expire_ms, uint64_t fields) override;
  void field(std::string_view name, std::string_view value) override;
  void end_hash() override;
  void skipped(uint64_t db, std::string_view key, std::string_view type) override;

  bool usable(uint64_t db);
  bool restore_as_lock();
  bool keep_as_note();
  void fail(std::string why);

  EngineState& s_;
  Now now_;
  Effects none_;
  Context turn_;  // at the time that the file's clock says
  RdbReader reader_;
  std::string error_;
  uint64_t journal_ = 0;
  bool follows_ = false;
  uint64_t keys_ = 0;
  uint64_t skipped_ = 0;
  std::string records_;            // for the end
  std::optional<SavedHold> hold_;  // of the next key
  bool plain_ = false;             // the next hash is no lock
  DbIndex db_ = 0;
  std::string key_;
  int64_t expire_ms_ = kNoDeadline;
  std::vector<std::pair<std::string, std::string>> fields_;
  std::unique_ptr<HashBody> body_;  // instead of fields_, once they are many
  std::vector<Note> notes_;         // for the end, as their keys may come later
  bool own_ = false;                // the file says which tokens were issued
};

// The number of the journal that begins with a snapshot, from the file's first bytes; 0: they do not say.
uint64_t peek_journal(std::string_view first_bytes);

}  // namespace holdfast
