// A hold as it is kept on disk: beside owner and key, with times of the wall clock. One form for the
// journal, the snapshot and the hash of a lock with several holders in an RDB file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/config.h"
#include "core/base/types.h"
#include "core/keyspace/entry.h"
#include "core/keyspace/lock_body.h"

namespace holdfast {

inline constexpr int64_t kMaxWallMs = kNever.count;
inline constexpr int64_t kNoDeadline = -1;  // of a deadline in wall-clock milliseconds

// What times on disk are to be read by. They are the wall clock's, as it was when they were written, and
// that may be set at any time; the engine's clock may not, and is one clock for all servers between two
// starts of the machine. So how far the wall clock was ahead stands beside the times, and gives the
// engine's times again, as long as the machine has not been started anew.
struct SavedClock {
  std::string_view boot_id;  // as in Config; empty: not known
  int64_t ahead_ms = 0;
};

inline SavedClock present_clock(const Config& config, const Now& now) {
  return {config.boot_id, now.ahead_ms()};
}

// The present moment, as the clock says it by which times were written: they are read with its help. Of an
// earlier start of the machine only their wall clock is known, and this one's has to do: as it was when
// they were first read, so that they mean the same at the next reading. Of no known clock: `now` itself.
Now reading_time(const Config& config, const Now& now, const SavedClock& clock);

struct SavedHold {
  Token token;  // 0: none
  DurationMs ttl;
  int64_t held_since_ms = 0;
  DurationMs delay;
  uint64_t lease = 0;
  bool session = false;
};

struct SavedHolder {
  std::string_view owner;
  Capacity capacity;
  int64_t deadline_ms = kNoDeadline;
  SavedHold hold;
};

inline int64_t saved_deadline(TimeMs deadline, const Now& now) {
  return deadline == kNever ? kNoDeadline : std::max<int64_t>(0, now.to_wall_ms(deadline));
}

// What is past lies at the start of the engine's clock, where everything is due.
inline TimeMs restored_time(int64_t wall_ms, const Now& now) {
  return {std::clamp<int64_t>(now.from_wall_ms(wall_ms).count, 0, kMaxTtlMs + now.mono.count)};
}
inline TimeMs restored_deadline(int64_t wall_ms, const Now& now) {
  return wall_ms == kNoDeadline ? kNever : restored_time(wall_ms, now);
}

// A time since which a hold is held may have lost its upper bits: see Entry.
inline SavedHold saved_hold(Token token, DurationMs ttl, TimeMs held_since, const Attachment* a,
                            const Now& now) {
  SavedHold hold{token, ttl, std::max<int64_t>(0, now.to_wall_ms(held_since)), {}, 0, false};
  if (a == nullptr) return hold;
  hold.delay = a->delay;
  hold.lease = a->lease;
  hold.session = a->session;
  return hold;
}
inline SavedHolder saved_holder(const Holder& h, const Now& now) {
  return {h.owner, h.capacity, saved_deadline(h.deadline, now),
          saved_hold(h.token, h.ttl, h.held_since, &h.attachment, now)};
}

void put_clock(std::string& out, const SavedClock& clock);
SavedClock read_clock(ByteReader& in);
void put_deadline(std::string& out, int64_t wall_ms);
int64_t read_deadline(ByteReader& in);
void put_hold(std::string& out, const SavedHold& hold);
SavedHold read_hold(ByteReader& in);
void put_holder(std::string& out, const SavedHolder& holder);
SavedHolder read_holder(ByteReader& in);

// A lock with several holders is a hash in an RDB file, which scripts on stock Redis can read and write:
// one field says so, and one for each holder has the owner behind "o:" in its name and numbers in its
// value: "token capacity deadline ttl held-since delay session lease", times in milliseconds, -1 for no
// deadline.
inline constexpr std::string_view kLockMarker = "holdfast:lock";
inline constexpr std::string_view kLockMarkerValue = "1";
inline constexpr std::string_view kOwnerPrefix = "o:";
std::string holder_text(const SavedHolder& holder);
// nullopt: it is no such text. The owner is the caller's to fill in.
std::optional<SavedHolder> read_holder_text(std::string_view text);

// "ahead boot-id".
std::string clock_text(const SavedClock& clock);
// Its id is a view of the text. nullopt: it is no such text.
std::optional<SavedClock> read_clock_text(std::string_view text);

// What the scripts on stock Redis note of a lock beside it: a hash, named "holdfast:token:{T}K" for the key
// K with T for what Redis Cluster hashes of it. Its fields are the key, the largest token yet and, of an
// exclusive hold, the SHA-1 of its owner and the numbers as above.
inline constexpr std::string_view kNotePrefix = "holdfast:token:{";
inline constexpr std::string_view kNoteOf = "of";
inline constexpr std::string_view kNoteLast = "last";
inline constexpr std::string_view kNoteOwner = "owner";
inline constexpr std::string_view kNoteHold = "hold";
std::string note_key(std::string_view key);

}  // namespace holdfast
