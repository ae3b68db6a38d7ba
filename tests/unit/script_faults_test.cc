// Memory that runs out at every allocation of Lua, one after the other, while scripts and libraries are
// loaded, run and removed. Each request ends with its own reply or a clear error, and the host runs on.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/sha1.h"
#include "core/engine/engine_parts.h"
#include "session.h"
#include "simulation/apart.h"

namespace holdfast {
namespace {

using Words = std::vector<std::string>;

// A library whose functions keep their arguments, and redis.call()'s replies, between calls.
std::string library(const std::string& name) {
  return "#!lua name=" + name + "\nlocal kept = {} redis.register_function('" + name +
         "_keep', function(keys, args) kept[#kept + 1] = {args[1], redis.call('GET', 'k')} "
         "for i = 1, 40 do kept[i .. args[1]] = i end return #kept end)"
         "redis.register_function{function_name='" +
         name + "_count', callback=function() return #kept end, flags={'no-writes'}}";
}

// A request, and the requests that it needs before each try.
struct Step {
  Words request;
  std::vector<Words> before;
};

std::vector<Step> steps(const std::string& dump) {
  const std::string body =
      "local t = {} for i = 1, 40 do t[i] = redis.call('GET', KEYS[1]) .. i end return t";
  const std::string large = "return {" + std::string(600, '1') + "}, 'text that nothing else has'";
  const Words load_a = {"FUNCTION", "LOAD", "REPLACE", library("a")};
  const Words load_b = {"FUNCTION", "LOAD", "REPLACE", library("b")};
  const Words keep = {"FCALL", "a_keep", "0", "value"};
  const Words flush = {"SCRIPT", "FLUSH"};
  return {
      {{"EVAL", "return 'first'", "0"}, {}},
      {load_a, {}},
      {keep, {}},
      {{"FCALL", "a_keep", "1", "key", "another value"}, {}},
      {{"FCALL_RO", "a_count", "0"}, {}},
      {{"EVAL", body, "1", "k"}, {flush}},
      {{"EVALSHA", sha1_hex(body), "1", "k"}, {{"SCRIPT", "LOAD", body}}},
      {{"SCRIPT", "LOAD", large}, {flush}},
      {{"SCRIPT", "LOAD", large}, {flush, {"EVAL", large, "0"}}},
      {load_b, {load_b, {"FCALL", "b_keep", "0", "value"}}},
      {{"FUNCTION", "DELETE", "a"}, {load_a, keep}},
      {{"FUNCTION", "FLUSH"}, {load_a, load_b, keep}},
      {{"FUNCTION", "RESTORE", dump, "FLUSH"}, {load_b}},
      {{"FUNCTION", "DUMP"}, {}},
      {flush, {{"EVAL", large, "0"}, {"SCRIPT", "LOAD", body}}},
  };
}

// One engine, whose memory fails at chosen allocations.
class Faulty {
 public:
  Faulty() : engine_(config()), c_(engine_) {
    c_.must({"SET", "k", "value of the key"});
    // The payload is of another engine: the first script of this one makes its Lua state with faults.
    Engine other(config());
    TestClient loader(other);
    loader.must({"FUNCTION", "LOAD", library("a")});
    dump_ = loader.ask({"FUNCTION", "DUMP"});
    dump_ = dump_.substr(dump_.find('\n') + 1);
    dump_.resize(dump_.size() - 2);
  }

  // Runs each step with a fault at its first allocation, its second, and so on until it needs no more.
  bool run_all(int64_t count) {
    for (const Step& step : steps(dump_)) {
      for (int64_t after = 0; fails_at(step, after, count); ++after) {
        if (broken_) return false;
      }
    }
    return !broken_ && returns_to_start();
  }

 private:
  static Config config() {
    Config c = session_config();
    c.limits.script_memory_bytes = 4U << 20U;
    c.limits.script_run_bytes = 1U << 20U;
    return c;
  }

  ScriptHost& host() { return engine_.state().scripts; }

  // Returns whether memory failed; false if the step needed fewer allocations.
  bool fails_at(const Step& step, int64_t after, int64_t count) {
    for (const Words& words : step.before) c_.must(words);
    host().memory_fault = {after, count};
    const std::string reply = c_.ask(step.request);
    Effects fx;
    if (after % 2 == 0) engine_.tick(session_time(0), fx);  // a step of the collection fails too
    const bool failed = host().memory_fault.after < 0;
    host().memory_fault = {};
    host().check_invariants();
    const bool clear =
        !reply.empty() && (reply[0] != '-' || reply.find("not enough memory") != std::string::npos);
    if (!clear || !runs_on()) {
      MESSAGE("after ", after, " allocations of ", step.request[0], " ", step.request[1], ": ", reply);
      broken_ = true;
    }
    return failed;
  }

  bool runs_on() {
    return c_.ask({"EVAL", "return redis.call('GET', KEYS[1])", "1", "k"}) ==
               "$16\r\nvalue of the key\r\n" &&
           !c_.ask({"FCALL", "a_count", "0"}).starts_with("-ERR not enough");
  }

  // Whether no memory was lost.
  bool returns_to_start() {
    c_.must({"FUNCTION", "FLUSH"});
    c_.must({"SCRIPT", "FLUSH"});
    Effects fx;
    for (int i = 0; i < 1000 && host().collecting(); ++i) engine_.tick(session_time(0), fx);
    constexpr uint64_t kEmptyBytes = 64U << 10U;
    return !host().collecting() && host().memory_bytes() < kEmptyBytes && host().library_bytes() == 0;
  }

  Engine engine_;
  TestClient c_;
  std::string dump_;
  bool broken_ = false;
};

}  // namespace

TEST_CASE("script faults: the host survives memory that fails at any one allocation of Lua") {
  CHECK(simulation::succeeds_apart(false, [] { return Faulty().run_all(1); }));
}

TEST_CASE("script faults: the host survives memory that fails from any allocation of Lua on") {
  CHECK(simulation::succeeds_apart(false, [] { return Faulty().run_all(INT64_MAX / 2); }));
}

}  // namespace holdfast
