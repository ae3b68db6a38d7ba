// The form of a hold on disk, beside its owner and key, with wall-clock times. The journal, the snapshot
// and the hash of a lock with several holders in an RDB file use the same form.
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
inline constexpr int64_t kNoDeadline = -1;  // a deadline in wall-clock milliseconds: none

// The clock by which the server reads times on disk. Those times follow the wall clock of the moment of
// writing, and the wall clock may be set at any time. The engine's clock cannot be set, and is the same for
// all servers until the machine restarts. So the writer saves the difference of the two clocks beside the
// times. With it, a reader gets the engine's times again, until the machine restarts.
struct SavedClock {
  std::string_view boot_id;  // as in Config; empty: not known
  int64_t ahead_ms = 0;
};

inline SavedClock present_clock(const Config& config, const Now& now) {
  return {config.boot_id, now.ahead_ms()};
}

// Returns the present moment by the clock of the saved times, to convert them. After a restart of the
// machine, only the wall clock of the earlier start is known. Then it uses the difference of the first
// reading after the restart, so that the times mean the same at every later reading. Returns `now` if a
// clock is not known.
Now reading_time(const Config& config, const Now& now, const SavedClock& clock);

struct SavedHold {
  Token token;  // 0: none
  DurationMs ttl;
  int64_t held_since_ms = 0;
  DurationMs delay;
  uint64_t lease = 0;
  bool session = false;
  std::string note;
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

// A time in the past becomes the start of the engine's clock, so that it is due.
inline TimeMs restored_time(int64_t wall_ms, const Now& now) {
  return {std::clamp<int64_t>(now.from_wall_ms(wall_ms).count, 0, kMaxTtlMs + now.mono.count)};
}
inline TimeMs restored_deadline(int64_t wall_ms, const Now& now) {
  return wall_ms == kNoDeadline ? kNever : restored_time(wall_ms, now);
}

// The start of a hold may have lost its upper bits: see Entry.
inline SavedHold saved_hold(Token token, DurationMs ttl, TimeMs held_since, const Attachment* a,
                            const Now& now) {
  SavedHold hold{token, ttl, std::max<int64_t>(0, now.to_wall_ms(held_since)), {}, 0, false, {}};
  if (a == nullptr) return hold;
  hold.delay = a->delay;
  hold.lease = a->lease;
  hold.session = a->session;
  hold.note = a->note;
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

// In an RDB file, a lock with several holders is a hash, which scripts on stock Redis can read and write.
// One field marks it as a lock. Each holder has a field: the name is "o:" and the owner, the value has
// numbers: "token capacity deadline ttl held-since delay session lease". Times are in milliseconds; -1 is
// no deadline. The note of a holder is in the record below.
inline constexpr std::string_view kLockMarker = "holdfast:lock";
inline constexpr std::string_view kLockMarkerValue = "1";
inline constexpr std::string_view kOwnerPrefix = "o:";
std::string holder_text(const SavedHolder& holder);
// Returns nullopt if the text has another form. The caller sets the owner.
std::optional<SavedHolder> read_holder_text(std::string_view text);

// Returns "ahead boot-id".
std::string clock_text(const SavedClock& clock);
// Returns nullopt if the text has another form. The id is a view of the text.
std::optional<SavedClock> read_clock_text(std::string_view text);

// The record that scripts on stock Redis keep beside a lock: a hash named "holdfast:token:{T}K" for the key
// K, where T is the part of K that Redis Cluster hashes. Its fields are the key, the largest token so far
// and, for an exclusive hold, the SHA-1 of its owner and the numbers as above. A hold with a note has a
// field: the name is "n:" and the owner, the value is the token of the hold, a blank and the note.
inline constexpr std::string_view kTokenKeyPrefix = "holdfast:token:{";
inline constexpr std::string_view kRecordOf = "of";
inline constexpr std::string_view kRecordLast = "last";
inline constexpr std::string_view kRecordOwner = "owner";
inline constexpr std::string_view kRecordHold = "hold";
inline constexpr std::string_view kNotePrefix = "n:";
std::string token_key(std::string_view key);

// The note of the hold with this token.
struct SavedNote {
  std::string owner;
  Token token;
  std::string note;
};
std::string note_text(Token token, std::string_view note);
// Returns nullopt if the text has another form. The caller sets the owner.
std::optional<SavedNote> read_note_text(std::string_view text);

}  // namespace holdfast
