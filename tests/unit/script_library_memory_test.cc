// The memory of libraries of functions: what their functions keep between calls is the library's own.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "script_memory.h"
#include "simulation/apart.h"

namespace holdfast {
namespace {

Config small_config() { return script_limits(16 * kMiB, 2 * kMiB); }

// A library whose function `<name>_grow` keeps small tables until there is no memory, and `<name>_get`
// returns its argument.
std::string keeping_library(const std::string& name) {
  return "#!lua name=" + name + "\nlocal kept redis.register_function('" + name +
         "_grow', function() for i = 1, 1e9 do kept = {kept} end end) redis.register_function('" + name +
         "_get', function(keys, args) return args[1] end)";
}

// Calls it until the library has no memory left, not even for a small table.
void fill(TestClient& c, const std::string& name) {
  c.must({"FUNCTION", "LOAD", "REPLACE", keeping_library(name)});
  for (int i = 0; i < 20; ++i) {
    CHECK(c.ask({"FCALL", name + "_grow", "0"}).find("not enough memory") != std::string::npos);
  }
}

bool removes_full_library(const std::vector<std::string>& command) {
  Engine engine(small_config());
  TestClient c(engine);
  c.must({"SCRIPT", "LOAD", "return 1"});
  fill(c, "full");
  return c.ask(command) == "+OK\r\n";
}

}  // namespace

TEST_CASE("library memory: a library without memory left can be deleted and flushed, and so can scripts") {
  const std::vector<std::string> commands[] = {
      {"FUNCTION", "DELETE", "full"}, {"FUNCTION", "FLUSH"}, {"SCRIPT", "FLUSH"}};
  for (const auto& command : commands) {
    CAPTURE(command[0] + " " + command[1]);
    CHECK(simulation::succeeds_apart(false, [&] { return removes_full_library(command); }));
  }
}

TEST_CASE("library memory: scripts and other libraries run beside a library without memory left") {
  Engine engine(small_config());
  TestClient c(engine);
  TestClient other(engine);
  other.must({"FUNCTION", "LOAD", keeping_library("other")});
  const std::string sha = other.ask({"SCRIPT", "LOAD", "return #string.rep('x', 1000000)"}).substr(5, 40);
  fill(c, "full");
  for (int i = 0; i < 600; ++i) {
    const std::string number = std::to_string(i);
    REQUIRE(other.ask({"EVAL", "return " + number, "0"}) == ":" + number + "\r\n");
    REQUIRE(other.ask({"EVALSHA", sha, "0"}) == ":1000000\r\n");
    REQUIRE(other.ask({"FCALL", "other_get", "0", number}).ends_with(number + "\r\n"));
  }
  CHECK(script_bytes(engine) <= 16 * kMiB);
}

TEST_CASE("library memory: all that a library keeps is freed when it is deleted, flushed or replaced") {
  Engine engine(small_config());
  TestClient c(engine);
  c.must({"FUNCTION", "LOAD", keeping_library("full")});
  c.must({"FUNCTION", "LOAD", keeping_library("other")});
  turns_of_work(engine);
  const uint64_t before = script_bytes(engine);
  const std::vector<std::string> commands[] = {{"FUNCTION", "DELETE", "full"},
                                               {"FUNCTION", "LOAD", "REPLACE", keeping_library("full")},
                                               {"FUNCTION", "FLUSH"}};
  for (const auto& command : commands) {
    CAPTURE(command[1]);
    fill(c, "full");
    CHECK(script_bytes(engine) > before + kMiB);
    c.must(command);
    turns_of_work(engine);
    CHECK(script_bytes(engine) < before + kMiB / 8);
  }
}

}  // namespace holdfast
