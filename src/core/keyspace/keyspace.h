// One database: keys to entries, and the wheel that says which of them are due. Owns every entry. Knows
// nothing of waiters, connections or commands: what an entry's end means is decided by who calls erase().
//
// The table is 4096 small tables, so that growing never stalls. Their shares of the keys rise evenly from
// one to two, so that they grow one after the other and never all at once.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <algorithm>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/base/timing_wheel.h"
#include "core/base/types.h"
#include "core/keyspace/entry.h"

namespace holdfast {

class Keyspace {
  struct Hash {
    using is_transparent = void;
    const Keyspace* keys;
    size_t operator()(const Key& k) const { return k.hash; }
    size_t operator()(Handle h) const { return keys->hash_of(h); }
  };
  struct Equal {
    using is_transparent = void;
    const Keyspace* keys;
    bool operator()(Handle a, Handle b) const { return a == b; }
    bool operator()(Handle a, const Key& k) const { return key_of(keys->entry(a)) == k.bytes; }
    bool operator()(const Key& k, Handle a) const { return key_of(keys->entry(a)) == k.bytes; }
  };
  using Table = absl::flat_hash_set<Handle, Hash, Equal>;

 public:
  static constexpr size_t kTables = 4096;
  static constexpr uint64_t kHeadroomBytes = uint64_t{1} << 30U;
  static constexpr uint64_t kCursorBits = 48;  // of a SCAN cursor; a double holds it exactly

  // Where a key was found. Good until the next insertion or removal in this keyspace.
  class Found {
   public:
    Found() = default;
    explicit operator bool() const { return handle_ != 0; }
    Handle handle() const { return handle_; }
    Entry& operator*() const { return *entry_; }
    Entry* operator->() const { return entry_; }

   private:
    friend class Keyspace;
    Handle handle_ = 0;
    Entry* entry_ = nullptr;
    Table* table_ = nullptr;
    Table::iterator slot_;
  };

  // `pages` must outlive it.
  Keyspace(uint64_t hash_seed, PagePool& pages);
  Keyspace(const Keyspace&) = delete;
  Keyspace& operator=(const Keyspace&) = delete;
  ~Keyspace();

  Key key(std::string_view bytes) const { return {bytes, hash_bytes(bytes, seed_)}; }
  Found find(const Key& key);
  Entry& entry(Handle h) const { return *static_cast<Entry*>(arena_.at(h)); }

  // Finds the key, or makes an entry for it: of the given type and value, without deadline, token or
  // client. One look-up either way.
  std::pair<Found, bool> find_or_insert(const Key& key, EntryType type, std::string_view value, TimeMs now);

  // Gives an entry another type and value; deadline, token, client and flags stay. The body of a lock
  // or hash is deleted. The entry may move: attachments named by its handle are the caller's to carry over.
  void rewrite(Found& f, EntryType type, std::string_view value);

  // Whether the value can be changed where it is, whatever its size.
  static bool can_resize(const Entry& e) { return e.large && type_of(e) == EntryType::kString; }
  // Makes such a value `size` bytes long, which is no less than it was; what is new is zero. Returns it.
  // Only now and then the value moves.
  char* resize(Found& f, size_t size);

  // A body of a kBigHash has grown or shrunk, from nothing where it is new: for used_bytes().
  void add_body_growth(int64_t bytes) { outside_bytes_ += static_cast<uint64_t>(bytes); }

  // Sets or lifts (kNever) the deadline; `ttl` is how long that is from `renewed`.
  void set_deadline(Found& f, TimeMs deadline, DurationMs ttl, TimeMs renewed);

  void erase(Found& f);

  // Hands the keys of due entries to `expire`, which must erase() or rewrite() each; returns the budget
  // left.
  template <class Expire>
  size_t expire_due(TimeMs now, size_t budget, Expire expire) {
    return wheel_.advance(now, budget, [&](Handle h) { expire(key(key_of(entry(h)))); });
  }
  std::optional<TimeMs> next_due() const { return wheel_.next_due(); }

  // Memory of an entry with its key and value, its place in the table too; not what a value points to.
  static uint64_t entry_bytes(const Entry& e);

  size_t size() const { return size_; }  // entries, placeholders included
  size_t live() const { return size_ - placeholders_; }
  size_t timed() const { return wheel_.size(); }  // entries that will expire
  // The entries of type kLock, in no order that may show.
  const absl::flat_hash_set<Handle>& locks() const { return locks_; }
  uint64_t used_bytes() const { return arena_.used_bytes() + outside_bytes_ + table_bytes_; }

  // Whether it nears what its handles can name: nothing that grows it may run any more.
  bool is_full() const { return arena_.reserved_bytes() + kHeadroomBytes > Arena::kMaxBytes; }

  // Calls `f(const Entry&)` for the entries at and behind `cursor`, in the order of their hashes, until `f`
  // has been called for at least `count`, which it may lower. Returns the cursor to go on from; 0: done. An
  // entry that is there all the time is met however the tables grow meanwhile.
  template <class F>
  uint64_t scan(uint64_t cursor, const size_t& count, F f) const;

  // A snapshot begins: each entry that is there now is handed to `save` once, before it can change: by
  // save_step(), or, where it is looked for before its turn, by what finds it.
  using SaveEntry = std::function<void(Handle, const Entry&)>;
  void begin_save(SaveEntry save);
  // Hands over the next few entries, some hundred at most; true: all have been.
  bool save_step();
  // The snapshot is complete, or given up.
  void end_save() { save_ = nullptr; }
  bool saving() const { return save_ != nullptr; }

  // While it is dismantled: what it still has.
  uint64_t waiting_bytes() const {
    return std::min(arena_.used_bytes(), arena_.reserved_bytes()) + outside_bytes_ + table_bytes_ +
           tables_.size() * sizeof(Table);
  }
  // Whether it has neither keys nor much memory.
  bool is_bare() const { return size_ == 0 && arena_.reserved_bytes() <= Arena::kPageBytes; }

  // One step of giving the memory back after everything in it became useless; true when done. Nothing else
  // may be called any more.
  bool dismantle_step();

  void check_invariants() const;

 private:
  struct TimerItems {
    const Keyspace* keys;
    uint32_t& next(Handle h) const { return *word(h, 16); }
    uint32_t& prev(Handle h) const { return *word(h, 20); }
    int64_t deadline_ms(Handle h) const { return static_cast<int64_t>(keys->entry(h).deadline_ms); }
    uint32_t* word(Handle h, size_t offset) const {
      return reinterpret_cast<uint32_t*>(static_cast<char*>(keys->arena_.at(h)) + offset);
    }
  };
  static_assert(offsetof(Entry, timer_next) == 16 && offsetof(Entry, timer_prev) == 20);

  void save_first(Handle h, Entry& e) {
    if (save_ == nullptr || e.saved == save_mark_) [[likely]]
      return;
    save_now(h, e);
  }
  void save_now(Handle h, Entry& e);
  uint64_t hash_of(Handle h) const { return hash_bytes(key_of(entry(h)), seed_); }
  static size_t table_index(uint64_t hash);
  static uint64_t cursor_of(uint64_t hash) { return hash >> (64 - kCursorBits); }
  Handle make(std::string_view key, EntryType type, std::string_view value);
  void destroy_value(Handle h);
  void set_type(Handle h, EntryType type);
  void free_block(Handle h);
  static size_t block_bytes(const Entry& e);
  static bool fits_inline(size_t key_size, size_t value_size);
  void fill(Entry& e, std::string_view key, std::string_view value);
  void replace_block(Found& f, EntryType type, std::string_view value, bool large);
  void make_large(Found& f);
  std::vector<std::pair<uint64_t, Handle>> in_hash_order(size_t table, uint64_t from) const;

  uint64_t seed_;
  Arena arena_;
  std::vector<Table> tables_;  // empty until the first insertion
  TimingWheel<TimerItems> wheel_;
  absl::flat_hash_set<Handle> locks_;
  size_t size_ = 0;
  size_t placeholders_ = 0;
  uint64_t outside_bytes_ = 0;  // of LargeRefs
  uint64_t table_bytes_ = 0;
  SaveEntry save_;               // null: no snapshot is being taken
  size_t save_table_ = 0;        // the next to be handed over
  bool marks_missing_ = false;   // of entries that no save has passed yet
  unsigned char save_mark_ = 0;  // Entry::saved of what needs no saving
};

template <class F>
uint64_t Keyspace::scan(uint64_t cursor, const size_t& count, F f) const {
  if (tables_.empty()) return 0;
  size_t met = 0;
  uint64_t last = 0;
  for (size_t t = table_index(cursor << (64 - kCursorBits)); t < kTables; ++t) {
    if (tables_[t].empty()) continue;
    for (const auto& [at, handle] : in_hash_order(t, cursor)) {
      if (met >= count && at != last) return at;  // entries of one cursor value belong to one step
      f(std::as_const(entry(handle)));
      ++met;
      last = at;
    }
  }
  return 0;
}

}  // namespace holdfast
