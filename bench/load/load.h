// The modes of the load generator. Each prints one line of JSON; times are in microseconds.
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
  std::vector<std::string> ring;  // closed: the sockets, if there are several servers
  uint64_t connections = 50;
  uint64_t pipeline = 1;
  uint64_t keys = 1000000;
  uint64_t first_key = 0;
  uint64_t requests = 0;  // 0: until `seconds` have passed
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

// Each connection repeatedly sends `pipeline` requests and waits for their replies. The requests come from
// the cycle; each round of it has its own key.
void run_closed(uv_loop_t* loop, const Options& options);

// Clients acquire one lock by the first request of the cycle, and release it by the second. With `retry_ms`
// a client retries a busy lock after that time. Without it the request waits.
void run_contended(uv_loop_t* loop, const Options& options);

// Sends requests at a fixed rate, regardless of earlier replies. A latency counts from the time when the
// request was due. Ends after `seconds`, or with SIGTERM.
void run_open(uv_loop_t* loop, const Options& options);

// {"count": ..., "p50": ...
std::string times_json(const Histogram& times);

}  // namespace holdfast::bench
