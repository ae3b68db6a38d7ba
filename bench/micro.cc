// Measures the core alone, without sockets: with Google Benchmark, in nanoseconds. With `--count NAME N` it
// only runs a case N times, for callgrind (instructions.py). Keys have 35 bytes, owners 40, as in `make
// bench`.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec/resp.h"
#include "core/engine/engine.h"
#include "core/keyspace/keyspace.h"
#include "core/persist/snapshot.h"
#include "core/state/attachments.h"
#include "core/state/context.h"
#include "load/connection.h"
#include "load/request.h"

namespace holdfast::bench {

namespace {

constexpr uint64_t kKeys = 1000000;
// For callgrind, which is slow; the location of keys costs no instruction.
constexpr uint64_t kCountedKeys = 50000;

Config config() {
  Config c;
  c.hash_seed = 1;
  c.random = [n = uint8_t{0}](std::span<uint8_t> bytes) mutable {
    for (uint8_t& b : bytes) b = n++;
  };
  return c;
}

// An engine and one client of it. Requests are bytes; each reply is checked and discarded.
class Bench {
 public:
  // `keys`: the number of different keys.
  explicit Bench(uint64_t keys) : keys_(keys), client_(engine_.open("127.0.0.1:1", "127.0.0.1:2", now_)) {}

  void apply(const Request& request, uint64_t key) {
    bytes_.clear();
    request.append_to(bytes_, {key, 7, 0});
    if (parser_.parse(bytes_) != RequestParser::Status::kRequest) fail("a request is broken");
    engine_.apply(client_, parser_.argv(), now_, effects_);
    effects_.clear();
    Buffer& output = engine_.output(client_);
    request.check(output.view());
    output.consume(output.size());
  }
  // Sets all keys, with expiry at different milliseconds.
  void fill() {
    for (uint64_t i = 0; i < keys_; ++i) {
      const Request set(fmt::format("SET {{key}} {{owner}} PX {}", 600000 + i % 1000), "+OK");
      apply(set, i);
    }
  }
  Engine& engine() { return engine_; }
  Now now() const { return now_; }
  void pass(int64_t ms) { now_ = {{now_.mono.count + ms}, now_.wall_us + ms * 1000}; }
  size_t tick() {
    const size_t before = keys();
    engine_.tick(now_, effects_);
    effects_.clear();
    return before - keys();
  }
  uint64_t key_count() const { return keys_; }
  size_t keys() { return engine_.state().dbs[0]->size(); }

 private:
  uint64_t keys_;
  Engine engine_{config()};
  Now now_{{1000000}, 1700000000000000};
  ConnId client_;
  Effects effects_;
  std::string bytes_;
  const Limits limits_{};
  RequestParser parser_{limits_};
};

// A case. `prepare` returns the function to measure. That function returns the units of work done; 0 if it
// needs a new preparation.
using Work = std::function<uint64_t()>;
struct Case {
  const char* name;
  const char* unit;  // unit of the work
  std::function<Work(Bench&)> prepare;
};

Work parse_lock(Bench&) {
  struct Parse {
    std::string bytes;
    Limits limits;
    RequestParser parser{limits};
  };
  auto p = std::make_shared<Parse>();
  Request("LOCK {key} {owner} 30000", "").append_to(p->bytes, {});
  return [p] {
    benchmark::DoNotOptimize(p->parser.parse(p->bytes));
    return uint64_t{1};
  };
}

// Sends the requests in order, each round with a random key. One round is one unit.
Work requests(Bench& bench, std::vector<Request> cycle) {
  auto random = std::make_shared<Random>(1);
  auto all = std::make_shared<std::vector<Request>>(std::move(cycle));
  return [&bench, random, all] {
    const uint64_t key = random->below(bench.key_count());
    for (const Request& request : *all) bench.apply(request, key);
    return uint64_t{1};
  };
}

Work lock_unlock(Bench& bench) {
  return requests(bench,
                  {Request("LOCK {key} {owner} 30000", "*2"), Request("UNLOCK {key} {owner}", ":1")});
}
// The next three each use a key once, in an order that jumps through the memory.
Work each_key(Bench& bench, const std::string& words, std::string expected, uint64_t first) {
  constexpr uint64_t kJump = 7919;  // has no factor in common with the number of keys
  bench.fill();
  auto request = std::make_shared<Request>(words, std::move(expected));
  auto done = std::make_shared<uint64_t>(0);
  return [&bench, request, done, first] {
    if (*done == bench.key_count()) return uint64_t{0};
    bench.apply(*request, first + (*done)++ * kJump % bench.key_count());
    return uint64_t{1};
  };
}
Work lock(Bench& bench) { return each_key(bench, "LOCK {key} {owner} 30000", "*2", bench.key_count()); }
Work renew(Bench& bench) { return each_key(bench, "RENEW {key} {owner} 700000", ":1", 0); }
Work shorten(Bench& bench) { return each_key(bench, "RENEW {key} {owner} 500000", ":1", 0); }
Work unlock(Bench& bench) { return each_key(bench, "UNLOCK {key} {owner}", ":1", 0); }
Work set_nx(Bench& bench) {
  return requests(bench, {Request("SET {key} {owner} NX PX 30000", "+OK"), Request("DEL {key}", ":1")});
}
Work get(Bench& bench) {
  bench.fill();
  return requests(bench, {Request("GET {key}", "$40")});
}
Work compare_and_extend(Bench& bench) {
  bench.fill();
  // No blanks, because a script must be one word.
  const std::string script =
      "return(redis.call('get',KEYS[1])==ARGV[1])and(redis.call('pexpire',KEYS[1],ARGV[2]))";
  return requests(bench, {Request("EVAL " + script + " 1 {key} {owner} 600000", ":1")});
}
// The usual script that releases a lock, each time for a key that the owner holds.
Work compare_and_delete(Bench& bench) {
  // With tabs, because a script must be one word.
  const std::string script =
      "if\tredis.call(\"get\",KEYS[1])==ARGV[1]\tthen\treturn\tredis.call(\"del\",KEYS[1])"
      "\telse\treturn\t0\tend";
  return requests(bench, {Request("SET {key} {owner} NX PX 30000", "+OK"),
                          Request("EVAL " + script + " 1 {key} {owner}", ":1")});
}
Work expiry(Bench& bench) {
  bench.fill();
  bench.pass(600000);
  return [&bench] {
    size_t expired = 0;
    while (expired == 0 && bench.keys() > 0) {
      bench.pass(1);
      expired = bench.tick();
    }
    return uint64_t{expired};
  };
}
Work snapshot(Bench& bench) {
  bench.fill();
  auto all = std::make_shared<Snapshot>(bench.engine().state(), bench.now(), 1, false);
  return [all] {
    const uint64_t before = all->saved();
    while (all->saved() == before && !all->step()) {
    }
    all->bytes().clear();
    return all->saved() - before;
  };
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"parse", "LOCK", parse_lock},
      {"lock-unlock", "pair", lock_unlock},
      {"lock", "LOCK", lock},
      {"renew", "RENEW", renew},
      {"renew-shorter", "RENEW", shorten},
      {"unlock", "UNLOCK", unlock},
      {"set-nx-px-del", "pair", set_nx},
      {"get", "GET", get},
      {"eval-compare-and-pexpire", "EVAL", compare_and_extend},
      {"set-eval-compare-and-delete", "pair", compare_and_delete},
      {"expiry", "key", expiry},
      {"snapshot", "key", snapshot},
  };
  return all;
}

// Prepares the named case and runs so many units of it.
int count(std::string_view name, uint64_t units) {
  for (const Case& c : cases()) {
    if (c.name != name) continue;
    Bench bench(kCountedKeys);
    const Work work = c.prepare(bench);
    for (uint64_t done = 0; done < units;) done += work();
    return 0;
  }
  fail(fmt::format("no such case: {}", name));
}

void measure(benchmark::State& state, const Case& c) {
  Bench bench(kKeys);
  Work work = c.prepare(bench);
  uint64_t done = 0;
  for (auto _ : state) {
    const uint64_t more = work();
    done += more;
    if (more > 0) continue;
    state.PauseTiming();
    work = nullptr;  // first, because an unfinished snapshot would continue
    work = c.prepare(bench);
    state.ResumeTiming();
  }
  state.counters[c.unit] = benchmark::Counter(static_cast<double>(done),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace

}  // namespace holdfast::bench

int main(int argc, char** argv) {
  using namespace holdfast::bench;
  if (argc == 4 && std::string_view(argv[1]) == "--count")
    return count(argv[2], std::strtoull(argv[3], nullptr, 10));
  if (argc == 2 && std::string_view(argv[1]) == "--names") {
    for (const Case& c : cases()) fmt::print("{} {}\n", c.name, c.unit);
    return 0;
  }
  for (const Case& c : cases()) {
    benchmark::RegisterBenchmark(c.name, [&c](benchmark::State& state) { measure(state, c); });
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
