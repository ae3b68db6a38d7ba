// Requests on keys that are elsewhere (base/remote_keys.h): a hook takes them from dispatch, and they run
// later on a copy of the key, which exists only meanwhile.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/remote_keys.h"
#include "core/command/command.h"
#include "core/state/context.h"

namespace holdfast {

struct Conn;

// Offers a request to the hook. Returns true if the hook has taken it; the connection is then blocked.
bool take_remote(Context& ctx, Conn& c, const Command& command, std::span<const std::string_view> argv);

// Runs a request that the hook has taken: puts the copy into the keyspace, dispatches the request, and
// takes copy and reply away again. The connection stays blocked.
RemoteOutcome run_remote(Context& ctx, Conn& c, std::span<const std::string_view> argv,
                         const RemoteKey& before);

// Ends the request, if the client wants replies with this one.
void answer_remote(Context& ctx, Conn& c, std::string_view reply);

// On a proxy: ends the script that runs beyond its time limit. Returns false if this is no proxy.
bool end_long_script(Context& ctx);

}  // namespace holdfast
