// From a request to its reply: paths, methods and the permission that each path needs. Knows no socket.
#pragma once

#include "core/engine/metrics.h"
#include "io/http/answer.h"
#include "io/http/engine_call.h"
#include "io/http/info_json.h"
#include "io/http/request_parser.h"

namespace holdfast {

// What the replies need of the shell.
struct ShellFacts {
  const ShellMetrics& metrics;
  ServerFacts server;
};

HttpAnswer answer_request(HttpContext& ctx, const ShellFacts& facts, const HttpRequest& request,
                          const Visitor& visitor);

// The commands whose permission a user needs to read the events.
bool may_read_events(const Engine& engine, const AclUser& user);

}  // namespace holdfast
