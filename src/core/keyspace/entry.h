// One key with its value: a single block of 37 bytes, the key and the value behind them. For a 35-byte key
// and a 40-byte owner that is 112 bytes in all, of which 75 are payload. Owned by a Keyspace; never moved
// by anyone else.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/base/arena.h"
#include "core/base/types.h"

namespace holdfast {

class HashBody;
class LockBody;

enum class EntryType : uint8_t {
  kNone,    // a placeholder: nobody holds the key, but requests wait for it or a lock-delay runs. Not shown
  kString,  // a string, and an exclusive lock whose owner is the value
  kLock,    // a lock with several holders, or one that is not exclusive
  kHash,    // a small hash: its bytes are PackedHash's
  kBigHash,  // a hash of any size: a HashBody*
};

// A value or key too long for the block, and a ttl of over 49 days, live outside of it.
struct LargeRef {
  char* bytes;  // key and value, from malloc
  uint64_t key_size;
  uint64_t value_size;
  int64_t ttl_ms;
  uint64_t room;  // bytes that key and value may take
};

#pragma pack(push, 1)
struct Entry {
  uint64_t token : 53;     // 0: none assigned yet
  uint64_t type : 3;       // EntryType
  uint64_t has_queue : 1;  // a WaitQueue exists for the key
  uint64_t attached : 1;   // the hold has an Attachment: session, lock-delay, listener or lease
  uint64_t large : 1;      // a LargeRef stands in the place of key and value
  uint64_t timed : 1;      // stands in the timing wheel
  uint64_t saved : 1;      // changes its meaning with every snapshot: see Keyspace::begin_save
  uint64_t value_size_high : 3;
  uint64_t deadline_ms : 54;
  uint64_t key_size : 10;
  uint32_t timer_next;  // while not timed, the two hold the time of the last renewal
  uint32_t timer_prev;
  uint64_t held_since_ms : 40;
  uint64_t client_bits : 24;  // the low bits of the serial of the connection that set it last
  uint32_t ttl_ms;            // as last given; the last renewal was at deadline - ttl
  uint8_t value_size_low;
  // Behind it: the key, then the value, or for kLock and kBigHash a pointer; or a LargeRef.
};
#pragma pack(pop)

inline constexpr size_t kEntryHeaderBytes = sizeof(Entry);
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
  return {ref.bytes, ref.key_size};
}
// The string; for a lock the bytes of its LockBody*.
inline std::string_view value_of(const Entry& e) {
  if (!e.large) [[likely]]
    return {tail_of(e) + e.key_size, inline_value_size(e)};
  const LargeRef ref = large_ref(e);
  return {ref.bytes + ref.key_size, ref.value_size};
}
inline LockBody* lock_body_of(const Entry& e) {
  LockBody* body = nullptr;
  std::memcpy(&body, value_of(e).data(), sizeof body);
  return body;
}

inline HashBody* hash_body_of(const Entry& e) {
  HashBody* body = nullptr;
  std::memcpy(&body, value_of(e).data(), sizeof body);
  return body;
}
// Whether the entry is a hold: what is neither string nor lock has no owner.
inline bool is_hold(const Entry& e) {
  return type_of(e) == EntryType::kString || type_of(e) == EntryType::kLock;
}
inline bool is_hash(const Entry& e) {
  return type_of(e) == EntryType::kHash || type_of(e) == EntryType::kBigHash;
}

inline TimeMs deadline_of(const Entry& e) { return {static_cast<int64_t>(e.deadline_ms)}; }
inline TimeMs held_since(const Entry& e) { return {static_cast<int64_t>(e.held_since_ms)}; }
// 40 bits of milliseconds are 34 years of uptime.
inline void set_held_since(Entry& e, TimeMs t) {
  e.held_since_ms = static_cast<uint64_t>(t.count) & ((uint64_t{1} << 40U) - 1);
}
inline void set_client(Entry& e, ConnId client) { e.client_bits = client.serial & ((1U << 24U) - 1); }
inline Token token_of(const Entry& e) { return {e.token}; }
inline bool is_due(const Entry& e, TimeMs now) { return is_due(deadline_of(e), now); }
// The ttl last given, 0 for none.
inline DurationMs ttl_of(const Entry& e) {
  if (deadline_of(e) == kNever) return {0};
  return {e.large ? large_ref(e).ttl_ms : int64_t{e.ttl_ms}};
}
inline TimeMs renewed_at(const Entry& e) {
  if (deadline_of(e) != kNever) return deadline_of(e) - ttl_of(e);
  return {static_cast<int64_t>((uint64_t{e.timer_prev} << 32U) | e.timer_next)};
}

// As TYPE answers.
inline std::string_view type_name(EntryType type) {
  switch (type) {
    case EntryType::kString:
      return "string";
    case EntryType::kLock:
      return "lock";
    case EntryType::kHash:
    case EntryType::kBigHash:
      return "hash";
    case EntryType::kNone:
      break;
  }
  return "none";
}

}  // namespace holdfast
