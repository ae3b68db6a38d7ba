// Converts letters to flags, and back.
#include "core/base/event_flags.h"

namespace holdfast {

namespace {

struct Letter {
  char letter;
  uint32_t flags;
};
// In the order of CONFIG GET.
constexpr Letter kLetters[] = {
    {'g', kNotifyGeneric},  {'$', kNotifyString},  {'l', kNotifyList},    {'s', kNotifySet},
    {'h', kNotifyHash},     {'z', kNotifyZset},    {'x', kNotifyExpired}, {'e', kNotifyEvicted},
    {'t', kNotifyStream},   {'d', kNotifyModule},  {'n', kNotifyNew},     {'K', kNotifyKeyspace},
    {'E', kNotifyKeyevent}, {'m', kNotifyKeyMiss},
};

}  // namespace

std::optional<uint32_t> parse_event_flags(std::string_view letters) {
  uint32_t flags = 0;
  for (const char c : letters) {
    uint32_t meant = c == 'A' ? uint32_t{kNotifyAll} : 0;
    for (const Letter& l : kLetters) meant |= l.letter == c ? l.flags : 0;
    if (meant == 0) return std::nullopt;
    flags |= meant;
  }
  return flags;
}

// Redis omits 'n' if it shows 'A'.
std::string event_flags_text(uint32_t flags) {
  const bool all = (flags & kNotifyAll) == kNotifyAll;
  std::string text(all ? "A" : "");
  for (const Letter& l : kLetters) {
    const bool covered = all && (l.flags & (kNotifyAll | kNotifyNew)) != 0;
    if (!covered && (flags & l.flags) != 0) text += l.letter;
  }
  return text;
}

}  // namespace holdfast
