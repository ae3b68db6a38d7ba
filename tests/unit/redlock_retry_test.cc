// Successive attempts without a queue: their number, and the pauses between them.
#include <doctest/doctest.h>

#include <vector>

#include "unit/redlock_script.h"

namespace holdfast::client {
namespace {

uint64_t least(uint64_t /*n*/) { return 0; }
uint64_t most(uint64_t n) { return n - 1; }

RedlockConfig growing(int64_t first, double factor, int64_t longest) {
  RedlockConfig config = one_server(DurationMs{0});
  config.backoff = {{first}, factor, {longest}};
  return config;
}

// Returns the lengths, in ms, of the first `n` pauses of a wait whose server is unreachable.
std::vector<int64_t> pauses(const RedlockConfig& config, size_t n, uint64_t (*dice)(uint64_t)) {
  Script s(config);
  s.dice = dice;
  std::vector<int64_t> all;
  while (all.size() < n) {
    s.lost(0);
    REQUIRE(s.pausing());
    const int64_t began = s.now;
    all.push_back(s.lock.next_deadline()->count - began);
    s.at(began + all.back());
    REQUIRE_FALSE(s.pausing());
  }
  return all;
}

}  // namespace

TEST_CASE("redlock retry: attempt N-1 is followed by another, N is the last, there is no N+1") {
  for (const size_t limit : {size_t{1}, size_t{2}, size_t{3}, size_t{10}}) {
    CAPTURE(limit);
    RedlockConfig config = one_server(DurationMs{0});
    config.max_attempts = limit;
    Script s(config);
    for (size_t attempt = 1; attempt < limit; ++attempt) {
      CHECK(s.sent().find(":LOCK k") != std::string::npos);
      s.lost(0);
      REQUIRE(s.pausing());
      s.at(s.lock.next_deadline()->count);
    }
    CHECK(s.sent().find(":LOCK k") != std::string::npos);
    s.lost(0);
    CHECK(s.over());
    CHECK(s.outcome() == Outcome::kUnreachable);
    s.at(s.now + 100000);
    CHECK(s.sent().find(":LOCK k") == std::string::npos);
  }
}

TEST_CASE("redlock retry: without a limit attempts continue as before") {
  Script s(one_server(DurationMs{0}));
  for (int attempt = 0; attempt < 1000; ++attempt) {
    s.lost(0);
    REQUIRE(s.pausing());
    s.at(s.lock.next_deadline()->count);
  }
}

TEST_CASE("redlock retry: a lock held at each attempt is kTimeout, and the text counts the attempts") {
  RedlockConfig config = one_server(DurationMs{0});
  config.max_attempts = 2;
  config.queues = false;
  Script s(config);
  s.null(0);
  REQUIRE(s.pausing());
  s.at(s.lock.next_deadline()->count);
  s.null(0);
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kTimeout);
  CHECK(s.lock.result().message == "other owners held the lock at each of 2 attempts");
}

TEST_CASE("redlock retry: the last attempt may succeed") {
  RedlockConfig config = one_server(DurationMs{0});
  config.max_attempts = 2;
  Script s(config);
  s.lost(0);
  s.at(s.lock.next_deadline()->count);
  s.grant(0, 500);
  CHECK(s.held());
}

TEST_CASE("redlock retry: where a server has a queue, the wait in it is part of the attempt") {
  RedlockConfig config = one_server(DurationMs{0});
  config.max_attempts = 1;
  Script s(config);
  s.null(0);
  CHECK(s.queueing());
  s.lost(0);  // the connection of the wait
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kUnreachable);
}

TEST_CASE("redlock retry: the deadline of the wait precedes the limit of attempts") {
  RedlockConfig config = one_server(DurationMs{5});
  config.max_attempts = 100;
  Script s(config);
  s.dice = most;
  s.lost(0);
  s.at(1004);
  CHECK(s.pausing());
  s.at(1005);
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kUnreachable);
}

TEST_CASE("redlock retry: a single attempt is one attempt, whatever the limit") {
  RedlockConfig config = one_server();
  config.max_attempts = 5;
  Script s(config);
  s.lost(0);
  CHECK(s.over());
}

TEST_CASE("redlock retry: without backoff a pause is random from min_wait to max_wait") {
  CHECK(pauses(one_server(DurationMs{0}), 3, least) == std::vector<int64_t>{10, 10, 10});
  CHECK(pauses(one_server(DurationMs{0}), 3, most) == std::vector<int64_t>{100, 100, 100});
}

TEST_CASE("redlock retry: with backoff the limit of a pause grows by the factor up to the longest") {
  CHECK(pauses(growing(50, 2, 400), 6, most) == std::vector<int64_t>{50, 100, 200, 400, 400, 400});
  CHECK(pauses(growing(50, 2, 399), 5, most) == std::vector<int64_t>{50, 100, 200, 399, 399});
  CHECK(pauses(growing(50, 2, 401), 5, most) == std::vector<int64_t>{50, 100, 200, 400, 401});
  CHECK(pauses(growing(20, 1.5, 1000), 4, most) == std::vector<int64_t>{20, 30, 45, 67});
  CHECK(pauses(growing(7, 1, 1000), 3, most) == std::vector<int64_t>{7, 7, 7});
  CHECK(pauses(growing(100, 100, 100), 3, most) == std::vector<int64_t>{100, 100, 100});
}

TEST_CASE("redlock retry: with backoff jitter is full: a pause may be 0 ms") {
  CHECK(pauses(growing(50, 2, 400), 4, least) == std::vector<int64_t>{0, 0, 0, 0});
}

TEST_CASE("redlock retry: after a wait in a queue the backoff starts again") {
  Script s(growing(50, 2, 400));
  s.dice = most;
  s.lost(0);
  s.at(1050);
  s.null(0);
  REQUIRE(s.queueing());
  s.lost(0);
  REQUIRE(s.pausing());
  CHECK(s.lock.next_deadline()->count == 1050 + 50);
}

TEST_CASE("redlock retry: a busy quorum is tried again after a pause") {
  Script s(three_servers(DurationMs{0}));
  s.null(0);
  s.grant(1, 500);
  s.null(2);
  CHECK(s.pausing());
  s.at(s.lock.next_deadline()->count);
  s.null(0);
  s.grant(1, 501);
  s.grant(2, 501);
  CHECK(s.held());
}

}  // namespace holdfast::client
