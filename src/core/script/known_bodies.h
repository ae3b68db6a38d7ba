// Recent short bodies of scripts with their names, the SHA-1 of the bodies. To compute a SHA-1 takes as
// long as to run a short script.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/hash.h"

namespace holdfast {

struct Script;

inline constexpr size_t kScriptNameDigits = 40;
using ScriptName = std::array<char, kScriptNameDigits>;  // hex digits in lower case

struct KnownBody {
  ScriptName name;
  const Script* script = nullptr;  // the cached script; valid in that state of the cache only
  uint64_t cache_state = 0;        // 0: none
};

class KnownBodies {
 public:
  // The limits of the memory: a longer body is not kept, and all bodies are dropped before they exceed
  // kMaxBytes. Each counts its size and kOverheadBytes.
  static constexpr size_t kMaxBody = 4096;
  static constexpr size_t kMaxBytes = size_t{256} << 10U;
  static constexpr size_t kOverheadBytes = 128;

  // Valid until the next call.
  KnownBody& of(std::string_view body);
  void clear();
  size_t size() const { return bodies_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view body) const { return hash_bytes(body, 0); }
  };

  absl::flat_hash_map<std::string, KnownBody, Hash, std::equal_to<>> bodies_;
  size_t bytes_ = 0;
  KnownBody long_one_;  // the last body that was too long
};

}  // namespace holdfast
