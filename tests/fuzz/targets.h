// The fuzz targets. Each is a function that accepts any bytes and aborts at a fault. libFuzzer calls them
// with generated inputs (libfuzzer.cc), `make test` with the kept inputs (replay_test.cc).
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::fuzz {

struct Target {
  std::string_view name;  // also the name of the folder with its inputs
  void (*run)(std::string_view bytes);
};
std::span<const Target> all_targets();

void fuzz_acl(std::string_view bytes);
void fuzz_backup(std::string_view bytes);
void fuzz_engine(std::string_view bytes);
void fuzz_http(std::string_view bytes);
void fuzz_journal(std::string_view bytes);
void fuzz_lua(std::string_view bytes);
void fuzz_meta(std::string_view bytes);
void fuzz_options(std::string_view bytes);
void fuzz_rdb(std::string_view bytes);
void fuzz_replies(std::string_view bytes);
void fuzz_requests(std::string_view bytes);
void fuzz_scripts(std::string_view bytes);

// Checks a promise of a target; aborts if it is broken.
inline void must(bool promise, std::string_view what) {
  if (promise) return;
  static_cast<void>(std::fprintf(stderr, "broken: %.*s\n", static_cast<int>(what.size()), what.data()));
  std::abort();
}

// Takes decisions from the bytes, from their start. After the last byte every decision is 0.
class Source {
 public:
  explicit Source(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::string_view rest() const { return bytes_; }
  uint8_t byte() {
    const std::string_view taken = take(1);
    return taken.empty() ? 0 : static_cast<uint8_t>(taken[0]);
  }
  size_t below(size_t n) {
    if (n <= 256) return byte() % n;
    const size_t high = byte();
    return (high << 8U | byte()) % n;
  }
  bool one_in(size_t n) { return below(n) == n - 1; }
  std::string_view take(size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  // Returns a text that follows its length.
  std::string_view text() { return take(byte()); }
  uint64_t number() {
    uint64_t value = 0;
    for (size_t bytes = below(9); bytes > 0; --bytes) value = value << 8U | byte();
    return value;
  }

 private:
  std::string_view bytes_;
};

}  // namespace holdfast::fuzz
