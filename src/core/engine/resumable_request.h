// The resumable request: a script, or a transaction with a script, which may take long. It runs on a fiber
// (its own stack), so that it can be deferred in the middle and resumed in later loop iterations. There is
// at most one at a time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/fiber.h"
#include "core/engine/engine.h"
#include "core/state/context.h"

namespace holdfast {

struct Conn;

struct Command;
struct Request;

struct ResumableRequest {
  explicit ResumableRequest(EngineState& s);

  Fiber fiber;
  // The effects and the Context of the request. Its time stays that of its start.
  Effects fx;
  std::optional<Context> context;
  ConnId conn;
  const Command* command = nullptr;
  std::span<const std::string_view> argv;
  Buffer out;  // its reply; appended to the connection's output when it is complete

  Request* request = nullptr;               // null if none runs
  std::vector<std::string> kept;            // copies of its arguments, once it is deferred
  std::vector<std::string_view> kept_argv;  // views of `kept`
  std::vector<ConnId> disconnected;         // connections that disconnected meanwhile, still in the table
};

// Runs a request on the fiber. Returns true if it has ended; its reply is then in the output of `c`.
// Returns false if it is deferred; the connection is then blocked until resume_resumable_request() returns
// true.
bool start_resumable_request(Context& ctx, Conn& c, const Command& command,
                             std::span<const std::string_view> argv);
// Resumes the deferred request. Returns the same as start_resumable_request().
bool resume_resumable_request(EngineState& s, Effects& fx);
// For a stop: ends the deferred request, as SCRIPT KILL does, unless its script has written. Then the state
// has a part of the script's changes, and must not be saved.
void end_unwritten_request(EngineState& s);

}  // namespace holdfast
