// The letters of notify-keyspace-events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

// The classes of keyspace events, by Redis's letters.
enum NotifyFlag : uint32_t {
  kNotifyKeyspace = 1U << 0U,  // K: __keyspace@<db>__:<key>
  kNotifyKeyevent = 1U << 1U,  // E: __keyevent@<db>__:<event>
  kNotifyGeneric = 1U << 2U,   // g
  kNotifyString = 1U << 3U,    // $
  kNotifyList = 1U << 4U,      // l
  kNotifySet = 1U << 5U,       // s
  kNotifyHash = 1U << 6U,      // h
  kNotifyZset = 1U << 7U,      // z
  kNotifyExpired = 1U << 8U,   // x
  kNotifyEvicted = 1U << 9U,   // e
  kNotifyStream = 1U << 10U,   // t
  kNotifyKeyMiss = 1U << 11U,  // m
  kNotifyModule = 1U << 12U,   // d
  kNotifyNew = 1U << 13U,      // n
  kNotifyAll = kNotifyGeneric | kNotifyString | kNotifyList | kNotifySet | kNotifyHash | kNotifyZset |
               kNotifyExpired | kNotifyEvicted | kNotifyStream | kNotifyModule,  // A
};

inline constexpr std::string_view kEventLetters = "Ag$lshzxeKEtmdn";

// Returns nullopt if a letter is unknown.
std::optional<uint32_t> parse_event_flags(std::string_view letters);
// Returns the letters as CONFIG GET shows them.
std::string event_flags_text(uint32_t flags);

}  // namespace holdfast
