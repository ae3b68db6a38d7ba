// The load generator of `make bench`: see --help.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <iostream>

#include "load/load.h"

namespace holdfast::bench {

std::string times_json(const Histogram& times) {
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1000; };
  return fmt::format(R"({{"count": {}, "p50": {:.1f}, "p99": {:.1f}, "p999": {:.1f}, "longest": {:.1f}, )"
                     R"("above_1ms": {}}})",
                     times.count(), us(times.quantile_ns(0.5)), us(times.quantile_ns(0.99)),
                     us(times.quantile_ns(0.999)), us(times.longest_ns()), times.above(1000000));
}

namespace {

namespace po = boost::program_options;

po::options_description described(Options& o, std::string& mode, std::vector<std::string>& requests,
                                  std::vector<std::string>& expected) {
  po::options_description all("load MODE [options]; MODE is closed, contended or open");
  auto add = all.add_options();
  add("help", "this text");
  add("mode", po::value(&mode)->required(), "closed: throughput; contended: one lock; open: stalls");
  add("socket", po::value(&o.ring), "the server's Unix socket; several: closed spreads the keys over them");
  add("port", po::value(&o.address.port), "or its port on 127.0.0.1");
  add("request", po::value(&requests)->required(),
      "its words, with {key}, {owner} or {deadline}; may be repeated");
  add("expect", po::value(&expected)->required(), "what its reply begins with; as often as --request");
  add("connections", po::value(&o.connections), "how many (50)");
  add("pipeline", po::value(&o.pipeline), "closed: requests sent at once (1)");
  add("keys", po::value(&o.keys), "how many different ones, at random (1000000)");
  add("first-key", po::value(&o.first_key), "the number of the first (0)");
  add("in-order", po::bool_switch(&o.in_order), "keys one after the other instead");
  add("requests", po::value(&o.requests), "closed: ends after so many, and has no warm-up");
  add("seconds", po::value(&o.seconds), "or after so long (2)");
  add("warmup", po::value(&o.warmup_seconds), "seconds before that do not count (0.3)");
  add("deadline-ms", po::value(&o.deadline_ms), "the earliest {deadline}, Unix time");
  add("spread-ms", po::value(&o.spread_ms), "over how long deadlines are spread (1)");
  add("rate", po::value(&o.rate), "open: requests a second (1000)");
  add("hold-ms", po::value(&o.hold_ms), "contended: how long a client keeps the lock (0)");
  add("no-pings", po::bool_switch(&o.no_pings), "contended: without a client that sends PINGs");
  add("retry-ms", po::value(&o.retry_ms), "contended: asks again after so long, instead of waiting");
  return all;
}

int run(int argc, char** argv) {
  Options options;
  std::string mode;
  std::vector<std::string> requests;
  std::vector<std::string> expected;
  const po::options_description all = described(options, mode, requests, expected);
  po::positional_options_description first;
  first.add("mode", 1);
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv).options(all).positional(first).run(), given);
  if (given.contains("help")) return std::cout << all, 0;
  po::notify(given);
  if (requests.size() != expected.size()) fail("--expect has to be given as often as --request");
  if (options.connections == 0 || options.keys < options.connections) fail("too few connections or keys");
  if (options.rate == 0 || options.spread_ms == 0 || options.pipeline == 0) fail("0 is too few");
  if (!options.ring.empty()) options.address.socket = options.ring.front();
  if (options.ring.size() > 1 && (mode != "closed" || options.in_order || options.first_key > 0 ||
                                  options.connections % options.ring.size() != 0))
    fail("several servers: closed, keys at random from 0, and as many connections to each");
  for (size_t i = 0; i < requests.size(); ++i) options.cycle.emplace_back(requests[i], expected[i]);
  uv_loop_t loop;
  uv_loop_init(&loop);
  if (mode == "closed") {
    run_closed(&loop, options);
  } else if (mode == "contended") {
    run_contended(&loop, options);
  } else if (mode == "open") {
    run_open(&loop, options);
  } else {
    fail("no such mode: " + mode);
  }
  return 0;
}

}  // namespace

}  // namespace holdfast::bench

int main(int argc, char** argv) {
  try {
    return holdfast::bench::run(argc, argv);
  } catch (const std::exception& error) {
    holdfast::bench::fail(error.what());
  }
}
