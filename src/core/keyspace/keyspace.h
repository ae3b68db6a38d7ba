// One database: keys to entries, and the timing wheel with their deadlines. Owns every entry. Knows nothing
// of waiters, connections or commands: the caller of erase() handles the effects of an entry's end.
//
// The table consists of 4096 small tables, so that growth never delays clients for long. Their shares of
// the keys rise evenly from one to two, so that they grow one after the other and never all at once.
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

class RemovedBodies;

class Keyspace {
  // A key whose entry may still be far from the processor. The comparison does not read the entry: it
  // prefetches it, notes its handle, and fails.
  struct Candidate {
    uint64_t hash;
    Handle& handle;
  };
  struct Hash {
    using is_transparent = void;
    const Keyspace* keys;
    size_t operator()(const Key& k) const { return k.hash; }
    size_t operator()(const Candidate& c) const { return c.hash; }
    size_t operator()(Handle h) const { return keys->hash_of(h); }
  };
  struct Equal {
    using is_transparent = void;
    const Keyspace* keys;
    bool operator()(Handle a, Handle b) const { return a == b; }
    bool operator()(Handle a, const Candidate& c) const {
      keys->arena_.prefetch(a);
      c.handle = a;
      return false;
    }
    bool operator()(Handle a, const Key& k) const { return key_of(keys->entry(a)) == k.bytes; }
    bool operator()(const Key& k, Handle a) const { return key_of(keys->entry(a)) == k.bytes; }
  };
  using Table = absl::flat_hash_set<Handle, Hash, Equal>;

 public:
  static constexpr size_t kTables = 4096;
  static constexpr uint64_t kHeadroomBytes = uint64_t{1} << 30U;
  static constexpr uint64_t kCursorBits = 48;  // bits of a SCAN cursor; a double holds it exactly

  // The place of a key that was found. Valid until the next insertion or removal in this keyspace.
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

  // `removed` takes the bodies of removed values. It and `pages` must outlive the keyspace.
  Keyspace(uint64_t hash_seed, PagePool& pages, RemovedBodies& removed);
  Keyspace(const Keyspace&) = delete;
  Keyspace& operator=(const Keyspace&) = delete;
  ~Keyspace();

  Key key(std::string_view bytes) const { return {bytes, hash_bytes(bytes, seed_)}; }
  Found find(const Key& key);
  Entry& entry(Handle h) const { return *static_cast<Entry*>(arena_.at(h)); }

  // Three steps that prefetch the memory for a look-up and a change of a key. Each step reads what the step
  // before has fetched, so a caller does one step for many keys, and then the next one. The second returns
  // the handle of the entry; 0 if there is probably none. A wrong guess costs time only.
  void prefetch_place(const Key& key) const {
    if (!tables_.empty()) tables_[table_index(key.hash)].prefetch(key);
  }
  Handle prefetch_entry(const Key& key) const;
  void prefetch_timer(Handle h) const;

  // Finds the key, or creates an entry for it with the given type and value, without deadline, token or
  // client. Returns the place and whether the entry is new. Either way takes one look-up.
  std::pair<Found, bool> find_or_insert(const Key& key, EntryType type, std::string_view value, TimeMs now);

  // Replaces the type and value of an entry. Deadline, token, client and flags stay. Deletes the old body.
  // The entry may move: the caller must update attachments that are stored by its handle.
  void rewrite(Found& f, EntryType type, std::string_view value);

  // Whether the value is a string with bytes of its own, which needs no copy when it grows or moves.
  static bool is_large_string(const Entry& e) { return e.large && type_of(e) == EntryType::kString; }
  // Grows a string to `size` bytes, which must not be less than its size. New bytes are zero. Makes it
  // large, which moves the entry. Returns the value; that of a large string moves rarely.
  char* resize(Found& f, size_t size);

  // The bytes of a large string that has no entry at the moment.
  struct LooseString {
    std::unique_ptr<char, void (*)(void*)> bytes;
    size_t size;
    size_t room;
  };
  static LooseString copy_string(const Entry& e);
  // Takes the bytes of a large string. The entry becomes an empty small hash, as with release_body().
  LooseString release_string(Found& f);
  // Gives such bytes to the entry of an empty string. The entry may move.
  void adopt_string(Found& f, LooseString string);

  // Makes the entry an empty small hash without freeing its ValueBody, which now belongs to the caller.
  void release_body(Found& f);
  // Counts the growth of a ValueBody, which may be negative, in used_bytes(). A new body grows from 0.
  void add_body_growth(int64_t bytes) { outside_bytes_ += static_cast<uint64_t>(bytes); }

  // Sets the deadline, or removes it (kNever). `ttl` is the time from `renewed` to the deadline. An entry
  // whose deadline moves to a later time stays in its place in the wheel, so that no neighbour is touched.
  void set_deadline(Found& f, TimeMs deadline, DurationMs ttl, TimeMs renewed);

  void erase(Found& f);

  // Calls `expire` with the keys of due entries. `expire` must erase() or rewrite() each of them. Returns
  // the rest of the budget.
  template <class Expire>
  size_t expire_due(TimeMs now, size_t budget, Expire expire) {
    return wheel_.advance(
        now, budget, [&](Handle h) { expire(key(key_of(entry(h)))); },
        [this](Handle first) { prefetch_due(first); });
  }
  std::optional<TimeMs> next_due() const { return wheel_.next_due(); }

  // Memory of an entry with its key, value and place in the table, without the body that a value points to.
  static uint64_t entry_bytes(const Entry& e);

  size_t size() const { return size_; }  // entries, placeholders included
  size_t live() const { return size_ - placeholders_; }
  size_t timed() const { return wheel_.size(); }  // entries that will expire
  size_t strings() const { return live() - locks_.size() - collections_; }
  // The entries of type kLock. The order is arbitrary, so it must not be visible to clients.
  const absl::flat_hash_set<Handle>& locks() const { return locks_; }
  uint64_t used_bytes() const { return arena_.used_bytes() + outside_bytes_ + table_bytes_; }

  // Whether it is near the range of its handles. Then no command that may grow it may run.
  bool is_full() const { return arena_.reserved_bytes() + kHeadroomBytes > Arena::kMaxBytes; }

  // Calls `f(const Entry&)` for the entries at and behind `cursor`, in the order of their hashes, until `f`
  // has been called for at least `count` entries; `f` may lower `count`. Returns the next cursor; 0: done.
  // A scan visits every entry that exists all the time, even if the tables grow meanwhile.
  template <class F>
  uint64_t scan(uint64_t cursor, const size_t& count, F f) const;

  // Begins a snapshot. Each entry that exists now is passed to `save` once, before it can change: by
  // save_step(), or earlier by the look-up that finds it. `save` returns the number of saved bytes.
  using SaveEntry = std::function<size_t(Handle, const Entry&)>;
  void begin_save(SaveEntry save);
  // Saves the next entries: 256, or 1/16 of a table if that is more; fewer if they have many bytes. Returns
  // true when all are saved.
  bool save_step();
  // Ends the snapshot, complete or not.
  void end_save() { save_ = nullptr; }
  bool saving() const { return save_ != nullptr; }

  // Bytes that still wait to be freed while it is dismantled.
  uint64_t waiting_bytes() const {
    return std::min(arena_.used_bytes(), arena_.reserved_bytes()) + outside_bytes_ + table_bytes_ +
           tables_.size() * sizeof(Table);
  }
  // Whether it has neither keys nor much memory.
  bool is_bare() const { return size_ == 0 && arena_.reserved_bytes() <= Arena::kPageBytes; }

  // Frees a part of the memory, when no entry is needed any more. Returns true when all is freed. No other
  // function may be called after the first call.
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
  size_t save_now(Handle h, Entry& e);
  uint64_t hash_of(Handle h) const { return hash_bytes(key_of(entry(h)), seed_); }
  static size_t table_index(uint64_t hash);
  static uint64_t cursor_of(uint64_t hash) { return hash >> (64 - kCursorBits); }
  void make_tables();
  void shrink_if_sparse(Table& table);
  void prefetch_due(Handle first) const;
  void prefetch_all_of_full(const Table& table, const Key& key) const;
  Handle make(std::string_view key, EntryType type, std::string_view value);
  void destroy_value(Handle h);
  void destroy_body(Handle h, const Entry& e);
  void set_type(Handle h, EntryType type);
  void free_block(Handle h);
  static size_t block_bytes(const Entry& e);
  static bool fits_inline(size_t key_size, size_t value_size);
  void fill(Entry& e, std::string_view key, std::string_view value);
  void replace_block(Found& f, EntryType type, std::string_view value, bool large);
  void make_large(Found& f);
  std::vector<std::pair<uint64_t, Handle>> in_hash_order(size_t table, uint64_t from) const;

  uint64_t seed_;
  RemovedBodies& removed_;
  Arena arena_;
  std::vector<Table> tables_;  // empty until the first insertion
  TimingWheel<TimerItems> wheel_;
  absl::flat_hash_set<Handle> locks_;
  size_t size_ = 0;
  size_t placeholders_ = 0;
  size_t collections_ = 0;      // entries for which is_collection() is true
  uint64_t outside_bytes_ = 0;  // of LargeRefs and ValueBodies
  uint64_t table_bytes_ = 0;
  SaveEntry save_;               // null: no snapshot runs
  size_t save_table_ = 0;        // the next table to save
  bool marks_missing_ = false;   // not all entries have the mark of the last save
  unsigned char save_mark_ = 0;  // Entry::saved of entries that need no saving
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
