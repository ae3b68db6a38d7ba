// holdfast top: what it computes from the replies of servers, and the text that it makes of it.
#include <doctest/doctest.h>

#include "cli/columns.h"
#include "cli/top_state.h"
#include "cli/top_table.h"

using namespace holdfast;

namespace {

LockRow row(const std::string& key, int64_t waiters, const std::string& owner = "alice",
            int64_t token = 1) {
  LockRow r;
  r.key = key;
  r.mode = "exclusive";
  r.owner = owner;
  r.token = token;
  r.waiters = waiters;
  return r;
}

std::vector<std::string> keys_of(const std::vector<LockRow>& rows) {
  std::vector<std::string> keys;
  for (const LockRow& r : rows) keys.push_back(r.key);
  return keys;
}

}  // namespace

TEST_CASE("top: the figures of INFO, and the reasons of failed checks") {
  const Figures f = read_figures(
      "# Server\r\nrun_id:abc\r\nlock_grants:12\r\nready:no\r\nready_journal:disk "
      "full\r\nready_memory:ok\r\n"
      "ready_clients:too many\r\nlock_wait_us_buckets:100=3,200=1,inf=2\r\n");
  CHECK(f.run_id == "abc");
  CHECK(f.grants == 12);
  CHECK(f.not_ready == "journal: disk full; clients: too many");
  CHECK(f.waits == std::vector<std::pair<int64_t, int64_t>>{{100, 3}, {200, 1}, {-1, 2}});
  CHECK_FALSE(f.waiters);
}

TEST_CASE("top: a malformed histogram is not known") {
  for (const char* text :
       {"lock_wait_us_buckets:100", "lock_wait_us_buckets:x=1", "lock_wait_us_buckets:1=x"})
    CHECK(read_figures(text).waits.empty());
}

TEST_CASE("top: rates are of one run of a server only") {
  const Figures before = read_figures("run_id:a\nlock_grants:10\nlock_wait_us_buckets:100=1,inf=0\n");
  const Figures now = read_figures("run_id:a\nlock_grants:30\nlock_wait_us_buckets:100=5,inf=0\n");
  const Figures restarted = read_figures("run_id:b\nlock_grants:30\nlock_wait_us_buckets:100=5,inf=0\n");
  const Rates rates = rates_between(before, now, 2);
  CHECK(rates.grants_per_s == 10);
  CHECK(rates.waits.front().second == 4);
  CHECK_FALSE(rates_between(before, restarted, 2).grants_per_s);
  CHECK_FALSE(rates_between(now, before, 2).grants_per_s);
}

TEST_CASE("top: percentiles as histogram_quantile() computes them") {
  CHECK_FALSE(wait_quantile_ms({}, 0.5));
  CHECK_FALSE(wait_quantile_ms({{1000, 0}, {-1, 0}}, 0.5));
  CHECK(*wait_quantile_ms({{1000, 10}, {2000, 0}, {-1, 0}}, 0.5) == doctest::Approx(0.5));
  CHECK(*wait_quantile_ms({{1000, 5}, {2000, 5}, {-1, 0}}, 0.9) == doctest::Approx(1.8));
  CHECK(*wait_quantile_ms({{1000, 0}, {2000, 0}, {-1, 3}}, 0.99) == doctest::Approx(2));
}

TEST_CASE("top: a lock of several servers has the owner that the most of them name") {
  LockRows a, b, c;
  a["k"] = row("k", 2, "alice", 7);
  b["k"] = row("k", 3, "alice", 7);
  c["k"] = row("k", 1, "bob", 9);
  const auto rows = merged({&a, &b, &c});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].owner == "alice");
  CHECK(rows[0].servers == 2);
  CHECK(rows[0].waiters == 3);
  CHECK(rows[0].token == 7);
}

TEST_CASE("top: rows without the figure come last, in either order") {
  std::vector<LockRow> rows{row("b", 1), row("a", 1), row("c", 5)};
  rows[0].held_ms = 10;
  rows[2].held_ms = 20;
  sort_rows(rows, {TopSort::kWaiters});
  CHECK(keys_of(rows) == std::vector<std::string>{"c", "a", "b"});
  sort_rows(rows, {TopSort::kAge});
  CHECK(keys_of(rows) == std::vector<std::string>{"c", "b", "a"});
  sort_rows(rows, {TopSort::kAge, true});
  CHECK(keys_of(rows) == std::vector<std::string>{"b", "c", "a"});
}

TEST_CASE("top: no line is wider than the screen, at each width") {
  use_utf8();
  const std::vector<LockRow> rows{row("作業:鍵", 3), row(std::string(300, 'k'), 1), row("\x1b[2J\xff", 0)};
  for (size_t width = 1; width <= 200; ++width) {
    for (const std::string& line : lock_table(rows, 5).lines(width)) CHECK(width_of(line) <= width);
  }
}

TEST_CASE("columns: wide characters take two, and are not cut in half") {
  use_utf8();
  CHECK(width_of("鍵") == 2);
  CHECK(fit("鍵鍵", 4) == "鍵鍵");
  CHECK(fit("鍵鍵", 3) == "鍵…");
  CHECK(fit("鍵鍵鍵", 4) == "鍵… ");
  CHECK(fit("ab", 4) == "ab  ");
  CHECK(fit("ab", 4, true) == "  ab");
  CHECK(fit("ab", 0).empty());
}

TEST_CASE("columns: lines break at blanks, and a long word at the width") {
  CHECK(wrap("one two three", 8) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap("abcdefgh", 3) == std::vector<std::string>{"abc", "def", "gh"});
  CHECK(wrap("", 3).empty());
}

TEST_CASE("top: times are at most 7 characters, up to days") {
  CHECK(short_time(std::nullopt) == "-");
  CHECK(short_time(-1) == "never");
  CHECK(short_time(0) == "0ms");
  CHECK(short_time(999) == "999ms");
  CHECK(short_time(1000) == "1.0s");
  CHECK(short_time(60'000) == "1m00s");
  CHECK(short_time(3'600'000) == "1h00m");
  CHECK(short_time(86'400'000) == "1d00h");
  CHECK(short_time(864'000'000) == "10d");
}
