// Buffer: bytes are appended at the end and read from the front; it allocates and frees memory as
// documented.
#include "core/base/buffer.h"
#include "core/base/deferred_free.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

namespace holdfast {

TEST_CASE("Buffer: starts empty and without allocated memory") {
  const Buffer buffer;
  CHECK(buffer.empty());
  CHECK(buffer.size() == 0);
  CHECK(buffer.capacity() == 0);
  CHECK(buffer.view().empty());
}

TEST_CASE("Buffer: appended bytes are read in order") {
  Buffer buffer;
  buffer.append("ab");
  buffer.append("");
  buffer.push_back('c');
  CHECK(buffer.view() == "abc");
  buffer.consume(1);
  CHECK(buffer.view() == "bc");
  buffer.consume(2);
  CHECK(buffer.empty());
}

TEST_CASE("Buffer: reserve() provides room and commit() makes it part of the content") {
  Buffer buffer;
  buffer.append("x");
  char* const room = buffer.reserve(1000);
  REQUIRE(buffer.room() >= 1000);
  CHECK(buffer.size() == 1);
  std::fill_n(room, 1000, 'y');
  buffer.commit(999);
  CHECK(buffer.view() == "x" + std::string(999, 'y'));
}

TEST_CASE("Buffer: growth keeps the content, at, before and after the capacity") {
  for (const size_t size : {511U, 512U, 513U}) {
    Buffer buffer;
    const std::string content(size, 'z');
    buffer.append(content);
    CHECK(buffer.view() == content);
    CHECK(buffer.capacity() == (size <= 512 ? 512 : 1024));
  }
}

TEST_CASE("Buffer: a buffer that was emptied uses its memory from the start again") {
  Buffer buffer;
  buffer.append(std::string(500, 'a'));
  buffer.consume(500);
  buffer.append(std::string(512, 'b'));
  CHECK(buffer.capacity() == 512);
}

TEST_CASE("Buffer: a mostly consumed buffer moves its rest to the front instead of growing") {
  Buffer buffer;
  buffer.append(std::string(500, 'a') + "rest");
  buffer.consume(500);
  buffer.append(std::string(400, 'b'));
  CHECK(buffer.capacity() == 512);
  CHECK(buffer.view() == "rest" + std::string(400, 'b'));
}

TEST_CASE("Buffer: truncate() removes the bytes appended last") {
  Buffer buffer;
  buffer.append("keepdrop");
  buffer.consume(1);
  buffer.truncate(3);
  CHECK(buffer.view() == "eep");
  buffer.append("er");
  CHECK(buffer.view() == "eeper");
}

TEST_CASE("Buffer: reset() frees memory only above the size that it keeps") {
  Buffer buffer;
  buffer.append(std::string(1024, 'a'));
  buffer.reset(1024);
  CHECK(buffer.capacity() == 1024);
  CHECK(buffer.empty());
  buffer.reset(1023);
  CHECK(buffer.capacity() == 0);
  buffer.append("again");
  CHECK(buffer.view() == "again");
}

TEST_CASE("Buffer: moving and swapping transfer the content") {
  Buffer a;
  a.append("aa");
  Buffer b(std::move(a));
  CHECK(b.view() == "aa");
  Buffer c;
  c.append("cc");
  c.swap(b);
  CHECK(c.view() == "aa");
  CHECK(b.view() == "cc");
  b = std::move(c);
  CHECK(b.view() == "aa");
}

TEST_CASE("DeferredFree: small blocks are freed at once, large ones in steps that grow with the amount") {
  constexpr size_t kMiB = size_t{1} << 20U;
  DeferredFree old;
  Buffer buffer;
  buffer.reserve(kMiB / 2);
  old.take(buffer);
  CHECK(buffer.capacity() == 0);
  CHECK(old.empty());
  buffer.append("x");
  buffer.reserve(3 * kMiB);  // 4 MiB
  old.take(buffer);
  CHECK(buffer.empty());
  CHECK(buffer.capacity() == 0);
  int steps = 0;
  for (; !old.empty(); ++steps) old.release_some();
  CHECK(steps == 8);
  for (int i = 0; i < 8; ++i) {
    buffer.reserve(8 * kMiB);
    old.take(buffer);
  }
  for (steps = 0; !old.empty(); ++steps) old.release_some();
  CHECK(steps > 16);
  CHECK(steps < 64);
}

TEST_CASE("DeferredFree: one large block is kept, and the next buffer that grows large reuses it") {
  constexpr size_t kMiB = size_t{1} << 20U;
  DeferredFree old;
  Buffer first;
  first.append(std::string(kMiB + 1, 'x'));  // 2 MiB
  const char* const block = first.data();
  old.take(first);
  CHECK(old.empty());
  Buffer next;
  next.borrow_from(&old.spare());
  next.append("0ab");
  next.consume(1);
  CHECK(next.data() != block);
  next.append(std::string(kMiB, 'y'));
  CHECK(next.data() == block);
  CHECK(next.view() == "ab" + std::string(kMiB, 'y'));
  CHECK(old.spare().capacity() == 0);
  Buffer other;
  other.borrow_from(&old.spare());
  other.append(std::string(kMiB, 'z'));  // no kept block is left
  CHECK(other.view() == std::string(kMiB, 'z'));
  old.take(next);
  old.take(other);
  CHECK_FALSE(old.empty());  // one block is kept, the other is freed
}

TEST_CASE("DeferredFree: a block above 2 MiB is not kept, and a block that is too small is not reused") {
  constexpr size_t kMiB = size_t{1} << 20U;
  DeferredFree old;
  Buffer buffer;
  buffer.reserve(2 * kMiB + 1);  // 4 MiB
  old.take(buffer);
  CHECK(old.spare().capacity() == 0);
  buffer.reserve(kMiB);
  old.take(buffer);
  CHECK(old.spare().capacity() == kMiB);
  buffer.borrow_from(&old.spare());
  buffer.append(std::string(kMiB + 1, 'x'));
  CHECK(old.spare().capacity() == kMiB);
  CHECK(buffer.size() == kMiB + 1);
}

TEST_CASE("Buffer: equals a std::string after random appends, reads and truncations") {
  const uint64_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Buffer buffer;
  std::string model;
  for (int step = 0; step < 20'000; ++step) {
    const size_t n = random() % 700;
    switch (random() % 4) {
      case 0:
        buffer.consume(std::min(n, model.size()));
        model.erase(0, std::min(n, model.size()));
        break;
      case 1:
        buffer.truncate(model.size() - std::min(n / 4, model.size()));
        model.resize(model.size() - std::min(n / 4, model.size()));
        break;
      default:
        model.append(n / 2, static_cast<char>('a' + n % 26));
        buffer.append(std::string(n / 2, static_cast<char>('a' + n % 26)));
    }
    REQUIRE(buffer.view() == model);
  }
}

TEST_CASE("Buffer: above its limit it allocates nothing, reports the overflow and keeps its content") {
  Buffer b;
  b.set_limit(1000);
  b.append(std::string(999, 'x'));
  CHECK_FALSE(b.overflowed());
  b.push_back('y');
  CHECK_FALSE(b.overflowed());
  CHECK(b.size() == 1000);
  b.append(std::string(5000, 'z'));
  CHECK(b.overflowed());
  CHECK(b.size() == 1000);
  for (int i = 0; i < 1000; ++i) b.append("abc");
  CHECK(b.capacity() <= 1064);
  b.truncate(10);
  CHECK(b.overflowed());  // the dropped bytes may precede the truncated ones
  b.forget_overflow();
  CHECK_FALSE(b.overflowed());
  b.append(std::string(5000, 'z'));
  b.clear();
  CHECK_FALSE(b.overflowed());
  b.append(std::string(1001, 'x'));
  CHECK(b.overflowed());
}

TEST_CASE("Buffer: consumed bytes do not count towards its limit") {
  Buffer b;
  b.set_limit(1000);
  for (int i = 0; i < 100; ++i) {
    b.append(std::string(900, 'x'));
    b.consume(800);
    b.consume(b.size());
  }
  b.append(std::string(1000, 'x'));
  b.consume(500);
  b.append(std::string(500, 'x'));
  CHECK_FALSE(b.overflowed());
  CHECK(b.size() == 1000);
}

}  // namespace holdfast
