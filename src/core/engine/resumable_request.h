// The one request that may take long: a script, or a transaction with one. It runs on a stack of its own,
// so that it can be put off in the middle, and goes on in later turns.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/fiber.h"
#include "core/engine/engine.h"
#include "core/state/state.h"

namespace holdfast {

struct Command;
struct Request;

struct ResumableRequest {
  explicit ResumableRequest(EngineState& s);

  Fiber fiber;
  // What the request is given; it sees the time of its start all along.
  Effects fx;
  std::optional<Context> turn;
  ConnId conn;
  const Command* command = nullptr;
  std::span<const std::string_view> argv;
  Buffer out;  // its reply, which is appended to the connection's when it is whole

  Request* request = nullptr;               // while it runs
  std::vector<std::string> kept;            // its arguments, from when it is put off
  std::vector<std::string_view> kept_argv;  // the same
  std::vector<ConnId> gone;                 // connections that went meanwhile: the engine still knows them
};

// Runs a request on the task's stack. True: it has ended, and its reply stands in `c`. False: it has been
// put off, and the connection is blocked until finish_resumable_request().
bool start_resumable_request(Context& ctx, Conn& c, const Command& command,
                             std::span<const std::string_view> argv);
// Lets what has been put off go on. True: it has ended, and so on.
bool resume_resumable_request(EngineState& s, Effects& fx);

}  // namespace holdfast
