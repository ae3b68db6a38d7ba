// From options to TLS: which files, what is asked of clients, and what is wrong with that, by the options'
// names.
#pragma once

#include <memory>
#include <optional>

#include "core/base/config.h"
#include "io/config/options.h"
#include "io/os/result.h"
#include "tls/tls_context.h"

namespace holdfast {

// Whether there is a port for TLS.
bool has_tls(const Options& options);

// The context for new connections, out of the files as they are now; null where there is no port for TLS.
Result<std::shared_ptr<const TlsContext>> make_tls(const Options& options);

// The same for CONFIG SET: keeps `tls` where none of its options is given. The files are read anew also
// when their names stay. On a refusal `tls` is as it was.
std::optional<ConfigRefusal> reload_tls(const Options& options, const ConfigChanges& changes,
                                        std::shared_ptr<const TlsContext>& tls);

}  // namespace holdfast
