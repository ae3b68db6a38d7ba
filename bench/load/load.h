// What the load generator can do. Each prints one line of JSON; times are in microseconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load/connection.h"
#include "load/histogram.h"
#include "load/request.h"

namespace holdfast::bench {

struct Options {
  Address address;
  std::vector<std::string> ring;  // closed: the servers' sockets, where there are several
  uint64_t connections = 50;
  uint64_t pipeline = 1;
  uint64_t keys = 1000000;
  uint64_t first_key = 0;
  uint64_t requests = 0;  // 0: until the time is over
  uint64_t deadline_ms = 0;
  uint64_t spread_ms = 1;
  bool in_order = false;
  bool no_pings = false;
  double seconds = 2;
  double warmup_seconds = 0.3;
  uint64_t rate = 1000;
  uint64_t hold_ms = 0;
  uint64_t retry_ms = 0;
  std::vector<Request> cycle;
};

// Each connection sends `pipeline` requests and waits for their replies, again and again: the cycle of
// requests, each round of it with a key of its own.
void run_closed(uv_loop_t* loop, const Options& options);

// Clients take one lock by the first request of the cycle, and give it back by the second. With `retry_ms`
// a lock that is not to be had is asked for again after so long; without it the request waits.
void run_contended(uv_loop_t* loop, const Options& options);

// Requests at a fixed rate, whether or not the ones before have been answered: a wait counts from when a
// request was due. Ends after `seconds`, or with SIGTERM.
void run_open(uv_loop_t* loop, const Options& options);

// {"count": ..., "p50": ...
std::string times_json(const Histogram& times);

}  // namespace holdfast::bench
