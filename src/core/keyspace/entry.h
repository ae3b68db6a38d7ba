// One key with its value: a single block with a header of 37 bytes, then the key and the value. A 35-byte
// key and a 40-byte owner take 112 bytes in all, of which 75 are payload. A Keyspace owns the entry, and
// only the Keyspace moves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>

#include "core/base/arena.h"
#include "core/base/types.h"

namespace holdfast {

class LockBody;
class ValueBody;

enum class EntryType : uint8_t {
  kNone,    // a placeholder, not visible: no holder, but waiters or a lock-delay
  kString,  // a string, and an exclusive lock whose owner is the value
  kLock,    // a lock with several holders, or a lock that is not exclusive
  kHash,    // a small hash, in the form of PackedHash
  // From here on, a value outside of the entry: a ValueBody*.
  kBigHash,  // a hash of any size: a HashBody*
  kList,     // a ListBody*
  kSet,      // a SetBody*
  kZset,     // a ZsetBody*: a sorted set
};

// Holds a value or key that is too long for the block, or a TTL of over 49 days. The key is behind the
// value, so that the bytes can move to another key without a copy of the value.
struct LargeRef {
  char* bytes;  // from malloc: `room` bytes, of which the value uses the first ones; then the key
  uint64_t key_size;
  uint64_t value_size;
  int64_t ttl_ms;
  uint64_t room;  // capacity for the value

  uint64_t total() const { return room + key_size; }
};

// Aligned as its block is: else the compiler reads the fields byte by byte.
struct [[gnu::packed, gnu::aligned(8)]] Entry {
  uint64_t token : 53;     // 0: none assigned yet
  uint64_t type : 3;       // EntryType
  uint64_t has_queue : 1;  // a WaitQueue exists for the key
  uint64_t attached : 1;   // the hold has an Attachment: see LockBody
  uint64_t large : 1;      // a LargeRef replaces key and value
  uint64_t timed : 1;      // is in the timing wheel
  uint64_t saved : 1;      // its meaning alternates with every snapshot: see Keyspace::begin_save
  uint64_t value_size_high : 3;
  uint64_t deadline_ms : 54;
  uint64_t key_size : 10;
  uint32_t timer_next;  // an entry that is not timed keeps the time of its last renewal in these two
  uint32_t timer_prev;
  uint64_t held_since_ms : 40;
  uint64_t client_bits : 24;  // low bits of the serial of the connection that last set the key
  uint32_t ttl_ms;            // as last set; the last renewal was at deadline - ttl
  uint8_t value_size_low;
  // Behind it: the key, then the value (a pointer for kLock and a ValueBody), or a LargeRef instead of
  // both.
};

// Without the padding, where the key begins.
inline constexpr size_t kEntryHeaderBytes = offsetof(Entry, value_size_low) + 1;
static_assert(kEntryHeaderBytes == 37);
inline char* tail_of(Entry& e) { return reinterpret_cast<char*>(&e) + kEntryHeaderBytes; }
inline const char* tail_of(const Entry& e) { return reinterpret_cast<const char*>(&e) + kEntryHeaderBytes; }
inline constexpr size_t kMaxInlineKey = 1023;
inline constexpr size_t kMaxInlineValue = 2047;

inline LargeRef large_ref(const Entry& e) {
  LargeRef ref;
  std::memcpy(&ref, tail_of(e), sizeof ref);
  return ref;
}
inline size_t inline_value_size(const Entry& e) {
  return (static_cast<size_t>(e.value_size_high) << 8U) | e.value_size_low;
}

inline EntryType type_of(const Entry& e) { return static_cast<EntryType>(e.type); }

inline std::string_view key_of(const Entry& e) {
  if (!e.large) [[likely]]
    return {tail_of(e), e.key_size};
  const LargeRef ref = large_ref(e);
  return {ref.bytes + ref.room, ref.key_size};
}
// Returns the string; for a lock or a ValueBody, the bytes of the pointer to its body.
inline std::string_view value_of(const Entry& e) {
  if (!e.large) [[likely]]
    return {tail_of(e) + e.key_size, inline_value_size(e)};
  const LargeRef ref = large_ref(e);
  return {ref.bytes, ref.value_size};
}
inline LockBody* lock_body_of(const Entry& e) {
  LockBody* body = nullptr;
  std::memcpy(&body, value_of(e).data(), sizeof body);
  return body;
}

inline ValueBody* value_body_of(const Entry& e) {
  ValueBody* body = nullptr;
  std::memcpy(&body, value_of(e).data(), sizeof body);
  return body;
}
// Makes a body the value of an entry. `place` gets the content of the entry, which are the bytes of the
// pointer to the body, and writes it; then the entry owns the body. Returns the body.
template <class Body, class Place>
Body* place_body(std::unique_ptr<Body> body, Place place) {
  static_assert(std::is_same_v<Body, LockBody> || std::is_same_v<Body, ValueBody>, "as it is read");
  Body* const owned = body.release();
  place(std::string_view(reinterpret_cast<const char*>(&owned), sizeof owned));
  return owned;
}
// Whether the value is a ValueBody.
inline bool has_value_body(const Entry& e) { return type_of(e) >= EntryType::kBigHash; }
// Whether the entry is a hold. Only strings and locks have an owner.
inline bool is_hold(const Entry& e) {
  return type_of(e) == EntryType::kString || type_of(e) == EntryType::kLock;
}
// Whether the value has no owner, and is thus no lock: a hash, list, set or sorted set.
inline bool is_collection(const Entry& e) { return type_of(e) >= EntryType::kHash; }
inline bool is_hash(const Entry& e) {
  return type_of(e) == EntryType::kHash || type_of(e) == EntryType::kBigHash;
}

inline TimeMs deadline_of(const Entry& e) { return {static_cast<int64_t>(e.deadline_ms)}; }
inline TimeMs held_since(const Entry& e) { return {static_cast<int64_t>(e.held_since_ms)}; }
// 40 bits of milliseconds suffice for 34 years of uptime.
inline void set_held_since(Entry& e, TimeMs t) {
  e.held_since_ms = static_cast<uint64_t>(t.count) & ((uint64_t{1} << 40U) - 1);
}
inline void set_client(Entry& e, ConnId client) { e.client_bits = client.serial & ((1U << 24U) - 1); }
inline Token token_of(const Entry& e) { return {e.token}; }
inline bool is_due(const Entry& e, TimeMs now) { return is_due(deadline_of(e), now); }
// The TTL as last set; 0 for none.
inline DurationMs ttl_of(const Entry& e) {
  if (deadline_of(e) == kNever) return {0};
  return {e.large ? large_ref(e).ttl_ms : int64_t{e.ttl_ms}};
}
inline TimeMs renewed_at(const Entry& e) {
  if (deadline_of(e) != kNever) return deadline_of(e) - ttl_of(e);
  return {static_cast<int64_t>((uint64_t{e.timer_prev} << 32U) | e.timer_next)};
}

// Returns the type as the command TYPE shows it.
inline std::string_view type_name(EntryType type) {
  switch (type) {
    case EntryType::kString:
      return "string";
    case EntryType::kLock:
      return "lock";
    case EntryType::kHash:
    case EntryType::kBigHash:
      return "hash";
    case EntryType::kList:
      return "list";
    case EntryType::kSet:
      return "set";
    case EntryType::kZset:
      return "zset";
    case EntryType::kNone:
      break;
  }
  return "none";
}

}  // namespace holdfast
