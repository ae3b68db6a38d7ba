// The two forms of a hold on disk: bytes, and text.
#include "core/codec/hold_codec.h"

#include <algorithm>
#include <array>

#include "core/base/hash_slot.h"
#include "core/base/parse.h"

namespace holdfast {

namespace {

constexpr unsigned kHasToken = 1U << 0U;
constexpr unsigned kHasTtl = 1U << 1U;
constexpr unsigned kHasDelay = 1U << 2U;
constexpr unsigned kHasLease = 1U << 3U;
constexpr unsigned kIsSession = 1U << 4U;
constexpr unsigned kHasNote = 1U << 5U;            // since version 2 of the journal
constexpr int64_t kMaxAheadMs = kMaxTtlMs / 1000;  // fits in microseconds; 285 years

// These limit values that no server wrote to the range of the engine.
DurationMs duration(uint64_t n) { return {static_cast<int64_t>(std::min<uint64_t>(n, kMaxTtlMs))}; }
int64_t wall_ms(uint64_t n) { return static_cast<int64_t>(std::min<uint64_t>(n, kMaxWallMs)); }

}  // namespace

Now reading_time(const Config& config, const Now& now, const SavedClock& clock) {
  if (config.boot_id.empty() || clock.boot_id.empty()) return now;
  const int64_t ahead_ms = clock.boot_id == config.boot_id ? clock.ahead_ms : config.first_ahead_ms;
  return now.with_ahead_ms(std::clamp(ahead_ms, -kMaxAheadMs, kMaxAheadMs));
}

// The lowest bit is the sign, so that a small number of either sign takes few bytes.
void put_clock(std::string& out, const SavedClock& clock) {
  const uint64_t sign = clock.ahead_ms < 0 ? ~uint64_t{0} : 0;
  put_text(out, clock.boot_id);
  put_number(out, (static_cast<uint64_t>(clock.ahead_ms) << 1U) ^ sign);
}

SavedClock read_clock(ByteReader& in) {
  SavedClock clock;
  clock.boot_id = in.text();
  const uint64_t n = in.number();
  clock.ahead_ms = static_cast<int64_t>((n >> 1U) ^ (~(n & 1U) + 1));
  return clock;
}

std::string clock_text(const SavedClock& clock) {
  return std::to_string(clock.ahead_ms).append(" ").append(clock.boot_id);
}

std::optional<SavedClock> read_clock_text(std::string_view text) {
  const size_t end = text.find(' ');
  const auto ahead_ms = parse_int(text.substr(0, end));
  if (end == std::string_view::npos || !ahead_ms) return std::nullopt;
  return SavedClock{text.substr(end + 1), *ahead_ms};
}

// 0 is no deadline, so that no usual deadline needs a sign.
void put_deadline(std::string& out, int64_t wall_ms) {
  put_number(out, static_cast<uint64_t>(wall_ms + 1));
}
int64_t read_deadline(ByteReader& in) {
  const uint64_t n = in.number();
  return n == 0 ? kNoDeadline : wall_ms(n - 1);
}

void put_hold(std::string& out, const SavedHold& h) {
  const unsigned flags = (h.token.value != 0 ? kHasToken : 0U) | (h.ttl.count != 0 ? kHasTtl : 0U) |
                         (h.delay.count != 0 ? kHasDelay : 0U) | (h.lease != 0 ? kHasLease : 0U) |
                         (h.session ? kIsSession : 0U) | (h.note.empty() ? 0U : kHasNote);
  put_u8(out, static_cast<uint8_t>(flags));
  put_number(out, static_cast<uint64_t>(h.held_since_ms));
  if (h.token.value != 0) put_number(out, h.token.value);
  if (h.ttl.count != 0) put_number(out, static_cast<uint64_t>(h.ttl.count));
  if (h.delay.count != 0) put_number(out, static_cast<uint64_t>(h.delay.count));
  if (h.lease != 0) put_number(out, h.lease);
  if (!h.note.empty()) put_text(out, h.note);
}

SavedHold read_hold(ByteReader& in) {
  SavedHold h;
  const uint8_t flags = in.u8();
  h.held_since_ms = wall_ms(in.number());
  if ((flags & kHasToken) != 0) h.token = {std::min(in.number(), kMaxToken)};
  if ((flags & kHasTtl) != 0) h.ttl = duration(in.number());
  if ((flags & kHasDelay) != 0) h.delay = duration(in.number());
  if ((flags & kHasLease) != 0) h.lease = in.number();
  if ((flags & kHasNote) != 0) h.note = in.text().substr(0, kMaxNoteBytes);
  h.session = (flags & kIsSession) != 0;
  return h;
}

void put_holder(std::string& out, const SavedHolder& h) {
  put_text(out, h.owner);
  put_number(out, h.capacity.count);
  put_deadline(out, h.deadline_ms);
  put_hold(out, h.hold);
}

SavedHolder read_holder(ByteReader& in) {
  SavedHolder h;
  h.owner = in.text();
  h.capacity = {static_cast<uint32_t>(std::clamp<uint64_t>(in.number(), 1, kShared.count))};
  h.deadline_ms = read_deadline(in);
  h.hold = read_hold(in);
  return h;
}

std::string holder_text(const SavedHolder& h) {
  std::string text;
  for (const int64_t n : {static_cast<int64_t>(h.hold.token.value), int64_t{h.capacity.count},
                          h.deadline_ms, h.hold.ttl.count, h.hold.held_since_ms, h.hold.delay.count,
                          int64_t{h.hold.session}, static_cast<int64_t>(h.hold.lease)}) {
    text.append(text.empty() ? "" : " ").append(std::to_string(n));
  }
  return text;
}

std::optional<SavedHolder> read_holder_text(std::string_view text) {
  std::array<int64_t, 8> n{};
  for (size_t i = 0; i < n.size(); ++i) {
    const size_t end = text.find(' ');
    const bool last = i + 1 == n.size();
    if (last != (end == std::string_view::npos)) return std::nullopt;
    const auto number = parse_int(text.substr(0, end));
    if (!number || *number < (i == 2 ? -1 : 0)) return std::nullopt;
    n[i] = *number;
    text.remove_prefix(last ? text.size() : end + 1);
  }
  if (n[1] < 1 || n[1] > kShared.count || n[0] > static_cast<int64_t>(kMaxToken)) return std::nullopt;
  SavedHolder h;
  h.capacity = {static_cast<uint32_t>(n[1])};
  h.deadline_ms = std::min(n[2], kMaxWallMs);
  h.hold.token = {static_cast<uint64_t>(n[0])};
  h.hold.ttl = duration(static_cast<uint64_t>(n[3]));
  h.hold.held_since_ms = wall_ms(static_cast<uint64_t>(n[4]));
  h.hold.delay = duration(static_cast<uint64_t>(n[5]));
  h.hold.session = n[6] != 0;
  h.hold.lease = static_cast<uint64_t>(n[7]);
  return h;
}

std::string token_key(std::string_view key) {
  return std::string(kTokenKeyPrefix).append(hash_tag(key)).append("}").append(key);
}

std::string note_text(Token token, std::string_view note) {
  return std::to_string(token.value).append(" ").append(note);
}

std::optional<SavedNote> read_note_text(std::string_view text) {
  const size_t end = text.find(' ');
  const auto token = parse_int_in(text.substr(0, end), 0, static_cast<int64_t>(kMaxToken));
  if (!token || end == std::string_view::npos) return std::nullopt;
  return SavedNote{{}, {static_cast<uint64_t>(*token)}, std::string(text.substr(end + 1, kMaxNoteBytes))};
}

}  // namespace holdfast
