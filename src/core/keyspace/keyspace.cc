// The memory of entries, and their places in the tables and the timing wheel.
#include "core/keyspace/keyspace.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <new>

#include "core/keyspace/hash_body.h"
#include "core/keyspace/lock_body.h"
#include "core/keyspace/removed_bodies.h"
#include "core/keyspace/value_body.h"

namespace holdfast {

namespace {

void set_deadline_ms(Entry& e, TimeMs deadline) {
  e.deadline_ms = static_cast<uint64_t>(deadline.count) & ((uint64_t{1} << 54U) - 1);
}

// An entry without a deadline keeps the time of its last renewal in the place of the timing wheel's links.
void set_untimed(Entry& e, TimeMs renewed) {
  set_deadline_ms(e, kNever);
  e.timer_next = static_cast<uint32_t>(renewed.count);
  e.timer_prev = static_cast<uint32_t>(static_cast<uint64_t>(renewed.count) >> 32U);
}

// The number of elements that are freed at once with the entry.
size_t elements_freed_with(const Entry& e) {
  if (type_of(e) == EntryType::kLock) return lock_body_of(e)->size();
  if (!has_value_body(e)) return 0;
  const size_t elements = value_body_of(e)->size();
  return elements <= RemovedBodies::kMostAtOnce ? elements : 0;
}

char* checked(void* bytes) {
  if (bytes == nullptr) throw std::bad_alloc();
  return static_cast<char*>(bytes);
}
// The bytes of a LargeRef. One more, so that they are never none.
char* large_bytes(size_t room, size_t key_size) { return checked(std::malloc(room + key_size + 1)); }
char* zeroed_bytes(size_t room, size_t key_size) { return checked(std::calloc(room + key_size + 1, 1)); }
char* more_bytes(char* bytes, size_t room, size_t key_size) {
  return checked(std::realloc(bytes, room + key_size + 1));
}

void set_large_ref(Entry& e, const LargeRef& ref) { std::memcpy(tail_of(e), &ref, sizeof ref); }

}  // namespace

Keyspace::Keyspace(uint64_t hash_seed, PagePool& pages, RemovedBodies& removed)
    : seed_(hash_seed), removed_(removed), arena_(pages), wheel_(TimerItems{this}) {}

Keyspace::~Keyspace() {
  while (!dismantle_step()) {
  }
}

// x(1.3465 - 0.3465x), for x in [0, 1), is within 1 % of log2(1 + x). Equal steps of it give the tables
// shares that rise from one to two. Fixed point with 31 bits. It is monotonic, so the order of hashes is
// also an order of tables.
size_t Keyspace::table_index(uint64_t hash) {
  constexpr uint64_t kA = 2891586732;  // 1.3465 * 2^31
  constexpr uint64_t kB = 744103084;   // 0.3465 * 2^31
  const uint64_t x = hash >> 33U;
  const uint64_t y = (x * (kA - ((kB * x) >> 31U))) >> 31U;
  const size_t index = y >> 19U;
  return index < kTables ? index : kTables - 1;
}

// `flatten` inlines the look-up in the table.
[[gnu::flatten]] Keyspace::Found Keyspace::find(const Key& key) {
  Found f;
  if (tables_.empty()) return f;
  f.table_ = &tables_[table_index(key.hash)];
  f.slot_ = f.table_->find(key);
  if (f.slot_ == f.table_->end()) return {};
  f.handle_ = *f.slot_;
  f.entry_ = &entry(f.handle_);
  save_first(f.handle_, *f.entry_);
  return f;
}

// The table compares seven bits of the hash: sometimes they are those of several entries. The last one
// wins.
Handle Keyspace::prefetch_entry(const Key& key) const {
  Handle handle = 0;
  if (tables_.empty()) return handle;
  tables_[table_index(key.hash)].find(Candidate{key.hash, handle});
  return handle;
}

void Keyspace::prefetch_timer(Handle h) const {
  const Entry& e = entry(h);
  if (e.timed == 0) return;
  for (const Handle neighbour : {Handle{e.timer_next}, Handle{e.timer_prev}}) {
    if (neighbour >= Arena::kFirstHandle)
      __builtin_prefetch(TimerItems{this}.word(neighbour, offsetof(Entry, timer_next)), 1);
  }
}

// The links of the next entries must be read one after the other. Their keys can be hashed then.
void Keyspace::prefetch_due(Handle first) const {
  std::array<Handle, decltype(wheel_)::kAhead> next{};
  size_t count = 0;
  for (Handle h = first; h != 0 && count < next.size(); h = entry(h).timer_next) {
    arena_.prefetch(h);
    next[count++] = h;
  }
  for (size_t i = 0; i < count; ++i) prefetch_place(key(key_of(entry(next[i]))));
}

// A table that grows hashes all its keys again. Their entries lie anywhere in memory.
void Keyspace::prefetch_all_of_full(const Table& table, const Key& key) const {
  const size_t capacity = table.capacity();
  const bool full = table.size() == capacity - capacity / 8;
  if (!full || capacity == 0 || table.contains(key)) return;
  for (const Handle h : table) arena_.prefetch(h);
}

void Keyspace::make_tables() {
  tables_.reserve(kTables);
  while (tables_.size() < kTables) tables_.emplace_back(0, Hash{this}, Equal{this});
}

std::pair<Keyspace::Found, bool> Keyspace::find_or_insert(const Key& key, EntryType type,
                                                          std::string_view value, TimeMs now) {
  if (tables_.empty()) make_tables();
  Found f;
  f.table_ = &tables_[table_index(key.hash)];
  bool made = false;
  const size_t capacity = f.table_->capacity();
  prefetch_all_of_full(*f.table_, key);
  f.slot_ = f.table_->lazy_emplace(key, [&](const auto& construct) {
    made = true;
    construct(make(key.bytes, type, value));
  });
  f.handle_ = *f.slot_;
  f.entry_ = &entry(f.handle_);
  if (!made) {
    save_first(f.handle_, *f.entry_);
    return {f, false};
  }
  table_bytes_ += (f.table_->capacity() - capacity) * (sizeof(Handle) + 1);
  ++size_;
  if (type == EntryType::kNone) ++placeholders_;
  set_untimed(*f, now);
  set_held_since(*f, now);
  return {f, true};
}

bool Keyspace::fits_inline(size_t key_size, size_t value_size) {
  return key_size <= kMaxInlineKey && value_size <= kMaxInlineValue;
}

size_t Keyspace::block_bytes(const Entry& e) {
  if (e.large) return kEntryHeaderBytes + sizeof(LargeRef);
  return kEntryHeaderBytes + e.key_size + inline_value_size(e);
}

uint64_t Keyspace::entry_bytes(const Entry& e) {
  constexpr uint64_t kPlace = 2 * (sizeof(Handle) + 1);  // a table is between half full and full
  const uint64_t outside = e.large ? large_ref(e).key_size + large_ref(e).value_size : 0;
  return Arena::class_bytes(block_bytes(e)) + kPlace + outside;
}

Handle Keyspace::make(std::string_view key, EntryType type, std::string_view value) {
  const bool inside = fits_inline(key.size(), value.size());
  const Handle h =
      arena_.allocate(kEntryHeaderBytes + (inside ? key.size() + value.size() : sizeof(LargeRef)));
  Entry* e = new (arena_.at(h)) Entry{};
  e->large = !inside;
  e->saved = save_mark_ & 1U;
  fill(*e, key, value);
  set_type(h, type);
  return h;
}

void Keyspace::set_type(Handle h, EntryType type) {
  entry(h).type = static_cast<uint64_t>(type) & 7U;
  if (type <= EntryType::kString) [[likely]]
    return;
  if (type == EntryType::kLock) {
    locks_.insert(h);
  } else {
    ++collections_;
  }
}

// Writes key and value to the place that e.large selects. The block must be large enough.
void Keyspace::fill(Entry& e, std::string_view key, std::string_view value) {
  char* key_to = tail_of(e);
  char* value_to = key_to + key.size();
  if (e.large) {
    LargeRef ref{large_bytes(value.size(), key.size()), key.size(), value.size(), 0, value.size()};
    set_large_ref(e, ref);
    outside_bytes_ += ref.total();
    value_to = ref.bytes;
    key_to = value_to + ref.room;
  } else {
    e.key_size = key.size() & kMaxInlineKey;
    e.value_size_low = static_cast<uint8_t>(value.size());
    e.value_size_high = (value.size() >> 8U) & 7U;
  }
  if (!key.empty()) std::memcpy(key_to, key.data(), key.size());
  if (!value.empty()) std::memcpy(value_to, value.data(), value.size());
}

void Keyspace::destroy_body(Handle h, const Entry& e) {
  if (type_of(e) == EntryType::kLock) {
    locks_.erase(h);
    delete lock_body_of(e);
    return;
  }
  --collections_;
  if (!has_value_body(e)) return;
  outside_bytes_ -= value_body_of(e)->bytes();
  removed_.take(std::unique_ptr<ValueBody>(value_body_of(e)));
}

void Keyspace::destroy_value(Handle h) {
  Entry& e = entry(h);
  if (type_of(e) > EntryType::kString) [[unlikely]]
    destroy_body(h, e);
  if (!e.large) return;
  const LargeRef ref = large_ref(e);
  outside_bytes_ -= ref.total();
  std::free(ref.bytes);
}

void Keyspace::free_block(Handle h) {
  const size_t bytes = block_bytes(entry(h));
  destroy_value(h);
  arena_.release(h, bytes);
}

// Replaces f's block by a new one with the same key, deadline, token, client and flags.
void Keyspace::replace_block(Found& f, EntryType type, std::string_view value, bool large) {
  const std::string_view key = key_of(*f);
  const size_t bytes = kEntryHeaderBytes + (large ? sizeof(LargeRef) : key.size() + value.size());
  const Handle h = arena_.allocate(bytes);
  Entry* e = new (arena_.at(h)) Entry(*f);
  const DurationMs ttl = ttl_of(*f);
  e->large = large;
  fill(*e, key, value);
  if (f->timed) wheel_.remove(f.handle_);
  free_block(f.handle_);
  const_cast<Handle&>(*f.slot_) = h;  // same key, so the order of the table does not change
  f.handle_ = h;
  f.entry_ = e;
  set_type(h, type);
  if (f->timed) wheel_.add(h);
  if (large && deadline_of(*e) != kNever) {
    LargeRef ref = large_ref(*e);
    ref.ttl_ms = ttl.count;
    set_large_ref(*e, ref);
  }
}

void Keyspace::rewrite(Found& f, EntryType type, std::string_view value) {
  if (type_of(*f) == EntryType::kNone) --placeholders_;
  if (type == EntryType::kNone) ++placeholders_;
  const std::string_view key = key_of(*f);
  const bool in_place = !f->large && value.size() <= kMaxInlineValue &&
                        Arena::class_bytes(block_bytes(*f)) ==
                            Arena::class_bytes(kEntryHeaderBytes + key.size() + value.size());
  if (!in_place) {
    const bool long_ttl = ttl_of(*f).count > int64_t{UINT32_MAX};
    replace_block(f, type, value, long_ttl || !fits_inline(key.size(), value.size()));
    return;
  }
  assert(!f->large);
  destroy_value(f.handle_);
  set_type(f.handle_, type);
  f->value_size_low = static_cast<uint8_t>(value.size());
  f->value_size_high = (value.size() >> 8U) & 7U;
  if (!value.empty()) std::memmove(tail_of(*f) + key.size(), value.data(), value.size());
}

// Makes an entry large, for a TTL of over 32 bits or a long value.
void Keyspace::make_large(Found& f) {
  const std::string value(value_of(*f));
  const EntryType type = type_of(*f);
  locks_.erase(f.handle_);
  if (is_collection(*f)) --collections_;
  f->type = static_cast<uint64_t>(EntryType::kString);  // so that a body outlives the block
  replace_block(f, type, value, true);
}

void Keyspace::set_deadline(Found& f, TimeMs deadline, DurationMs ttl, TimeMs renewed) {
  const bool stays = f->timed && deadline != kNever && deadline >= deadline_of(*f);
  if (f->timed && !stays) wheel_.remove(f.handle_);
  f->timed = stays;
  if (ttl.count > int64_t{UINT32_MAX} && !f->large) make_large(f);
  set_deadline_ms(*f, deadline);
  f->ttl_ms = static_cast<uint32_t>(ttl.count);
  if (f->large) {
    LargeRef ref = large_ref(*f);
    ref.ttl_ms = ttl.count;
    set_large_ref(*f, ref);
  }
  if (deadline == kNever) return set_untimed(*f, renewed);
  f->timed = 1;
  if (!stays) wheel_.add(f.handle_);
}

void Keyspace::release_body(Found& f) {
  assert(has_value_body(*f));
  outside_bytes_ -= value_body_of(*f)->bytes();
  --collections_;
  f->type = static_cast<uint64_t>(EntryType::kString) & 7U;  // so that rewrite() does not free the body
  rewrite(f, EntryType::kHash, {});
}

// A value that grows to more than its double gets new bytes: those of the system are zero already, so that
// a wide gap costs nothing.
char* Keyspace::resize(Found& f, size_t size) {
  if (!f->large) make_large(f);
  LargeRef ref = large_ref(*f);
  if (size > ref.room) {
    constexpr size_t kMostSpare = size_t{1} << 20U;
    const size_t room = size + std::min(size / 2, kMostSpare);  // spare room, so that it rarely moves
    const bool fresh = size / 2 > ref.value_size;
    char* const bytes =
        fresh ? zeroed_bytes(room, ref.key_size) : more_bytes(ref.bytes, room, ref.key_size);
    const char* const key = (fresh ? ref.bytes : bytes) + ref.room;
    std::memmove(bytes + room, key, ref.key_size);
    if (fresh) {
      std::memcpy(bytes, ref.bytes, ref.value_size);
      std::free(ref.bytes);
      ref.value_size = size;
    }
    outside_bytes_ += room - ref.room;
    ref.bytes = bytes;
    ref.room = room;
  }
  if (size > ref.value_size) std::memset(ref.bytes + ref.value_size, 0, size - ref.value_size);
  ref.value_size = size;
  set_large_ref(*f, ref);
  return ref.bytes;
}

Keyspace::LooseString Keyspace::copy_string(const Entry& e) {
  const std::string_view value = value_of(e);
  LooseString copy{{large_bytes(value.size(), 0), std::free}, value.size(), value.size()};
  std::memcpy(copy.bytes.get(), value.data(), value.size());
  return copy;
}

Keyspace::LooseString Keyspace::release_string(Found& f) {
  assert(is_large_string(*f));
  LargeRef ref = large_ref(*f);
  char* const own = large_bytes(0, ref.key_size);
  std::memcpy(own, ref.bytes + ref.room, ref.key_size);
  LooseString taken{{ref.bytes, std::free}, ref.value_size, ref.room};
  outside_bytes_ -= ref.room;
  ref.bytes = own;
  ref.value_size = ref.room = 0;
  set_large_ref(*f, ref);
  rewrite(f, EntryType::kHash, {});
  return taken;
}

void Keyspace::adopt_string(Found& f, LooseString string) {
  assert(type_of(*f) == EntryType::kString && value_of(*f).empty());
  if (!f->large) make_large(f);
  LargeRef ref = large_ref(*f);
  char* const bytes = more_bytes(string.bytes.get(), string.room, ref.key_size);
  static_cast<void>(string.bytes.release());
  std::memcpy(bytes + string.room, ref.bytes + ref.room, ref.key_size);
  std::free(ref.bytes);
  outside_bytes_ += string.room - ref.room;
  ref.bytes = bytes;
  ref.value_size = string.size;
  ref.room = string.room;
  set_large_ref(*f, ref);
}

void Keyspace::erase(Found& f) {
  if (f->timed) wheel_.remove(f.handle_);
  if (type_of(*f) == EntryType::kNone) --placeholders_;
  f.table_->erase(f.slot_);
  free_block(f.handle_);
  --size_;
  shrink_if_sparse(*f.table_);
  f = {};
}

// A scan visits the empty slots, too. So a table that had very many entries becomes small again.
void Keyspace::shrink_if_sparse(Table& table) {
  constexpr size_t kSmall = 63;
  constexpr size_t kSparse = 16;
  const size_t capacity = table.capacity();
  if (capacity <= kSmall || table.size() * kSparse > capacity) [[likely]]
    return;
  table.rehash(2 * table.size());
  table_bytes_ -= (capacity - table.capacity()) * (sizeof(Handle) + 1);
}

std::vector<std::pair<uint64_t, Handle>> Keyspace::in_hash_order(size_t table, uint64_t from) const {
  std::vector<std::pair<uint64_t, Handle>> order;
  for (const Handle h : tables_[table]) {
    const uint64_t at = cursor_of(hash_of(h));
    if (at >= from) order.emplace_back(at, h);
  }
  std::sort(order.begin(), order.end(), [this](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : key_of(entry(a.second)) < key_of(entry(b.second));
  });
  return order;
}

// Frees entries and their elements, `kWork` of both together.
bool Keyspace::dismantle_step() {
  constexpr size_t kWork = 512;
  constexpr size_t kTableWork = 8;
  if (tables_.empty()) return arena_.free_pages(1);
  for (size_t work = 0; work < kWork && !tables_.empty(); work += kTableWork) {
    Table& table = tables_.back();
    for (auto it = table.begin(); it != table.end() && work < kWork; ++work) {
      work += elements_freed_with(entry(*it));
      destroy_value(*it);
      table.erase(it++);
    }
    if (!table.empty()) break;
    table_bytes_ -= table.capacity() * (sizeof(Handle) + 1);
    tables_.pop_back();
  }
  return false;
}

void Keyspace::check_invariants() const {
  size_t size = 0;
  size_t placeholders = 0;
  size_t timed = 0;
  size_t collections = 0;
  for (size_t t = 0; t < tables_.size(); ++t) {
    for (const Handle h : tables_[t]) {
      const Entry& e = entry(h);
      ++size;
      placeholders += type_of(e) == EntryType::kNone ? 1 : 0;
      timed += e.timed;
      collections += is_collection(e) ? 1 : 0;
      assert(table_index(hash_of(h)) == t);
      assert(static_cast<bool>(e.timed) == (deadline_of(e) != kNever));
      if (type_of(e) == EntryType::kNone) assert(e.has_queue && !e.timed);
      if (has_value_body(e)) {
        value_body_of(e)->check_invariants();
        assert(value_body_of(e)->size() > 0);
      }
      if (type_of(e) == EntryType::kHash) assert(!value_of(e).empty());
      if (const FieldDeadlines* fields = field_deadlines_of(e)) {
        assert(deadline_of(e) == fields->next() && hash_body_of(e)->visible() > 0);
      }
      if (type_of(e) != EntryType::kLock) continue;
      lock_body_of(e)->check_invariants();
      assert(locks_.contains(h) && lock_body_of(e)->size() > 0 &&
             lock_body_of(e)->first_to_expire()->deadline == deadline_of(e));
    }
  }
  assert(size == size_ && placeholders == placeholders_ && timed == wheel_.size() &&
         collections == collections_);
}

}  // namespace holdfast
