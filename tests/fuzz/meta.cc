// The text of the file `meta`: an accepted text has only one form, and reads back as it was written.
#include "core/codec/meta.h"

#include <array>

#include "core/base/checksum.h"
#include "fuzz/targets.h"

namespace holdfast::fuzz {
namespace {

void check(std::string_view text) {
  Meta before;
  before.id = "before";
  Meta meta = before;
  if (!parse_meta(text, meta).empty()) {
    must(meta == before, "on an error the value is as it was");
  } else {
    must(format_meta(meta) == text, "what is taken has one form");
  }
}

// Adds a valid checksum, so that mutated lines are parsed.
std::string with_checksum(std::string_view lines) {
  std::array<char, 16> crc{};
  static_cast<void>(std::snprintf(crc.data(), crc.size(), "crc %08x\n", crc32c(lines)));
  return std::string(lines) + crc.data();
}

}  // namespace

void fuzz_meta(std::string_view bytes) {
  check(bytes);
  check(with_checksum(bytes));
}

}  // namespace holdfast::fuzz
