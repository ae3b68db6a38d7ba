// One command of the engine on behalf of an HTTP client, and its reply as JSON. So rights, audit and errors
// are those of the protocol.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/engine/engine.h"
#include "io/http/access.h"
#include "io/http/json.h"

namespace holdfast {

// What a request needs of the server.
struct HttpContext {
  Engine& engine;
  Effects& fx;
  Now now;
  AccessRules rules;
};

// Limit of a reply of the engine. It keeps the time that one request takes at a few milliseconds.
inline constexpr size_t kMaxReplyBytes = size_t{1} << 20;

struct EngineReply {
  int status = 200;
  std::string why;   // of a refusal
  std::string resp;  // the RESP3 reply; of a long one only the front
  bool cut = false;
};

// Runs the command in the database `db`, as clients number it.
EngineReply call_engine(HttpContext& ctx, const AclUser& user, const Visitor& visitor, size_t db,
                        std::span<const std::string_view> argv);

}  // namespace holdfast
