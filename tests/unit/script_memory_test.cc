// The memory of scripts: garbage is collected in steps between requests, and the cache leaves memory to
// run.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "script_memory.h"

namespace holdfast {
namespace {

Config small_config() { return script_limits(32 * kMiB, 8 * kMiB); }

// Caches scripts of about 100 KB each until one is rejected. Returns the name of the first.
std::string fill_cache(TestClient& c) {
  std::string numbers;
  for (int i = 0; i < 2'000; ++i) numbers += std::to_string(i) + ",";
  const std::string first = c.ask({"SCRIPT", "LOAD", "return #string.rep('x', 2000000)"}).substr(5, 40);
  std::string reply;
  for (int i = 0; !reply.starts_with("-"); ++i) {
    REQUIRE(i < 10'000);
    reply = c.ask({"SCRIPT", "LOAD", "return {" + numbers + std::to_string(i) + ".5}"});
  }
  CHECK(reply.find("not enough memory") != std::string::npos);
  return first;
}

}  // namespace

TEST_CASE("script memory: garbage of a run is collected over many iterations, and then no work is left") {
  Engine engine(small_config());
  TestClient c(engine);
  const uint64_t before = script_bytes(engine);
  CHECK(turns_of_work(engine) == 0);
  for (const std::string loop : {"t[i] = {i}", "t[i] = 'text ' .. i"}) {
    CAPTURE(loop);
    CHECK(c.ask({"EVAL", "local t = {} for i = 1, 1e9 do " + loop + " end", "0"})
              .starts_with("-ERR not enough"));
    CHECK(script_bytes(engine) > 4 * kMiB);
    CHECK(turns_of_work(engine) > 10);
    CHECK(script_bytes(engine) < before + kMiB);
  }
}

TEST_CASE("script memory: runs without an iteration in between never meet another run's garbage") {
  Engine engine(small_config());
  TestClient c(engine);
  for (int i = 0; i < 20; ++i) {
    CHECK(c.ask({"EVAL", "local t = {} for i = 1, 1e9 do t[i] = {i} end", "0"})
              .starts_with("-ERR not enough"));
    CHECK(c.ask({"EVAL", "return #string.rep('x', 3000000)", "0"}) == ":3000000\r\n");
    CHECK(script_bytes(engine) < 32 * kMiB);
  }
}

TEST_CASE("script memory: hundreds of scripts are kept, each runs, and others do after a flush") {
  Engine engine(small_config());
  TestClient c(engine);
  for (const std::string round : {"1", "2"}) {
    std::vector<std::string> shas;
    for (int i = 0; i < 300; ++i) {
      shas.push_back(
          c.ask({"SCRIPT", "LOAD", "return " + round + " * " + std::to_string(i)}).substr(5, 40));
    }
    for (size_t i = 0; i < 300; ++i) {
      CHECK(c.ask({"EVALSHA", shas[i], "0"}) == ":" + std::to_string(std::stoul(round) * i) + "\r\n");
    }
    c.must({"SCRIPT", "FLUSH"});
    CHECK(c.ask({"EVALSHA", shas[0], "0"}).starts_with("-NOSCRIPT "));
  }
}

TEST_CASE("script memory: KEYS and ARGV do not count as memory of a run") {
  Engine engine(small_config());
  TestClient c(engine);
  const std::string large(6 * kMiB, 'x');
  CHECK(c.ask({"EVAL", "return #KEYS[1] + #ARGV[1] + #string.rep('x', 2000000)", "1", large,
               large + "y"}) == ":" + std::to_string(12 * kMiB + 1 + 2'000'000) + "\r\n");
}

TEST_CASE("script memory: scripts that fill the cache leave memory to run, and are freed by a flush") {
  Engine engine(small_config());
  TestClient c(engine);
  const uint64_t before = script_bytes(engine);
  const std::string first = fill_cache(c);
  CHECK(script_bytes(engine) <= 24 * kMiB);
  for (int i = 0; i < 10; ++i) CHECK(c.ask({"EVALSHA", first, "0"}) == ":2000000\r\n");
  turns_of_work(engine);
  CHECK(script_bytes(engine) > 8 * kMiB);
  CHECK(c.ask({"SCRIPT", "FLUSH"}) == "+OK\r\n");
  CHECK(turns_of_work(engine) > 0);
  CHECK(script_bytes(engine) < before + kMiB);
}

}  // namespace holdfast
