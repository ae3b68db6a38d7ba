// See known_bodies.h.
#include "core/script/known_bodies.h"

#include <algorithm>

#include "core/base/sha1.h"

namespace holdfast {

KnownBody& KnownBodies::of(std::string_view body) {
  if (const auto it = bodies_.find(body); it != bodies_.end()) return it->second;
  KnownBody known;
  std::ranges::copy(sha1_hex(body), known.name.begin());
  if (body.size() > kMaxBody) return long_one_ = known;
  const size_t bytes = body.size() + kOverheadBytes;
  if (bytes_ + bytes > kMaxBytes) clear();
  bytes_ += bytes;
  return bodies_.emplace(body, known).first->second;
}

void KnownBodies::clear() {
  bodies_ = {};
  bytes_ = 0;
}

}  // namespace holdfast
