// The last events of locks, for LOCKS HISTORY: a ring of slots. Owns the slots. Writing an event takes a
// few dozen instructions and, if its texts are short, allocates nothing. In memory only.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/types.h"
#include "core/keyspace/entry.h"
#include "core/state/lock_stats.h"

namespace holdfast {

// The ends of holds follow kGranted in the order of End.
enum class LockEvent : uint8_t {
  kGranted,
  kReleased,
  kExpired,
  kLost,
  kBroken,
  kDeleted,
  kOverwritten,
  kTimeout,
  kDeadlock,
  kDisconnected,
  kUnblocked,
  kRevoke,
};
inline constexpr LockEvent event_of(End why) { return static_cast<LockEvent>(static_cast<int>(why) + 1); }
std::string_view event_name(LockEvent event);

// Whether the event is the end of a hold, or asks for it.
inline constexpr bool concerns_hold(LockEvent event) {
  return event == LockEvent::kRevoke || (event > LockEvent::kGranted && event < LockEvent::kTimeout);
}

// The facts of an event beside its texts.
struct LockEventFacts {
  int64_t at_us = 0;  // wall clock, since 1970
  Token token;        // 0: none assigned
  DurationMs lasted;  // the hold, if the event concerns one, else the wait
  uint64_t conn = 0;  // serial of the connection whose request caused the event; 0: a timer did
  LockEvent event = LockEvent::kGranted;
  DbIndex db = 0;

  DurationMs waited() const { return concerns_hold(event) ? DurationMs{0} : lasted; }
  DurationMs held() const { return concerns_hold(event) ? lasted : DurationMs{0}; }
};

// An event as it is read. The texts are valid until the next event is written.
struct LockEventView : LockEventFacts {
  uint64_t serial = 0;
  std::string_view key;  // cut to History::kMostKeyBytes
  size_t key_bytes = 0;  // size of the whole key
  std::string_view owner;
  std::string_view note;
};

class History {
 public:
  static constexpr size_t kMostKeyBytes = 1024;
  static constexpr size_t kMostOwnerBytes = 512;  // a longer string cannot be the owner of a lock

  // At most `limit` events are kept; 0: none.
  explicit History(size_t limit);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  bool on() const { return limit_ != 0; }
  size_t limit() const { return limit_; }
  // Keeps the newest events that fit.
  void set_limit(size_t limit);
  void clear();

  // Writes the texts of an event, and returns its facts, which the caller sets: so they are written once.
  // It must be on().
  LockEventFacts& add(std::string_view key, std::string_view owner, std::string_view note);
  // The event of an exclusive hold without a note. Copies the entry, if it is small, as one block: texts
  // and token are read from the copy when someone asks for the event. It must be on().
  void add_hold(const Entry& e, int64_t at_us, DurationMs lasted, uint64_t conn, LockEvent event,
                DbIndex db) {
    const size_t bytes = kEntryHeaderBytes + e.key_size + inline_value_size(e);
    Slot* const slot = next_;
    if (e.large || bytes > kInlineBytes || slot == end_ || slot->form == Form::kOutside) [[unlikely]]
      return add_hold_slowly(e, at_us, lasted, conn, event, db);
    ++next_;
    ++last_serial_;
    slot->facts.at_us = at_us;
    slot->facts.lasted = lasted;
    slot->facts.conn = conn;
    slot->facts.event = event;
    slot->facts.db = db;
    slot->form = Form::kEntry;
    copy_entry(slot->text, reinterpret_cast<const char*>(&e), bytes);
  }

  // The serials of the kept events are those from oldest() to newest(). Serials grow by 1 from event to
  // event, so that a reader can ask for the events after those that it has read. newest() < oldest() if
  // there is none.
  uint64_t oldest() const { return last_serial_ - kept() + 1; }
  uint64_t newest() const { return last_serial_; }
  // `serial` must be from oldest() to newest().
  LockEventView at(uint64_t serial) const;

  uint64_t bytes() const { return chunks_.size() * sizeof(Chunk) + text_bytes_; }
  void check_invariants() const;

 private:
  static constexpr size_t kInlineBytes = 125;
  enum class Form : uint8_t {
    kTexts,    // `text` begins with key, owner and note
    kOutside,  // `text` begins with a pointer to them
    kEntry,    // `text` begins with a copy of the entry, which has the sizes and the token too
  };
  struct Slot {
    LockEventFacts facts;
    uint32_t key_bytes = 0;
    uint16_t kept_key = 0;
    uint16_t owner_bytes = 0;
    uint16_t note_bytes = 0;
    Form form = Form::kTexts;
    char text[kInlineBytes];
  };
  static constexpr size_t kChunkSlots = 256;
  struct Chunk {
    Slot slots[kChunkSlots];
  };

  // Copies in steps of 32 bytes, the last of which may overlap. `bytes` is at least the size of a header. A
  // call of memcpy() takes as long again.
  static void copy_entry(char* to, const char* from, size_t bytes) {
    constexpr size_t kStep = 32;
    static_assert(kEntryHeaderBytes > kStep);
    for (size_t i = 0; i + kStep < bytes; i += kStep) std::memcpy(to + i, from + i, kStep);
    std::memcpy(to + bytes - kStep, from + bytes - kStep, kStep);
  }
  // When a slot must be made or freed first, or the entry does not fit into one.
  void add_hold_slowly(const Entry& e, int64_t at_us, DurationMs lasted, uint64_t conn, LockEvent event,
                       DbIndex db);
  // Returns the slot for the next event, without texts outside.
  Slot& take() {
    if (next_ == end_) [[unlikely]]
      open_chunk();
    Slot& slot = *next_++;
    if (slot.form == Form::kOutside) [[unlikely]]
      free_text(slot);
    ++last_serial_;
    return slot;
  }
  void open_chunk();
  void free_text(Slot& slot);
  void free_slots();
  size_t kept() const {
    return static_cast<size_t>(std::min<uint64_t>(last_serial_ - first_serial_, limit_));
  }
  Slot& slot_of(uint64_t serial) const {
    const size_t i = (serial - first_serial_ - 1) % limit_;
    return chunks_[i / kChunkSlots]->slots[i % kChunkSlots];
  }
  static char* outside_text(const Slot& slot);
  static size_t text_bytes(const Slot& slot);

  size_t limit_ = 0;
  LockEventFacts unwanted_;  // of an event that is not kept
  Slot* next_ = nullptr;     // the slot of the next event, up to `end_` in its chunk
  Slot* end_ = nullptr;
  uint64_t last_serial_ = 0;
  uint64_t first_serial_ = 0;  // the next serial came to the first slot, when the ring began
  std::vector<std::unique_ptr<Chunk>> chunks_;  // allocated when the ring reaches them
  uint64_t text_bytes_ = 0;                     // of texts outside the slots
};

}  // namespace holdfast
