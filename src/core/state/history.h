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

// The facts of an event beside its texts.
struct LockEventFacts {
  int64_t at_us = 0;  // wall clock, since 1970
  Token token;        // 0: none assigned
  DurationMs waited;
  DurationMs held;
  ConnId conn;  // whose request caused the event; no connection if a timer did
  LockEvent event = LockEvent::kGranted;
  DbIndex db = 0;
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
  // The same without a note, for texts that follow one another in memory, as those of an entry do. They are
  // copied at once.
  LockEventFacts& add_adjacent(std::string_view key, std::string_view owner) {
    const size_t bytes = key.size() + owner.size();
    if (bytes > kInlineBytes || key.data() + key.size() != owner.data()) [[unlikely]]
      return add(key, owner, {});
    Slot& slot = take();
    slot.key_bytes = static_cast<uint32_t>(key.size());
    slot.kept_key = static_cast<uint16_t>(key.size());
    slot.owner_bytes = static_cast<uint16_t>(owner.size());
    slot.note_bytes = 0;
    std::memcpy(slot.text, key.data(), bytes);
    return slot.facts;
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
  static constexpr size_t kInlineBytes = 109;
  struct Slot {
    LockEventFacts facts;
    uint32_t key_bytes = 0;
    uint16_t kept_key = 0;
    uint16_t owner_bytes = 0;
    uint16_t note_bytes = 0;
    bool outside = false;  // `text` begins with a pointer to the texts
    char text[kInlineBytes];
  };
  static constexpr size_t kChunkSlots = 256;
  struct Chunk {
    Slot slots[kChunkSlots];
  };

  // Returns the slot for the next event, without texts outside.
  Slot& take() {
    if (next_ == end_) [[unlikely]]
      open_chunk();
    Slot& slot = *next_++;
    if (slot.outside) [[unlikely]]
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
